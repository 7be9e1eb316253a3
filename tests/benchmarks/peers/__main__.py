"""`python -m tests.benchmarks.peers`: measure everybody, and write a table, a CSV and a figure."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_gen import Recipe
from helpers.units import format_bytes, parse_size

from .contestants import EVERYBODY, LIMITS
from .figure import draw
from .harness import Harness
from .plan import Plan
from .records import Cache, Case, Contestant, Measurement
from .report import check_complete, table, write_csv
from .summary import Line, summarise

_QUICK_ROWS, _QUICK_SECONDS = 20_000, 1.0
_IN_FILE_ORDER = "sorted"  # by class: what order is bought with shows in every batch


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names, or beginnings of names: ours,zarr")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of 512 bytes, warm and cold")
    parser.add_argument("--large", type=int, default=131_072, help="rows of 16 KiB, memory limited")
    parser.add_argument("--cases", default="warm,cold,limited")
    parser.add_argument("--workers", default="0,2")
    parser.add_argument("--seconds", type=float, default=15.0, help="most of one epoch")
    parser.add_argument("--mix", default="128 MiB", help="memory that a block shuffle may fill")
    parser.add_argument("--disk", default="12 GiB", help="that the data may take at a time")
    parser.add_argument("--folder", type=Path, default=Path("build/peers"))
    parser.add_argument("--environments", type=Path, help="default: environments/ in the folder")
    parser.add_argument("--keep", action="store_true", help="the data, for another time")
    parser.add_argument("--quick", action="store_true", help="a smoke test: small, ours and plain")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return 1 where rows are wrong or the table is incomplete."""
    given = _parser().parse_args(arguments)
    folder: Path = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Measurement] = []
    texts, wrong = [], []
    for plan in _plans(given, folder):
        measured = _carry_out(plan)
        lines = summarise(plan.contestants, measured)
        found += measured
        texts.append(f"{_describe(plan)}\n\n{table(lines, plan.cases)}")
        wrong += check_complete(plan.contestants, plan.cases, lines)
        wrong += [f"{line.contestant.name}: rows" for line in lines if line.proofs and not line.right]
        draw(lines, plan).savefig(folder / f"{plan.folder.name}.png")
    write_csv(folder / "measurements.csv", found)
    (folder / "table.md").write_text("\n".join(texts))
    sys.stdout.write("\n".join(texts))
    sys.stdout.writelines(f"wrong or missing: {what}\n" for what in wrong)
    return 1 if wrong else 0


def _plans(given: argparse.Namespace, folder: Path) -> Iterator[Plan]:
    """Yield a plan for the small rows and one for the large, as far as their cases are wanted."""
    rows, large = (_QUICK_ROWS, 0) if given.quick else (given.rows, given.large)
    caches = ("warm", "cold") if given.quick else given.cases.split(",")
    workers = (0,) if given.quick else tuple(int(count) for count in given.workers.split(","))
    for name, count, row_shape in (("features", rows, (128,)), ("limited", large, (64, 64))):
        cases = [
            Case(cache, number)
            for cache in caches
            for number in workers
            if (cache == "limited") == (name == "limited")
        ]
        if cases:
            yield Plan(
                contestants=_chosen(given),
                cases=tuple(cases),
                recipe=Recipe(count, row_shape, order=_IN_FILE_ORDER),
                folder=folder / name,
                environments=(given.environments or folder / "environments").absolute(),
                rounds=1 if given.quick else given.rounds,
                seconds=_QUICK_SECONDS if given.quick else given.seconds,
                mix_bytes=parse_size(given.mix),
                disk_bytes=parse_size(given.disk),
                keep=given.keep,
                one_process=given.quick,
            )
