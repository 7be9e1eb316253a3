"""`python -m tests.benchmarks.peers`: measure everybody, and write a table, a CSV and a figure."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from data_gen import Recipe
from helpers.units import format_bytes, parse_size

from .contestants import EVERYBODY, LIMITS
from .figure import draw
from .harness import Harness
from .plan import Plan
from .records import Cache, Case, Contestant, Measurement
from .report import check_complete, table, write_csv
from .summary import summarise

_QUICK_ROWS, _QUICK_SECONDS = 10_000, 0.2
_CACHES: tuple[Cache, ...] = ("warm", "cold", "limited")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names, or beginnings of names: ours,zarr")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of 512 B, warm and cold")
    parser.add_argument("--large", type=int, default=131_072, help="rows of 16 KiB, memory limited")
    parser.add_argument("--cases", default=",".join(_CACHES))
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
    folder: Path = (given.folder / "quick" if given.quick else given.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    texts, wrong = [], []
    for plan in _plans(given, folder):
        measured, interrupted = _carry_out(plan)
        lines = summarise(plan.contestants, measured)
        texts.append(f"{_describe(plan)}\n\n{table(lines, plan.cases)}")
        draw(lines, plan.cases, _title(plan)).savefig(folder / f"{plan.folder.name}.png")
        wrong += check_complete(plan.contestants, plan.cases, lines)
        wrong += [f"{one.contestant.name}: rows" for one in lines if one.proofs and not one.right]
        if interrupted:
            break
    (folder / "table.md").write_text("\n".join(texts))
    sys.stdout.write("\n".join(texts))
    sys.stdout.writelines(f"wrong or missing: {what}\n" for what in wrong)
    return 1 if wrong else 0


def _carry_out(plan: Plan) -> tuple[list[Measurement], bool]:
    """Measure, and write the CSV; return what was found, and whether somebody interrupted."""
    found: list[Measurement] = []
    interrupted = False
    try:
        with Harness(plan) as harness:
            for measured in harness.measure_all():
                found.append(measured)  # one by one: an interruption loses none
    except KeyboardInterrupt:
        interrupted = True
    finally:
        write_csv(plan.folder.with_suffix(".csv"), found)
    return found, interrupted


def _chosen(given: argparse.Namespace) -> tuple[Contestant, ...]:
    """Return who was asked for, and the limits that lie on the same stores."""
    beginnings = tuple(given.only.split(",")) if given.only else ("",)
    readers = [
        one
        for one in EVERYBODY
        if one.group != "limit" and one.name.startswith(beginnings)
        if not (given.quick and one.group == "peer")
    ]
    if not readers:
        raise SystemExit(
            f"--only {given.only} matches nobody: {', '.join(c.name for c in EVERYBODY)}"
        )
    stores = {"npy"} | {one.store for one in readers}
    return (*(limit for limit in LIMITS if limit.store in stores), *readers)


def _title(plan: Plan) -> str:
    workers = plan.cases[0].workers
    how = "one process" if workers == 0 else f"{workers} workers"
    inside = f" inside {format_bytes(plan.limit_bytes)}" if plan.limited else ""
    size = format_bytes(plan.recipe.row_bytes)
    return f"Shuffled batches of {plan.batch_size} rows of {size}, {how}{inside}"


def _describe(plan: Plan) -> str:
    recipe = plan.recipe
    shape = " x ".join(map(str, recipe.row_shape))
    limit = f", memory limit {format_bytes(plan.limit_bytes)}" if plan.limited else ""
    return (
        f"{recipe.count:,} rows of {shape} float32 ({format_bytes(recipe.nbytes)}), "
        f"{recipe.classes} classes in order, batches of {plan.batch_size}{limit}, "
        f"rounds: {plan.rounds}, at most {plan.seconds:g} s of an epoch"
    )


def _plans(given: argparse.Namespace, folder: Path) -> Iterator[Plan]:
    """Yield a plan for the small rows and one for the large, as far as their cases are wanted."""
    rows, large = (_QUICK_ROWS, 0) if given.quick else (given.rows, given.large)
    wanted = ("warm", "cold") if given.quick else given.cases.split(",")
    workers = (0,) if given.quick else tuple(int(count) for count in given.workers.split(","))
    for name, count, row_shape in (("features", rows, (128,)), ("limited", large, (64, 64))):
        cases = [
            Case(cache, number)
            for cache in _CACHES
            if cache in wanted
            for number in workers
            if (cache == "limited") == (name == "limited")
        ]
        if cases:
            yield Plan(
                contestants=_chosen(given),
                cases=tuple(cases),
                recipe=Recipe(count, row_shape, order="sorted"),
                folder=folder / name,
                environments=(given.environments or folder / "environments").absolute(),
                rounds=1 if given.quick else given.rounds,
                seconds=_QUICK_SECONDS if given.quick else given.seconds,
                mix_bytes=parse_size(given.mix),
                disk_bytes=parse_size(given.disk),
                keep=given.keep,
                one_process=given.quick,
            )


if __name__ == "__main__":
    sys.exit(main())
