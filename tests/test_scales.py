"""The workshop's scales: small for tests, and never more than the machine bears."""

from pathlib import Path

import pytest

from helpers.scales import Scale, scale

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("name", "available", "budget", "data_size", "epoch_seconds"),
    [
        ("test", GIB, 512 * MIB, 2 * GIB, 8),
        ("workshop", GIB, GIB, 4 * GIB, 25),
        ("full", 8 * GIB, 6 * GIB, 80 * GIB, 40),  # the reserve is at least 2 GiB
        ("full", 60 * GIB, 54 * GIB, 80 * GIB, 40),  # and 10 %
    ],
)
def test_each_scale_leaves_the_machine_a_reserve(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    available: int,
    budget: int,
    data_size: int,
    epoch_seconds: float,
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", name)
    monkeypatch.setattr("helpers.scales.available_ram_bytes", lambda: available)
    monkeypatch.setattr("helpers.scales.machine_ram_bytes", lambda: 64 * GIB)
    assert scale() == Scale(name, budget, data_size, Path("../data", name), epoch_seconds)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("full", r"2 GiB of RAM are free.*Close other programs"),
        ("huge", r"'huge'.*test, workshop or full"),
    ],
)
def test_a_scale_that_is_unknown_or_leaves_no_budget_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", name)
    monkeypatch.setattr("helpers.scales.available_ram_bytes", lambda: 2 * GIB)
    with pytest.raises(ValueError, match=message):
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
    (tmp_path / "workshop").mkdir()
    with (tmp_path / "workshop" / "spectrograms.npy").open("wb") as file:
        file.truncate(3 * GIB)
    assert before - scale().bytes_to_make() == 3 * GIB


def test_a_scale_says_in_words_what_it_is() -> None:
    assert repr(scale()) == "workshop scale: RAM budget 1 GiB, data 4 GiB, in ../data/workshop"
