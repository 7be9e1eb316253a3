"""Counting reads: bytes of a known file, whoever answers, and what a system does not tell."""

import math
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.read_counts import ReadCount, count_reads

MIB = 2**20
counts = pytest.mark.skipif(not hasattr(psutil.Process, "io_counters"), reason="nothing is counted")


def _read_parts(path: Path, size: int) -> int:
    with path.open("rb", buffering=0) as file:
        file.read(size)
        file.seek(0)
        return len(file.read(size))


@counts
def test_what_a_call_reads_is_counted_though_the_page_cache_answers(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(4 * MIB))
    counted = count_reads(_read_parts, tmp_path / "file", 4 * MIB)
    assert counted.read_bytes is not None
    assert 8 * MIB <= counted.read_bytes < 8.1 * MIB
    assert counted.value == 4 * MIB
    assert counted.amplification == pytest.approx(2, rel=0.02)
    assert counted.seconds > 0


@counts
def test_what_computes_reads_next_to_nothing() -> None:
    counted = count_reads(sum, range(1000))
    assert counted.value == 499_500
    assert counted.read_bytes is not None
    assert counted.read_bytes < MIB / 10


@pytest.mark.parametrize("error", [AttributeError("io_counters"), psutil.AccessDenied(1)])
def test_where_the_system_tells_nothing_the_amplification_is_unknown(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_process: Any) -> None:
        raise error

    monkeypatch.setattr(psutil.Process, "io_counters", refuse, raising=False)
    counted = count_reads(len, "four")
    assert (counted.value, counted.read_bytes) == (4, None)
    assert math.isnan(counted.amplification)


def test_amplification_is_bytes_read_for_each_byte_used() -> None:
    assert ReadCount(512, 512 * 40, 0.1).amplification == 40
