"""The table that people read, and the CSV that holds every single measurement."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from .records import Case, Contestant, Measurement, Proof, Timing, names_of
from .summary import Line, Rate, limits_of, share_of_limit

_NOTES = """
Rows per second: the median over the rounds, (lowest to highest), and the share of its limit in the
same round: `np.fromfile` where the file is in the page cache, else one sequential read of the file.
`part`: not a whole epoch, for want of time. Labels per batch: distinct ones on class-sorted data,
and what a full shuffle gives. Parts per batch: of a hundred equal parts of the file.
"""
_COLUMNS = (
    *("contestant", "cache", "workers", "heat", "round"),
    *("error", "rows_per_second", "share_of_limit"),
)


def write_csv(path: Path, measurements: Sequence[Measurement]) -> None:
    """Write one line for each measurement: conditions, rates, and what was proved."""
    limits = limits_of(measurements)
    timing, proof = names_of(Timing), names_of(Proof)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*_COLUMNS, *timing, *(f"proof_{name}" for name in proof)])
        for one in measurements:
            table.writerow(
                [one.contestant, one.case.cache, one.case.workers, one.heat, one.round, one.error]
                + [round(one.rows_per_second, 1), share_of_limit(one, limits)]
                + [getattr(one.timing, name, "") for name in timing]
                + [getattr(one.proof, name, "") for name in proof]
            )


def table(lines: Sequence[Line], cases: Sequence[Case]) -> str:
    """Return the Markdown table of one plan, and below it who is missing, with the reasons."""
    head = ["reader", *(str(case) for case in cases), "rows", "labels per batch", "parts per batch"]
    rows = [head, ["---"] * len(head)]
    rows += [_row(line, cases) for line in lines if line.rates]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    missing = [f"- {reason}" for line in lines for reason in _missing(line)]
    return "\n".join([text, _NOTES, *missing]) + "\n"


def check_complete(
    contestants: Iterable[Contestant], cases: Sequence[Case], lines: Sequence[Line]
) -> list[str]:
    """Return what is neither measured nor explained: nothing, or the harness has a defect."""
    said = {line.contestant.name: {*line.rates, *line.errors} for line in lines}
    said |= {line.contestant.name: {*cases} for line in lines if line.skipped}
    return [
        f"{one.name}, {case}"
        for one in contestants
        for case in cases
        if one.takes(case) and case not in said.get(one.name, ())
    ]


def _row(line: Line, cases: Sequence[Case]) -> list[str]:
    cells = [_cell(line, case) for case in cases]
    return [line.contestant.title, *cells, _rightness(line), *_mixing(line)]


def _cell(line: Line, case: Case) -> str:
    rate = line.rates.get(case)
    if rate is None:
        return "failed" if case in line.errors else ""
    return describe(rate)


def describe(rate: Rate) -> str:
    """Return a rate as the table shows it: '609,000 (600,000 to 615,000), 27 %'."""
    spread = "" if rate.low == rate.high else f" ({_short(rate.low)} to {_short(rate.high)})"
    share = "" if rate.share is None else f", {rate.share:.0%}".replace("%", " %")
    return f"{_short(rate.median)}{spread}{share}{'' if rate.whole else ', part'}"


def _short(rate: float) -> str:
    """Return a rate with three figures: 1386512 -> '1,390,000'."""
    digits = max(0, len(str(int(rate))) - 3)
    return f"{round(rate, -digits):,.0f}"


def _rightness(line: Line) -> str:
    if line.contestant.group == "limit":
        return ""
    if not line.proofs:
        return "not proved"
    if line.right:
        whole = all(proof.whole for proof in line.proofs)
        return "right" if whole else f"right (of {min(p.rows for p in line.proofs):,})"
    worst = next(proof for proof in line.proofs if not proof.right)
    return (
        f"**WRONG**: {worst.wrong_rows} rows, {worst.wrong_labels} labels, "
        f"{worst.repeated} repeated, {worst.missing} missing of {worst.rows:,}"
    )


def _mixing(line: Line) -> tuple[str, str]:
    if not line.proofs:
        return "", ""
    least = min(line.proofs, key=lambda proof: proof.mixing)
    labels = f"{least.labels_per_batch:.1f} of {least.labels_if_shuffled:.1f}"
    parts = f"{least.parts_per_batch:.0f} of {least.parts_if_shuffled:.0f}"
    return labels if line.mixed else f"{labels}, **not mixed**", parts


def _missing(line: Line) -> list[str]:
    title = line.contestant.title
    if line.skipped:
        return [f"{title}: {line.skipped}"]
    return [f"{title}, {case}: {error}" for case, error in line.errors.items()]
