"""The benchmark against other libraries: its proofs, its ratios, its table. No speed is judged."""

import math
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from benchmarks.peers import __main__ as command
from benchmarks.peers import harness, processes
from benchmarks.peers.contestants import find, read_everybody
from benchmarks.peers.epoch import measure, prove_epoch, time_epoch
from benchmarks.peers.figure import draw
from benchmarks.peers.processes import CannotRunError, in_child
from benchmarks.peers.records import Case, Contestant, Measurement, Proof, Source, Timing
from benchmarks.peers.report import find_faults, summarise, table

from data_gen import Recipe

EVERYBODY = {one.name: one for one in read_everybody()}
OURS, MAPS, ZARR = (EVERYBODY[name] for name in ("ours-blocks-npy", "map-rows", "zarr"))
RECIPE = Recipe(1000, order="sorted")
SOURCE = Source(Path("nowhere"), RECIPE, batch_size=50)
SHUFFLED = np.random.default_rng(0).permutation(RECIPE.count)
WARM, COLD = Case("warm", 0), Case("cold", 0)
GOOD = Proof(1000, True, 0, 0, 0, 0, 9.9, 10.0)


def handed_out(order: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    parts = [np.asarray(order[start : start + 50]) for start in range(0, len(order), 50)]
    both = torch.from_numpy
    return [(both(RECIPE.rows(part)), both(RECIPE.labels(part))) for part in parts]


def measured(name: str, case: Case, rate: float, number: int = 1, **fields: Any) -> Measurement:
    return Measurement(name, case, number, timing=Timing(int(rate), 1.0, rate / 10), **fields)


def test_everybody_takes_part_under_every_condition() -> None:
    cases = [Case(cache, workers) for cache in ("warm", "cold", "limited") for workers in (0, 2)]
    alone = {"ours-blocks-past": cases[2:4], "limit-read": cases[::2], "limit-hand-over": cases[:2]}
    for one in EVERYBODY.values():
        here = alone.get(one.name, cases[:1] if one.group == "limit" else cases)
        assert [case for case in cases if one.takes(case)] == here


@pytest.mark.parametrize("one", [o for o in EVERYBODY.values() if not o.pins], ids=lambda o: o.name)
def test_what_needs_no_installing_hands_out_right_rows(one: Contestant, tmp_path: Path) -> None:
    source = harness.make_store(one, replace(SOURCE, folder=tmp_path), Path(sys.executable))
    timing, proof = measure(one, source, source, 60.0, True)
    assert timing.rows >= RECIPE.count
    assert timing.whole
    assert timing.cpu_seconds_per_gib > 0
    assert proof.right if proof else one.group == "limit"


def test_a_right_epoch_is_proved_whatever_its_order() -> None:
    proof = prove_epoch(handed_out(SHUFFLED), SOURCE, seconds=60)
    assert (proof.right, proof.whole, proof.rows) == (True, True, RECIPE.count)
    missing = math.comb(900, 50) / math.comb(1000, 50)  # a batch of 50 without one of ten labels
    assert proof.labels_if_shuffled == pytest.approx(10 * (1 - missing))
    assert proof.labels_per_batch == pytest.approx(proof.labels_if_shuffled, abs=0.2)
    assert prove_epoch(handed_out(SHUFFLED[:-49]), SOURCE, seconds=60).right  # a smaller last batch


@pytest.mark.parametrize(
    ("order", "spoil", "faults"),
    [
        (SHUFFLED, lambda batches: batches[3][0][7, 100:101].add_(1), (1, 0, 0, 0)),
        (SHUFFLED, lambda batches: batches[3][0][7].zero_(), (1, 0, 0, 0)),
        (SHUFFLED, lambda batches: [rows.zero_() for rows, _ in batches], (1000, 0, 0, 0)),
        (SHUFFLED, lambda batches: batches[0][1][:1].add_(1), (0, 1, 0, 0)),
        ([*SHUFFLED, 5], len, (0, 0, 1, 0)),
        (SHUFFLED[:900], len, (0, 0, 0, 100)),
        ([], len, (0, 0, 0, 1000)),
    ],
    ids=["value", "row that is nowhere", "every row", "label", "row twice", "rows never", "empty"],
)
def test_what_is_wrong_is_counted(order: Any, spoil: Any, faults: tuple[int, ...]) -> None:
    batches = handed_out(order)
    spoil(batches)
    proof = prove_epoch(batches, SOURCE, seconds=60)
    found = (proof.wrong_rows, proof.wrong_labels, proof.repeated, proof.missing)
    assert (found, proof.right) == (faults, False)
    lines = summarise([OURS], [measured(OURS.name, WARM, 1.0, proof=proof)])
    assert "**WRONG**: " in table(lines, [WARM])
    assert find_faults(lines, [WARM]) == [f"{OURS.name}: rows"]
    assert "WRONG ROWS" in draw(lines, [WARM], "title").axes[0].texts[0].get_text()


@pytest.mark.parametrize("rows", [1000, 90, 0])
def test_an_epoch_in_the_order_of_the_file_is_not_mixed(rows: int) -> None:
    proof = prove_epoch(handed_out(range(rows)), SOURCE, seconds=60)
    assert proof.labels_per_batch == 1
    assert proof.labels_if_shuffled > 9.9  # of the file, not of the part
    lines = summarise([OURS], [measured(OURS.name, WARM, 1.0, proof=proof)])
    assert "**not mixed**" in table(lines, [WARM])


def test_the_table_has_medians_and_shares_of_the_limit_in_the_same_round() -> None:
    rounds = {1: (100, 50), 2: (400, 200), 3: (1000, 100)}
    found = [measured("limit-fromfile", WARM, limit, n) for n, (limit, _) in rounds.items()]
    found += [measured(OURS.name, WARM, rate, n) for n, (_, rate) in rounds.items()]
    lines = summarise([OURS], found)
    assert "| 100 (50 to 200), 50 % | 10 | not proved |" in table(lines, [WARM])
    assert find_faults(lines, [WARM, COLD]) == [f"{OURS.name}, cold, 0 workers"]
    part = time_epoch(handed_out(SHUFFLED), SOURCE, seconds=0)
    lines = summarise([OURS], [Measurement(OURS.name, WARM, 1, timing=part)])
    assert ", part | " in table(lines, [WARM])


def test_the_figure_hatches_what_is_not_mixed_and_draws_both_limits() -> None:
    found = [measured("limit-fromfile", WARM, 20.0), measured("limit-read", COLD, 15.0)]
    for one, proof in ((OURS, GOOD), (MAPS, replace(GOOD, labels_per_batch=1.0))):
        found += [measured(one.name, case, 10.0, proof=proof) for case in (WARM, COLD)]
    axes = draw(summarise(list(EVERYBODY.values()), found), [WARM, COLD], "title").axes[0]
    assert sorted(str(bar.get_hatch() or "") for bar in axes.patches) == ["", "///"]
    assert sorted(float(np.asarray(line.get_xdata())[0]) for line in axes.lines) == [15.0, 20.0]


@pytest.mark.parametrize(("here", "warm"), [(0, False), (1 << 20, True), (None, None)])
def test_a_cache_that_is_not_as_wanted_is_no_measurement(
    here: int | None, warm: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(harness, "resident_bytes", lambda _: here)
    for wanted in {True, False} - {warm}:
        with pytest.raises(OSError, match="file: "):
            harness.set_cache(tmp_path, warm=wanted)
    if warm is not None:
        harness.set_cache(tmp_path, warm=warm)


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [
        (find, "nobody.load", "ModuleNotFoundError: .*nobody"),
        (signal.raise_signal, signal.SIGKILL, "ended by SIGKILL"),
        (os._exit, 3, "ended with status 3"),
        (time.sleep, 60, "no answer in time"),
    ],
)
def test_a_process_without_an_answer_says_why(function: Any, argument: Any, said: str) -> None:
    with pytest.raises(CannotRunError, match=said):
        in_child(function, argument, seconds=1 if function is time.sleep else 60)


def test_a_process_has_a_temporary_folder_of_its_own_which_goes_with_it() -> None:
    first, second = (in_child(os.getenv, "TMPDIR", seconds=60) for _ in range(2))
    assert first != second
    assert not Path(first).exists()


def test_who_needs_more_than_the_memory_limit_is_told_as_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CannotRunError, match=r"killed by the kernel|no memory group"):
        in_child(bytes, 1 << 28, seconds=60, limit_bytes=1 << 26)
    monkeypatch.setattr(processes, "make_group", lambda: None)
    with pytest.raises(CannotRunError, match="no memory group"):
        in_child(len, "", seconds=60, limit_bytes=1 << 26)


