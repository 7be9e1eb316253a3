"""From single measurements to what is said about a contestant: medians, spreads, ratios, proofs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from .contestants import REFERENCE
from .records import Case, Contestant, Measurement, Proof

MIXED = 0.9  # of a full shuffle's distinct labels in a batch: below it, an epoch is not mixed


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second over the rounds, and as a share of the limit taken in the same round."""

    median: float
    low: float
    high: float
    share: float | None  # None where the limit was not measured
    whole: bool  # every round went through a whole epoch


@dataclass(frozen=True)
class Line:
    """One contestant: its rates under each case, what was proved, and why something is missing."""

    contestant: Contestant
    rates: dict[Case, Rate]
    errors: dict[Case, str]
    proofs: tuple[Proof, ...]

    @property
    def skipped(self) -> str:
        """Return why it was not measured at all, or nothing."""
        return "" if self.rates else "; ".join(dict.fromkeys(self.errors.values()))

    @property
    def mixing(self) -> float | None:
        """Return the least share of a full shuffle's distinct labels, None where not measured."""
        return min((proof.mixing for proof in self.proofs), default=None)

    @property
    def mixed(self) -> bool:
        """Return whether its batches are about as mixed as a full shuffle's."""
        return self.mixing is not None and self.mixing >= MIXED

    @property
    def right(self) -> bool:
        """Return whether everything it handed out was right, each time it was looked at."""
        return bool(self.proofs) and all(proof.right for proof in self.proofs)


def summarise(contestants: Sequence[Contestant], measurements: Sequence[Measurement]) -> list[Line]:
    """Return a line for each contestant that was asked for, in their order."""
    limits = limits_of(measurements)
    return [
        _line(one, [m for m in measurements if m.contestant == one.name], limits)
        for one in contestants
    ]


_Limits = dict[tuple[int, int, str], float]


def share_of_limit(measured: Measurement, limits: _Limits) -> float | None:
    """Return a rate as a share of the limit of its heat and round, None where there is none."""
    limit = limits.get((measured.heat, measured.round, measured.case.cache))
    return measured.rows_per_second / limit if limit else None


def limits_of(measurements: Iterable[Measurement]) -> _Limits:
    """Return the rates that others are compared with, by heat, round and cache."""
    return {
        (one.heat, one.round, one.case.cache): one.rows_per_second
        for one in measurements
        if one.contestant == REFERENCE[one.case.cache] and one.timing
    }


def _line(contestant: Contestant, found: list[Measurement], limits: _Limits) -> Line:
    cases = dict.fromkeys(one.case for one in found)
    rates, errors = {}, {}
    for case in cases:
        timed = [one for one in found if one.case == case and one.timing]
        failed = [one.error for one in found if one.case == case and one.error]
        if timed:
            rates[case] = _rate(timed, limits)
        if failed:
            errors[case] = failed[0]
    proofs = tuple(one.proof for one in found if one.proof)
    return Line(contestant, rates, errors, proofs)


def _rate(timed: list[Measurement], limits: _Limits) -> Rate:
    rates = [one.rows_per_second for one in timed]
    shares = [share for one in timed if (share := share_of_limit(one, limits)) is not None]
    return Rate(
        median(rates),
        min(rates),
        max(rates),
        median(shares) if shares else None,
        all(one.timing.whole for one in timed if one.timing),
    )
