"""The benchmark against other libraries: its proofs, its ratios, its table. No speed is judged."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.peers import caches, environments, processes
from benchmarks.peers.__main__ import main
from benchmarks.peers.contestants import EVERYBODY, LIMITS, OURS, PEERS, PLAIN
from benchmarks.peers.environments import NotInstalledError
from benchmarks.peers.epoch import prove_epoch, time_epoch
from benchmarks.peers.figure import draw
from benchmarks.peers.fingerprints import Fingerprints
from benchmarks.peers.harness import Harness
from benchmarks.peers.launch import PROJECT, Child, ChildError
from benchmarks.peers.plan import Plan
from benchmarks.peers.records import Case, Job, Measurement, Proof, Source, Timing
from benchmarks.peers.report import check_complete, table
from benchmarks.peers.stores import STORES
from benchmarks.peers.summary import summarise

from data_gen import Recipe

RECIPE = Recipe(1000, order="sorted")
WARM, COLD, LIMITED = Case("warm", 0), Case("cold", 0), Case("limited", 0)
GOOD = Proof(1000, True, 0, 0, 0, 0, 9.9, 10.0, 90.0, 92.0)
READ, FROMFILE = LIMITS[0], LIMITS[1]
Batch = tuple[torch.Tensor, torch.Tensor]


def source(recipe: Recipe = RECIPE, batch_size: int = 50) -> Source:
    nowhere = Path("nowhere")
    return Source(nowhere, nowhere, nowhere, recipe, batch_size, 0, 0, 1 << 20)


def handed_out(order: Iterable[int], batch_size: int = 50) -> Iterator[Batch]:
    for batch in torch.tensor(list(order)).split(batch_size):  # type: ignore[no-untyped-call]
        indices = batch.numpy()
        yield torch.from_numpy(RECIPE.rows(indices)), torch.from_numpy(RECIPE.labels(indices))


def proved(batches: Iterable[Batch], given: Source | None = None) -> Proof:
    return prove_epoch(batches, given or source(), Fingerprints.of(RECIPE), seconds=60)


def shuffled() -> list[int]:
    return list(np.random.default_rng(0).permutation(RECIPE.count).tolist())


def measured(name: str, case: Case, rate: float, number: int = 1, **fields: Any) -> Measurement:
    return Measurement(name, case, 1, number, timing=Timing(int(rate), 1.0), **fields)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run the smoke test once: everything of ours, and the plain loaders."""
    folder = tmp_path_factory.mktemp("peers")
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.peers", "--quick", "--folder", str(folder)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder / "quick"


