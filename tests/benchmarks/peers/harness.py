"""Measure everybody in turn: rounds, each with its limits, each measurement a fresh process."""

import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data_gen import Recipe, ensure
from helpers.page_cache import evict, resident_bytes

from .contestants import find
from .epoch import measure
from .processes import CannotRunError, find_python, in_child
from .records import Case, Contestant, Measurement, Source

_CHUNK_BYTES = 1 << 18  # of compressed HDF5: 512 rows of 512 bytes
_READ_BYTES = 8 << 20
_TINY_ROWS = 2048  # read by each process first
_EPOCH, _MAKING, _GRACE = 15.0, 3600.0, 180.0  # seconds: at most of one epoch; a store; imports


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is measured, under which conditions, on what data, and where everything is kept."""

    contestants: tuple[Contestant, ...]
    cases: tuple[Case, ...]
    recipe: Recipe
    folder: Path  # of the data
    environments: Path
    rounds: int = 3
    limit_bytes: int = 0  # of memory; 0: none


def measure_all(plan: Plan) -> Iterator[Measurement]:
    """Yield every measurement; who cannot take part, once, with the reason. End if interrupted."""
    sources: dict[str, list[Source]] = {}  # of a store: all rows, and a few
    few = replace(plan.recipe, count=min(_TINY_ROWS, plan.recipe.count))
    present = []
    try:
        for one in plan.contestants:
            whole, tiny = (plan.folder / f"{one.store}{end}" for end in ("", "-tiny"))
            wanted = Source(whole, plan.recipe), Source(tiny, few)
            try:
                python = find_python(one.pins, plan.environments)
                if one.store not in sources:
                    sources[one.store] = [make_store(one, part, python) for part in wanted]
                present.append((one, python))
            except (CannotRunError, OSError) as error:
                yield Measurement(one.name, plan.cases[0], 0, error=f"skipped: {error}")
        for number in range(1, plan.rounds + 1):
            for case in plan.cases:
                order = [(one, python) for one, python in present if one.takes(case)]
                random.Random(f"{number} {case}").shuffle(order)  # nobody keeps a neighbour
                for one, python in order:
                    empty = Measurement(one.name, case, number)
                    yield _measure(plan, one, python, sources[one.store], empty)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
    finally:
        shutil.rmtree(plan.folder, ignore_errors=True)


def _measure(
    plan: Plan, one: Contestant, python: Path, sources: Sequence[Source], empty: Measurement
) -> Measurement:
    whole, tiny = (replace(source, workers=empty.case.workers) for source in sources)
    try:
        set_cache(whole.folder, warm=empty.case.cache == "warm")
        asked = one, whole, tiny, _EPOCH, empty.round == 1
        patience, limit = 2 * _EPOCH + _GRACE, plan.limit_bytes
        found = in_child(measure, *asked, seconds=patience, python=python, limit_bytes=limit)
        measured = replace(empty, timing=found[0], proof=found[1])
    except (CannotRunError, OSError) as error:
        measured = replace(empty, error=str(error))
    said = f"{measured.timing.rate:,.0f} rows/s" if measured.timing else measured.error
    sys.stderr.write(f"round {empty.round}, {empty.case}: {one.title}: {said}\n")
    return measured


def make_store(one: Contestant, source: Source, python: Path) -> Source:
    """Make a store, and return its source with the paths of its files.

    A peer's is made by `make_STORE` beside its loader, in a process of its own environment.
    """
    recipe, (kind, _, packing) = source.recipe, one.store.partition("-")
    if kind not in ("npy", "hdf5"):
        source.folder.mkdir(parents=True)
        make = find(f"{one.function.split('.')[0]}.make_{kind}")
        in_child(make, source, python=python, seconds=_MAKING)
        return source
    chunk = max(1, min(_CHUNK_BYTES // recipe.row_bytes, recipe.count)), *recipe.row_shape
    packed: dict[str, Any] = {"chunks": chunk, "compression": packing} if packing else {}
    packed |= {"row_shape": recipe.row_shape, "order": recipe.order}
    made = ensure(kind, source.folder, rows=recipe.count, progress=False, **packed)
    return replace(source, paths=(made.rows_path, made.labels_path))


def set_cache(folder: Path, *, warm: bool) -> None:
    """Fetch or drop the pages of a store's files, or raise OSError where that does not hold."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb", buffering=0) as file:
            while warm and file.read(_READ_BYTES):
                pass
        if not warm:
            evict(path)
        here, size = resident_bytes(path), path.stat().st_size
        # A page may come or go while we look, and in a small file it is a large share.
        if here is None or abs(here - size * warm) > size / 100 + (1 << 16):
            raise OSError(f"{path.name}: {here} of {size} bytes are in the page cache")
