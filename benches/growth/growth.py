"""Classes of growth: flat, logarithmic, proportional, or suspicious."""

import math
from dataclasses import dataclass

from sweep import Column

# Two measurements of the same thing may differ so much on a machine with other work.
NOISE = 1.5
# A cost of a + b·log n with b up to half of a stays below it on average over six decades.
LOGARITHMIC_A_DECADE_MAX = 1.25

FLAT, LOGARITHMIC, PROPORTIONAL, GROWS = "flat", "logarithmic", "in proportion", "**grows**"


@dataclass
class Growth:
    """One figure between the smallest and the largest step that say something of it."""

    first: float
    last: float
    decades: float
    kind: str
    # What one more thing adds, in the last decade and in the one before it; of sums only.
    adds: list[float]

    @property
    def ratio(self) -> float:
        return self.last / self.first

    @property
    def a_decade(self) -> float:
        return self.ratio ** (1 / self.decades)


def points(column: Column, rows: list[dict]) -> list[tuple[int, float]]:
    """The steps that say something of it."""
    found = ((row["count"], row.get(column.key)) for row in rows if row["count"] >= column.least)
    return [(count, value) for count, value in found if value is not None and value > 0]


def growth(column: Column, rows: list[dict]) -> Growth | None:
    """Nothing where fewer than two steps say something."""
    known = points(column, rows)
    if len(known) < 2:
        return None
    (begin, first), (end, last) = known[0], known[-1]
    decades = math.log10(end / begin)
    adds = []
    if column.part_unit:
        pairs = list(zip(known, known[1:]))[-2:]
        adds = [(high - low) / (m - n) / column.part for (n, low), (m, high) in reversed(pairs)]
    return Growth(first, last, decades, kind(known, adds), adds)


def kind(known: list[tuple[int, float]], adds: list[float]) -> str:
    """A sum that grows is judged by what one more thing adds, anything else by its ratios; both from the step on where
    the figure is least, for what many things share may cost the more the fewer they are."""
    known = known[min(range(len(known)), key=lambda at: known[at][1]) :]
    (smallest, first), (largest, last) = known[0], known[-1]
    if last <= NOISE * first:
        return FLAT
    if adds:
        # Beside what is there without any thing, the decade before may have added too little to be seen.
        before = known[-2][1]
        hidden = before <= NOISE * first
        return PROPORTIONAL if hidden or adds[0] <= NOISE * adds[1] else GROWS
    (begin, low), (end, high) = known[-2], known[-1]
    at_last = (high / low) ** (1 / math.log10(end / begin))
    is_slow = (last / first) ** (1 / math.log10(largest / smallest)) <= LOGARITHMIC_A_DECADE_MAX
    return LOGARITHMIC if is_slow and at_last <= NOISE else GROWS