def test_the_smoke_test_measures_all_of_ours_and_proves_their_rows(
    quick: tuple[str, Path],
) -> None:
    with (quick[1] / "features.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["contestant"] for row in rows} == {c.name for c in LIMITS + OURS + PLAIN}
    assert [row["contestant"] for row in rows if row["error"]] == []
    proofs = [row for row in rows if not row["contestant"].startswith("limit-")]
    faults = ("wrong_rows", "wrong_labels", "repeated", "missing")
    assert {row[f"proof_{fault}"] for row in proofs for fault in faults} == {"0"}


def test_the_smoke_test_leaves_a_table_a_figure_and_no_data(quick: tuple[str, Path]) -> None:
    said, folder = quick
    assert said == (folder / "table.md").read_text()
    for contestant in OURS + PLAIN:
        assert f"| {contestant.title} |" in said
    assert sorted(path.name for path in folder.iterdir()) == [
        *("features.csv", "features.png", "table.md"),
    ]


def test_a_right_epoch_is_proved_whatever_its_order() -> None:
    proof = proved(handed_out(shuffled()))
    assert proof.right
    assert proof.whole
    assert proof.rows == RECIPE.count
    assert proof.mixing == pytest.approx(1, abs=0.05)


def test_one_wrong_value_is_counted() -> None:
    batches = list(handed_out(shuffled()))
    batches[3][0][7, 100] += 1  # behind what the fingerprint looks at
    assert proved(batches).wrong_rows == 1


def test_a_row_that_is_nowhere_in_the_data_is_counted() -> None:
    batches = list(handed_out(shuffled()))
    batches[3][0][7] = 0
    proof = proved(batches)
    assert (proof.wrong_rows, proof.right) == (1, False)


def test_a_label_of_another_row_is_counted() -> None:
    batches = list(handed_out(shuffled()))
    batches[0][1][0] += 1
    proof = proved(batches)
    assert (proof.wrong_labels, proof.right) == (1, False)


def test_a_row_that_comes_twice_and_one_that_never_comes_are_counted() -> None:
    twice = proved(handed_out([*shuffled(), 5]))
    assert (twice.repeated, twice.missing, twice.right) == (1, 0, False)
    never = proved(handed_out(shuffled()[:900]))
    assert (never.repeated, never.missing, never.right) == (0, 100, False)


def test_a_last_batch_may_be_left_out() -> None:
    assert proved(handed_out(shuffled()[:-49])).right


def test_an_epoch_in_the_order_of_the_file_is_not_mixed() -> None:
    proof = proved(handed_out(range(RECIPE.count)))
    line = summarise([OURS[0]], [measured(OURS[0].name, WARM, 1.0, proof=proof)])[0]
    assert proof.labels_per_batch == 1
    assert not line.mixed
    assert "**not mixed**" in table([line], [WARM])


def test_an_empty_epoch_is_not_right() -> None:
    assert not proved([]).right


def test_a_full_shuffle_has_the_labels_that_the_formula_says() -> None:
    proof = proved(handed_out(shuffled()))
    missing = math.comb(900, 50) / math.comb(1000, 50)  # a batch of 50 without one of ten labels
    assert proof.labels_if_shuffled == pytest.approx(10 * (1 - missing))
    assert proof.labels_per_batch == pytest.approx(proof.labels_if_shuffled, abs=0.2)
    missing = math.comb(990, 50) / math.comb(1000, 50)
    assert proof.parts_if_shuffled == pytest.approx(100 * (1 - missing))
    assert proof.parts_per_batch == pytest.approx(proof.parts_if_shuffled, abs=1)


def test_a_part_of_an_epoch_is_held_to_a_full_shuffle_of_the_file() -> None:
    whole, part = proved(handed_out(shuffled())), proved(handed_out(range(90)))
    assert part.labels_if_shuffled == pytest.approx(whole.labels_if_shuffled)
    assert part.parts_if_shuffled == pytest.approx(whole.parts_if_shuffled)
    assert (part.labels_per_batch, part.parts_per_batch) == (1, 5)  # not of the last 40 rows


def test_less_than_a_batch_is_measured_too() -> None:
    proof = proved(handed_out(range(20)))
    assert (proof.labels_per_batch, proof.parts_per_batch) == (1, 2)
    assert proof.labels_if_shuffled < 9.5  # of 20 rows


def test_rows_that_are_all_wrong_are_not_mixed() -> None:
    proof = proved((rows * 0, labels) for rows, labels in handed_out(shuffled()))
    assert (proof.wrong_rows, proof.mixing, proof.right) == (1000, 0, False)


def test_fingerprints_that_were_saved_find_the_same_rows(tmp_path: Path) -> None:
    Fingerprints.of(RECIPE).save(tmp_path / "prints.npy")
    found = Fingerprints.load(tmp_path / "prints.npy").indices_of(RECIPE.rows([9, 0, 999]))
    assert found.tolist() == [9, 0, 999]


def test_a_part_of_an_epoch_is_marked_and_its_start_up_left_out() -> None:
    assert not time_epoch(handed_out(shuffled()), seconds=0).whole
    part = Timing(100, 3.0, start_up_seconds=1.0, whole=False)
    assert part.rows_per_second == 50
    assert replace(part, whole=True).rows_per_second == pytest.approx(100 / 3)
    line = summarise([OURS[0]], [Measurement(OURS[0].name, WARM, 1, 1, timing=part)])[0]
    assert ", part" in table([line], [WARM])


def test_a_job_survives_its_way_to_the_process() -> None:
    job = Job("measure", "plain", "mapped rows", source(), 1.0, source(), Path("prints.npy"))
    text = json.dumps(job.as_json(), default=str)
    assert Job.from_json(json.loads(text)) == job


def test_a_share_is_of_the_limit_in_the_same_round() -> None:
    found = [measured(FROMFILE.name, WARM, limit, n) for n, limit in ((1, 100), (2, 400))]
    found += [measured(OURS[0].name, WARM, rate, n) for n, rate in ((1, 50), (2, 200))]
    rate = summarise([OURS[0]], found)[0].rates[WARM]
    assert (rate.median, rate.low, rate.high, rate.share) == (125, 50, 200, 0.5)


def test_who_cannot_take_part_is_listed_with_the_reason() -> None:
    found = [Measurement(PEERS[0].name, WARM, 1, 0, error="skipped: pip found no such version")]
    lines = summarise(PEERS[:1], found)
    assert "- tensordict: skipped: pip found no such version" in table(lines, [WARM])
    assert "| tensordict |" not in table(lines, [WARM])
    assert check_complete(PEERS[:1], [WARM, COLD], lines) == []


def test_a_hole_in_the_table_is_found() -> None:
    found = [measured(OURS[0].name, WARM, 1.0)]
    assert check_complete(OURS[:1], [WARM], summarise(OURS[:1], found)) == []
    hole = check_complete(OURS[:1], [WARM, COLD], summarise(OURS[:1], found))
    assert hole == [f"{OURS[0].name}, cold, 0 workers"]


def test_wrong_rows_are_written_large() -> None:
    wrong = replace(GOOD, wrong_rows=3)
    lines = summarise([OURS[0]], [measured(OURS[0].name, WARM, 1.0, proof=wrong)])
    assert "**WRONG**: 3 rows" in table(lines, [WARM])
    words = [text.get_text() for text in draw(lines, [WARM], "title").axes[0].texts]
    assert any("WRONG ROWS" in word for word in words)


def test_the_figure_hatches_what_is_not_mixed_and_draws_both_limits() -> None:
    names = (OURS[0].name, PLAIN[0].name)
    proofs = (GOOD, replace(GOOD, labels_per_batch=1.0))
    found = [
        measured(name, case, 10.0, proof=proof)
        for name, proof in zip(names, proofs, strict=True)
        for case in (WARM, COLD)
    ]
    found += [measured(FROMFILE.name, WARM, 20.0), measured(READ.name, COLD, 15.0)]
    lines = summarise(EVERYBODY, found)
    axes = draw(lines, [WARM, COLD], "title").axes[0]
    assert sorted(str(bar.get_hatch() or "") for bar in axes.patches) == ["", "///"]
    limits = [float(np.asarray(line.get_xdata())[0]) for line in axes.lines[-2:]]
    assert limits == [20.0, 15.0]


def test_stores_that_do_not_fit_on_the_disk_together_are_measured_one_after_another(
    tmp_path: Path,
) -> None:
    everybody = LIMITS + OURS + PLAIN
    plan = Plan(everybody, (WARM,), RECIPE, tmp_path, tmp_path)
    assert list(plan.heats()) == [everybody]
    small = replace(plan, disk_bytes=2 * STORES["npy"].bytes_on_disk(RECIPE))
    heats = list(small.heats())
    assert [len({one.store for one in heat} - {"npy"}) for heat in heats] == [1, 1, 1]
    assert all(READ in heat and FROMFILE in heat for heat in heats)
    readers = [one for heat in heats for one in heat if one not in LIMITS]
    assert sorted(one.name for one in readers) == sorted(one.name for one in OURS + PLAIN)


def test_an_interruption_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_harness: Harness) -> Iterator[Measurement]:
        yield measured(OURS[0].name, WARM, 12_345.0, proof=GOOD)
        raise KeyboardInterrupt

    monkeypatch.setattr(Harness, "measure_all", interrupted)
    assert main(["--only", OURS[0].name, "--cases", "warm,limited", "--folder", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"| {OURS[0].title} | 12,300 |" in said
    assert f"wrong or missing: {OURS[0].name}, warm, 2 workers" in said
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["features.csv", "features.png", "table.md"]


def test_a_name_that_nobody_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"--only nobody matches nobody: .*tensordict"):
        main(["--only", "nobody", "--folder", str(tmp_path)])


def test_an_environment_that_is_not_to_be_had_is_a_reason_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(home: Path, python: Path, wanted: Path) -> None:
        home.mkdir(parents=True)
        raise NotInstalledError("pip found no such version")

    monkeypatch.setattr(environments, "_make", fail)
    plan = Plan((PEERS[0],), (WARM,), RECIPE, tmp_path / "data", tmp_path / "environments")
    with Harness(plan) as carried_out:
        found = list(carried_out.measure_all())
    assert [one.error for one in found] == ["skipped: pip found no such version"]
    assert list((tmp_path / "environments").iterdir()) == []


def test_pips_last_error_is_the_reason() -> None:
    said = "ERROR: first\nWARNING: else\nERROR: No matching distribution found for zarr==9\nx\n"
    assert environments._reason(said) == "No matching distribution found for zarr==9"
    assert environments._reason("") == "pip failed"


def test_every_peer_has_pins() -> None:
    folder = Path(environments.__file__).with_name("requirements")
    pinned = {path.stem for path in folder.glob("*.txt")}
    assert pinned == {"common"} | {peer.environment for peer in PEERS}
    lines = [line for path in folder.glob("*.txt") for line in path.read_text().splitlines()]
    assert all("==" in line for line in lines if not line.startswith("#"))


def test_without_a_memory_group_the_limited_case_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "make_group", lambda: None)
    plan = Plan((READ,), (LIMITED,), RECIPE, tmp_path / "data", tmp_path, rounds=1)
    with Harness(plan) as carried_out:
        found = list(carried_out.measure_all())
    assert "no memory group" in found[0].error


def test_a_cache_that_is_not_as_wanted_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    for here in (0, 1 << 20, None):
        monkeypatch.setattr(caches, "resident_bytes", lambda _path, here=here: here)
        for case, right in ((WARM, 1 << 20), (COLD, 0)):
            if here == right:
                caches.set_cache(case, [file])
            else:
                with pytest.raises(OSError, match="file: "):
                    caches.set_cache(case, [file])


def test_a_process_that_raises_or_dies_says_how(tmp_path: Path) -> None:
    job = Job("make", "nobody", "", source())
    child = Child(Path(sys.executable), tmp_path)
    try:
        with pytest.raises(ChildError, match=r"ModuleNotFoundError: .*nobody"):
            child.ask(job)
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(ChildError, match="ended by SIGKILL"):
            child.ask(job)
    finally:
        child.end()


def test_a_process_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    child = Child(Path(sys.executable), tmp_path)
    try:
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(ChildError, match="no answer within"):
            child.ask(Job("make", "nobody", "", source()), patience=0.01)
    finally:
        child.end(patience=0)
