"""From measurements to what people read: medians over the rounds, ratios and proofs, in a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .contestants import REFERENCE
from .records import Case, Contestant, Measurement, Proof, Timing

_MIXED = 0.9  # of a full shuffle's distinct labels in a batch: below it, an epoch is not mixed
_NOTES = """
Rows per second: the median over the rounds, (lowest to highest), and the share of its limit in the
same round: `np.fromfile` where the file is in the page cache, else one sequential read of the file.
`part`: not a whole epoch, for want of time. CPU: user and system seconds of the process and its
children for each GiB of rows handed out, case by case. Labels per batch: distinct ones on
class-sorted data, and what a full shuffle gives.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """What was found of one contestant, in all rounds."""

    contestant: Contestant
    rates: dict[Case, float]  # the medians
    cells: dict[Case, str]  # the same as the table shows them
    cpu: dict[Case, str]
    errors: dict[Case | None, str]  # None: it cannot take part
    proofs: tuple[Proof, ...]  # the worst mixed first

    @property
    def mixed(self) -> bool:
        """Return whether its batches are about as mixed as a full shuffle's."""
        return bool(self.proofs) and self.proofs[0].mixing >= _MIXED

    @property
    def right(self) -> bool:
        """Return whether everything it handed out was right, each time it was looked at."""
        return bool(self.proofs) and all(proof.right for proof in self.proofs)


def summarise(contestants: Sequence[Contestant], measurements: Sequence[Measurement]) -> list[Line]:
    """Return a line for each contestant that was asked for, in their order."""
    limits, lines = {}, []
    for one in measurements:
        if one.contestant == REFERENCE[one.case.cache] and one.timing:
            limits[one.case.cache, one.round] = one.timing.rate
    for contestant in contestants:
        found = [one for one in measurements if one.contestant == contestant.name]
        proofs = sorted((one.proof for one in found if one.proof), key=lambda proof: proof.mixing)
        errors = {one.case if one.round else None: one.error for one in found if one.error}
        cells = {case: "failed" for case in errors if case}
        line = Line(contestant, {}, cells, {}, errors, tuple(proofs))
        for case in dict.fromkeys(one.case for one in found if one.timing):
            timed = {one.round: one.timing for one in found if one.case == case and one.timing}
            shares = [
                timed[n].rate / limits[case.cache, n] for n in timed if (case.cache, n) in limits
            ]
            line.rates[case] = median(one.rate for one in timed.values())
            line.cells[case] = _describe(list(timed.values()), shares)
            line.cpu[case] = f"{median(one.cpu_seconds_per_gib for one in timed.values()):.3g}"
        lines.append(line)
    return lines


def _describe(timed: Sequence[Timing], shares: Sequence[float]) -> str:
    """Return a rate as the table shows it: '609,000 (600,000 to 615,000), 27 %'."""
    rates = [one.rate for one in timed]
    spread = f" ({short(min(rates))} to {short(max(rates))})" if len(rates) > 1 else ""
    share = f", {100 * median(shares):.0f} %" if shares else ""
    part = "" if all(one.whole for one in timed) else ", part"
    return f"{short(median(rates))}{spread}{share}{part}"


def short(rate: float) -> str:
    """Return a rate with three figures: 1386512 -> '1,390,000'."""
    return f"{round(rate, min(0, 3 - len(str(int(rate))))):,.0f}"


def find_faults(lines: Sequence[Line], cases: Sequence[Case]) -> list[str]:
    """Return who handed out wrong rows, and what is neither measured nor explained."""
    wrong = [f"{line.contestant.name}: rows" for line in lines if line.proofs and not line.right]
    return wrong + [
        f"{line.contestant.name}, {case}"
        for line in lines
        for case in cases
        if line.contestant.takes(case) and case not in line.cells and None not in line.errors
    ]


def table(lines: Sequence[Line], cases: Sequence[Case]) -> str:
    """Return the Markdown table of one plan, and below it who is missing, with the reasons."""
    head = ["reader", *map(str, cases), "CPU s per GiB", "rows", "labels per batch"]
    rows, errors = [head, ["---"] * len(head)], []
    for line in lines:
        if line.rates:
            cpu = " / ".join(line.cpu.get(case, "-") for case in cases)
            cells = [line.cells.get(case, "") for case in cases]
            rows.append([line.contestant.title, *cells, cpu, *_describe_proofs(line)])
        for case, error in line.errors.items():
            errors.append(f"- {line.contestant.title}{f', {case}' if case else ''}: {error}")
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), _NOTES, *errors, ""])


def _describe_proofs(line: Line) -> tuple[str, str]:
    """Return whether its rows were right, and how well they were mixed at the worst."""
    if not line.proofs:
        return "" if line.contestant.group == "limit" else "not proved", ""
    whole = all(proof.whole for proof in line.proofs)
    rows = "right" if whole else f"right (of {min(one.rows for one in line.proofs):,})"
    for one in line.proofs:
        if not one.right:
            rows = f"**WRONG**: {one.wrong_rows} rows, {one.wrong_labels} labels, "
            rows += f"{one.repeated} repeated, {one.missing} missing of {one.rows:,}"
    least, unmixed = line.proofs[0], "" if line.mixed else ", **not mixed**"
    labels = f"{least.labels_per_batch:.1f} of {least.labels_if_shuffled:.1f}{unmixed}"
    return rows, labels
