"""The measured process: `python -m tests.benchmarks.peers.child DESCRIPTOR`, one job a line.

Nothing is imported before the first job has come: by then the process stands in its memory group,
and what the imports take is charged there. Answers go to the descriptor, because libraries print.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer each line of standard input."""
    answers = os.fdopen(int(sys.argv[1]), "w")
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    from .records import Job

    try:
        return _carry_out(Job.from_json(asked))
    except Exception as error:  # noqa: BLE001  # whatever a library raises is the answer
        import traceback

        traceback.print_exc()
        first = (str(error).splitlines() or [""])[0]
        return {"error": f"{type(error).__name__}: {first}"[:200]}


def _carry_out(job: Any) -> dict[str, Any]:
    import gc
    import importlib
    import time
    from dataclasses import asdict, replace

    from .epoch import prove_epoch, time_epoch
    from .fingerprints import Fingerprints

    contestant = importlib.import_module(f".contestants.{job.module}", __package__)
    if job.task == "make":
        contestant.make(job.source)
        return {}
    if job.module == "limits":
        return {"timing": asdict(contestant.measure(job.source, job.variant, job.seconds))}
    start_up = 0.0
    if job.tiny is not None:
        for _ in range(2):  # the first time imports, the second does what every epoch has to
            tiny = time_epoch(contestant.load(job.tiny, job.variant), job.seconds)
            start_up = tiny.first_batch_seconds
    gc.collect()  # what was imported, or it falls into somebody's epoch and no other's
    start = time.perf_counter()
    loader = contestant.load(job.source, job.variant)
    opening = time.perf_counter() - start
    timing = replace(
        time_epoch(loader, job.seconds), opening_seconds=opening, start_up_seconds=start_up
    )
    if job.fingerprints is None:
        return {"timing": asdict(timing)}
    del loader
    again = contestant.load(job.source, job.variant)
    fingerprints = Fingerprints.load(job.fingerprints)
    proof = prove_epoch(again, job.source, fingerprints, job.seconds)
    return {"timing": asdict(timing), "proof": asdict(proof)}


if __name__ == "__main__":
    main()
