"""Measure everybody who is asked for, and write tables, figures and every single measurement."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from data_gen import Recipe
from helpers.units import format_bytes

from .contestants import read_everybody
from .figure import draw
from .harness import Plan, measure_all
from .records import Case, Contestant
from .report import find_faults, summarise, table


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--only", default="", help="names, or beginnings of names: ours,zarr")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of 512 B, warm and cold")
    parser.add_argument("--cases", default="warm,cold,limited")
    parser.add_argument("--workers", default="0,2")
    parser.add_argument("--folder", type=lambda name: Path(name).absolute(), default="build/peers")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return 1 where rows are wrong or the table is incomplete."""
    texts: list[str] = []
    faults: list[str] = []
    for plan in _plans(_parse(arguments)):
        found = list(measure_all(plan))
        lines = summarise(plan.contestants, found)
        inside = f" inside {format_bytes(plan.limit_bytes)}" if plan.limit_bytes else ""
        rows = f"{plan.recipe.count:,} rows of {format_bytes(plan.recipe.row_bytes)}"
        title = f"{rows}, shuffled batches of 256, {plan.cases[0].workers} workers{inside}"
        draw(lines, plan.cases, title).savefig(plan.folder.with_suffix(".png"))
        everything = json.dumps([asdict(one) for one in found], indent=1)
        plan.folder.with_suffix(".json").write_text(everything)
        texts.append(f"{title}\n\n{table(lines, plan.cases)}\n")
        plan.folder.with_name("table.md").write_text("".join(texts))
        faults += [f"wrong or missing: {what}\n" for what in find_faults(lines, plan.cases)]
    sys.stdout.writelines(texts + faults)
    return 1 if faults else 0


def _plans(given: argparse.Namespace) -> Iterator[Plan]:
    """Yield a plan for the small rows and one for the large, as far as their cases are wanted."""
    small, large = Recipe(given.rows, order="sorted"), Recipe(131_072, (64, 64), order="sorted")
    contestants = _choose(given.only)
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, recipe, kinds in (("features", small, "warm cold"), ("limited", large, "limited")):
        wanted = [cache for cache in kinds.split() if cache in given.cases.split(",")]
        cases = tuple(Case(cache, int(n)) for cache in wanted for n in given.workers.split(","))
        folders = given.folder / name, given.folder / "environments"
        limit = recipe.nbytes // 4 if name == "limited" else 0
        if cases:
            yield Plan(contestants, cases, recipe, *folders, given.rounds, limit)


def _choose(only: str) -> tuple[Contestant, ...]:
    """Return who was asked for, and the limits that lie on the same stores."""
    everybody = read_everybody()
    readers = [one for one in everybody if one.name.startswith(tuple(only.split(",")))]
    if not readers:
        names = ", ".join(one.name for one in everybody)
        raise SystemExit(f"--only {only} matches nobody: {names}")
    stores = {"npy", *(one.store for one in readers)}
    limits = [one for one in everybody if one.group == "limit" and one.store in stores]
    return (*limits, *(one for one in readers if one not in limits))


if __name__ == "__main__":
    sys.exit(main())