def test_who_cannot_be_installed_is_listed_with_the_reason(tmp_path: Path) -> None:
    one = replace(ZARR, pins="--no-index nowhere==1")
    plan = harness.Plan((one,), (WARM,), RECIPE, tmp_path / "data", tmp_path / "environments")
    lines = summarise([one], list(harness.measure_all(plan)))
    assert "- zarr: skipped: ERROR: " in table(lines, [WARM])
    assert find_faults(lines, [WARM, COLD]) == []
    assert list((tmp_path / "environments").iterdir()) == []


def test_the_command_measures_and_leaves_no_data_also_where_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--only", "map-batches", "--rows", "3000", "--workers", "2", "--folder", str(tmp_path)]
    assert command.main([*words, "--rounds", "1", "--cases", "warm"]) == 0
    assert "right | " in (tmp_path / "table.md").read_text()
    replies = Mock(side_effect=[measured(MAPS.name, WARM, 1.0), KeyboardInterrupt])
    monkeypatch.setattr(harness, "_measure", replies)
    assert command.main([*words, "--cases", "warm"]) == 1
    assert "wrong or missing: map-batches" in capsys.readouterr().out
    left = ["features.json", "features.png", "table.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    with pytest.raises(SystemExit, match=r"--only nobody matches nobody: .*tensordict"):
        command.main(["--only", "nobody"])
