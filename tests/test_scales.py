"""The workshop's scales: small for tests, and never more than the machine bears."""

from pathlib import Path

import pytest

from helpers import scales
from helpers.scales import Scale, scale

MIB, GIB = 2**20, 2**30


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LARGER_THAN_RAM_SCALE", raising=False)
    monkeypatch.delenv("LARGER_THAN_RAM_DATA", raising=False)


def test_the_workshop_is_the_default() -> None:
    here = scale()
    assert here == Scale("workshop", GIB, 4 * GIB, Path("../data/workshop"), epoch_seconds=25)


def test_a_test_has_at_most_four_times_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "test")
    here = scale()
    assert (here.budget, here.epoch_seconds) == (512 * MIB, 8)
    assert here.data_size <= 4 * here.budget


@pytest.mark.parametrize(
    ("available", "reserve"), [(8 * GIB, 2 * GIB), (60 * GIB, 6 * GIB)], ids=["2 GiB", "10 %"]
)
def test_full_scale_leaves_the_machine_a_reserve(
    monkeypatch: pytest.MonkeyPatch, available: int, reserve: int
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "full")
    monkeypatch.setattr(scales, "available_ram_bytes", lambda: available)
    monkeypatch.setattr(scales, "machine_ram_bytes", lambda: 64 * GIB)
    here = scale()
    assert (here.budget, here.epoch_seconds) == (available - reserve, 40)
    assert here.data_size == 80 * GIB


def test_full_scale_is_refused_where_no_budget_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "full")
    monkeypatch.setattr(scales, "available_ram_bytes", lambda: 2 * GIB)
    with pytest.raises(ValueError, match=r"2 GiB of RAM are free.*Close other programs"):
        scale()


def test_an_unknown_scale_is_named_with_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "huge")
    with pytest.raises(ValueError, match=r"'huge'.*test, workshop or full"):
        scale()


def test_parts_shrink_with_the_budget_and_never_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scale().part("64 MiB") == 64 * MIB
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", "test")
    assert scale().part("64 MiB") == 32 * MIB


def test_data_that_is_already_there_need_not_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_DATA", str(tmp_path))
    before = scale().bytes_to_make()
    made = tmp_path / "workshop" / "spectrograms.npy"
    made.parent.mkdir()
    with made.open("wb") as file:
        file.truncate(3 * GIB)
    assert before - scale().bytes_to_make() == 3 * GIB


def test_a_scale_says_in_words_what_it_is() -> None:
    assert repr(scale()) == "workshop scale: RAM budget 1 GiB, data 4 GiB, in ../data/workshop"
