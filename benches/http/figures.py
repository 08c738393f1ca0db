"""Figures from the samples of all rounds: ratios within a round, then their median."""

from dataclasses import dataclass, field
from statistics import median

from counters import EVENTS
from load import Sample
from turns import RATIOS, SCALES, TURNS, Bar, Ratio

NOT_MEASURED = "not measured"


@dataclass
class Results:
    """All that a run found out."""

    date: str
    machine: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    rounds: int
    seconds: float
    warm_up: float
    # True if perf counts what a request costs.
    counts: bool = False
    # By a turn's key: a sample a round, or why there is none.
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    # By a figure's key, as the other benches printed them.
    scale: dict[str, tuple[float, str]] = field(default_factory=dict)


@dataclass
class Figure:
    """A line of the table."""

    title: str
    bar: Bar | None
    # The median, or nothing where it was not measured; then `note` says why.
    value: float | None
    unit: str = ""
    rounds: list[float] = field(default_factory=list)
    note: str = ""

    def measured(self) -> str:
        if self.value is None:
            return f"{NOT_MEASURED}: {self.note}" if self.note else NOT_MEASURED
        return f"{number(self.value)} {self.unit}".strip()

    def each(self) -> str:
        return ", ".join(number(value) for value in self.rounds)

    def wanted(self) -> str:
        return f"{self.bar.text()} {self.unit}".strip() if self.bar else ""

    def holds(self) -> str:
        if self.bar is None or self.value is None:
            return ""
        return "yes" if self.bar.holds(self.value) else "**no**"


def number(value: float) -> str:
    """Three digits that count, and thousands that can be read."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(results: Results, of: Ratio) -> Figure:
    for key in (of.over, of.under):
        if key in results.missing:
            return Figure(of.title, of.bar, None, note=results.missing[key])
    pairs = zip(results.samples[of.over], results.samples[of.under])
    rounds = [getattr(over, of.of) / getattr(under, of.of) for over, under in pairs]
    return Figure(of.title, of.bar, median(rounds), rounds=rounds)


def ratios(results: Results) -> list[Figure]:
    return [ratio(results, of) for of in RATIOS]


def scales(results: Results) -> list[Figure]:
    """What the other benches said; the unit in the table is the one that the bar is in."""
    figures = []
    for key, scale in SCALES.items():
        value = results.scale[key][0] if key in results.scale else None
        figures.append(Figure(scale.title, scale.bar, value, scale.unit))
    return figures


def others(results: Results) -> list[Figure]:
    """Figures that no bar is set for."""
    rest = {key: of for key, of in results.scale.items() if key not in SCALES}
    return [Figure(f"`{key}`", None, value, unit) for key, (value, unit) in rest.items()]


def of_turn(results: Results, key: str, attribute: str) -> list[float]:
    return [getattr(sample, attribute) for sample in results.samples.get(key, [])]


def counted(results: Results) -> list[list[str]]:
    """A row a turn: what perf counted for a request, as far as this machine has the events."""
    rows = []
    for turn in TURNS:
        samples = [sample.counted for sample in results.samples.get(turn.key, []) if sample.counted]
        if samples:
            cells = [
                number(median(sample[event] for sample in samples)) if event in samples[0] else "not here"
                for event in EVENTS
            ]
            rows.append([turn.contender, turn.does, str(turn.connections), *cells])
    return rows


def middle(results: Results, key: str, *names: str) -> list[float]:
    """The medians of a turn."""
    return [median(of_turn(results, key, name)) for name in names]


def absolute(results: Results) -> list[list[str]]:
    """A row a turn: what was done how often, how fast and at what cost."""
    rows = []
    for turn in TURNS:
        start = [turn.contender, turn.does, str(turn.connections)]
        if turn.key in results.missing:
            rows.append([*start, f"{NOT_MEASURED}: {results.missing[turn.key]}", "", "", "", "", ""])
            continue
        middle = {
            name: median(of_turn(results, turn.key, name))
            for name in ("per_second", "p50_ms", "p99_ms", "cpu_seconds_per_1000", "resident_mib")
        }
        every = ", ".join(f"{value:,.0f}" for value in of_turn(results, turn.key, "per_second"))
        broken = sum(of_turn(results, turn.key, "broken"))
        if broken:
            every += f" ({broken} broke off or took too long)"
        rows.append(
            [
                *start,
                f"{middle['per_second']:,.0f}",
                every,
                number(middle["p50_ms"]),
                number(middle["p99_ms"]),
                f"{middle['cpu_seconds_per_1000']:.3f}",
                f"{middle['resident_mib']:,.0f}",
            ]
        )
    return rows
