"""Measure everybody in turn: rounds, each with its limits, each measurement a fresh process."""

import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from helpers.budget import Group, make_group
from helpers.units import format_rate

from .caches import set_cache
from .environments import NotInstalled, find_python
from .fingerprints import Fingerprints
from .launch import Child, ChildError
from .plan import Plan
from .records import Case, Contestant, Job, Measurement, Proof, Source, Timing
from .stores import STORES, files_of, find_store


class Harness:
    """Carries out a plan. Use as a context manager: it may keep a process, and it makes data."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sources: dict[str, Source] = {}  # by store
        self._pythons: dict[str, Path] = {}  # by environment
        self._kept: dict[str, Child] = {}
        self._fingerprints = plan.folder / "fingerprints.npy"

    def __enter__(self) -> "Harness":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._kept.values():
            child.end()
        if not self._plan.keep:
            shutil.rmtree(self._plan.folder, ignore_errors=True)

    def measure_all(self) -> Iterator[Measurement]:
        """Yield every measurement as it is made; who cannot take part, once, with the reason."""
        plan = self._plan
        plan.folder.mkdir(parents=True, exist_ok=True)
        Fingerprints.of(plan.recipe).save(self._fingerprints)
        for heat, contestants in enumerate(plan.heats(), 1):
            present = []
            for contestant in contestants:
                reason = self._prepare(contestant)
                if reason:
                    yield Measurement(contestant.name, plan.cases[0], heat, 0, error=reason)
                else:
                    present.append(contestant)
            for number in range(1, plan.rounds + 1):
                for case in plan.cases:
                    yield from self._measure_round(present, case, heat, number)
            self._make_room()

    def _measure_round(
        self, contestants: Sequence[Contestant], case: Case, heat: int, number: int
    ) -> Iterator[Measurement]:
        """Measure each once, in an order of this round's own, so that nobody keeps a neighbour."""
        order = [contestant for contestant in contestants if contestant.takes(case)]
        random.Random(f"{number} {case}").shuffle(order)
        for contestant in order:
            measured = self._measure(contestant, case, heat, number)
            said = measured.error or format_rate(measured.rows_per_second)
            sys.stderr.write(f"round {number}, {case}: {contestant.title}: {said}\n")
            yield measured

    def _prepare(self, contestant: Contestant) -> str:
        """Make what a contestant needs, or return the reason why it cannot take part."""
        plan, name = self._plan, contestant.store
        folder = plan.folder / name
        source = Source(
            folder, folder, folder, plan.recipe, plan.batch_size, 0, plan.seed, plan.mix_bytes
        )
        try:
            python = find_python(contestant.environment, plan.environments)
            self._pythons[contestant.environment] = python
            if name not in self._sources:
                start = partial(self._start, contestant)
                self._sources[name] = find_store(STORES[name], source, start)
        except (NotInstalled, ChildError) as error:
            return f"skipped: {error}"
        return ""

    def _make_room(self) -> None:
        """Remove what the next heat does not read."""
        for name in () if self._plan.keep else tuple(self._sources):
            if name != "npy":
                shutil.rmtree(self._sources.pop(name).folder)

    def _measure(
        self, contestant: Contestant, case: Case, heat: int, number: int
    ) -> Measurement:
        source = replace(self._sources[contestant.store], workers=case.workers)
        proves = number == 1 and contestant.group != "limit"
        job = Job(
            "measure",
            contestant.module,
            contestant.variant,
            source,
            self._plan.seconds,
            self._fingerprints if proves else None,
        )
        measured = Measurement(contestant.name, case, heat, number)
        try:
            set_cache(case, files_of(source))
            with self._process(contestant, case) as child:
                answer = child.ask(job)
        except (ChildError, OSError) as error:
            return replace(measured, error=str(error))
        proof = answer.get("proof")
        return replace(
            measured, timing=Timing(**answer["timing"]), proof=Proof(**proof) if proof else None
        )

    @contextmanager
    def _process(self, contestant: Contestant, case: Case) -> Iterator[Child]:
        if self._plan.one_process:
            if contestant.environment not in self._kept:
                self._kept[contestant.environment] = self._start(contestant)
            yield self._kept[contestant.environment]
            return
        limit = self._plan.limit_bytes if case.cache == "limited" else None
        with _group(limit) as group, self._start(contestant, group) as child:
            yield child

    def _start(self, contestant: Contestant, group: Group | None = None) -> Child:
        home = self._plan.folder / "homes" / contestant.name
        return Child(self._pythons[contestant.environment], home, group)


@contextmanager
def _group(limit_bytes: int | None) -> Iterator[Group | None]:
    if limit_bytes is None:
        yield None
        return
    group = make_group()
    if group is None:
        raise ChildError("no memory group can be made here, so the kernel holds no limit")
    try:
        group.set_limit(limit_bytes)
        yield group
    finally:
        group.remove()
