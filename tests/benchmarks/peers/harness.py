"""Measure everybody in turn: rounds, each with its limits, each measurement a fresh process."""

import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from helpers.units import format_rate

from .caches import set_cache
from .environments import NotInstalledError
from .fingerprints import Fingerprints
from .launch import ChildError
from .plan import Plan
from .processes import Processes
from .records import Case, Contestant, Job, Measurement, Proof, Source, Timing
from .stores import STORES, files_of, find_store

_TINY_ROWS = 2048  # read by each process first


class Harness:
    """Carries out a plan. Use as a context manager: it makes data, and may keep a process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sources: dict[str, tuple[Source, Source]] = {}  # by store: the whole, and a tiny one
        self._fingerprints = plan.folder / "fingerprints.npy"
        self._processes = Processes(plan.folder / "homes", plan.environments, keep=plan.one_process)

    def __enter__(self) -> "Harness":
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.close()
        if not self._plan.keep:
            shutil.rmtree(self._plan.folder, ignore_errors=True)

    def measure_all(self) -> Iterator[Measurement]:
        """Yield every measurement as it is made; who cannot take part, once, with the reason."""
        plan = self._plan
        plan.folder.mkdir(parents=True, exist_ok=True)
        Fingerprints.of(plan.recipe).save(self._fingerprints)
        for heat, contestants in enumerate(plan.heats(), 1):
            reasons = {one: self._prepare(one) for one in contestants}
            for one, reason in reasons.items():
                if reason:
                    yield Measurement(one.name, plan.cases[0], heat, 0, error=reason)
            present = [one for one, reason in reasons.items() if not reason]
            for number in range(1, plan.rounds + 1):
                for case in plan.cases:
                    yield from self._measure_round(present, case, heat, number)
            self._make_room()

    def _prepare(self, contestant: Contestant) -> str:
        """Make what a contestant needs, or return the reason why it cannot take part."""
        try:
            with self._processes.open(contestant) as child:
                if contestant.store not in self._sources:
                    self._sources[contestant.store] = (
                        find_store(STORES[contestant.store], self._source(contestant), child),
                        find_store(STORES[contestant.store], self._tiny(contestant), child),
                    )
        except (NotInstalledError, ChildError) as error:
            return f"skipped: {error}"
        return ""

    def _source(self, contestant: Contestant) -> Source:
        plan, folder = self._plan, self._plan.folder / contestant.store
        return Source(
            folder, folder, folder, plan.recipe, plan.batch_size, 0, plan.seed, plan.mix_bytes
        )

    def _tiny(self, contestant: Contestant) -> Source:
        folder = self._plan.folder / "tiny" / contestant.store
        recipe = replace(self._plan.recipe, count=min(_TINY_ROWS, self._plan.recipe.count))
        return replace(
            self._source(contestant),
            folder=folder, rows_path=folder, labels_path=folder, recipe=recipe,
        )  # fmt: skip

    def _make_room(self) -> None:
        """Remove what the next heat does not read."""
        for name in () if self._plan.keep else tuple(self._sources):
            if name != "npy":
                for source in self._sources.pop(name):
                    shutil.rmtree(source.folder)

    def _measure_round(
        self, contestants: Sequence[Contestant], case: Case, heat: int, number: int
    ) -> Iterator[Measurement]:
        """Measure each once, in an order of this round's own, so that nobody keeps a neighbour."""
        order = [contestant for contestant in contestants if contestant.takes(case)]
        random.Random(f"{number} {case}").shuffle(order)
        for contestant in order:
            measured = self._measure(
                contestant, case, Measurement(contestant.name, case, heat, number)
            )
            said = measured.error or format_rate(measured.rows_per_second)
            sys.stderr.write(f"round {number}, {case}: {contestant.title}: {said}\n")
            yield measured

    def _measure(self, contestant: Contestant, case: Case, empty: Measurement) -> Measurement:
        job = self._job(contestant, case, proves=empty.round == 1 and contestant.group != "limit")
        limit = self._plan.limit_bytes if case.cache == "limited" else None
        try:
            set_cache(case, files_of(job.source))
            with self._processes.open(contestant, limit) as child:
                answer = child.ask(job)
        except (ChildError, OSError) as error:
            return replace(empty, error=str(error))
        proof = answer.get("proof")
        return replace(
            empty, timing=Timing(**answer["timing"]), proof=Proof(**proof) if proof else None
        )

    def _job(self, contestant: Contestant, case: Case, *, proves: bool) -> Job:
        source, tiny = (replace(s, workers=case.workers) for s in self._sources[contestant.store])
        return Job(
            task="measure",
            module=contestant.module,
            variant=contestant.variant,
            source=source,
            seconds=self._plan.seconds,
            tiny=None if self._plan.one_process else tiny,
            fingerprints=self._fingerprints if proves else None,
        )
