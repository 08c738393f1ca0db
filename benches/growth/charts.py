"""Plot of the sweeps: one panel each, log-log, each figure relative to its value at the smallest step."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

import plot
from growth import points
from sweep import Result, Sweep
from tables import figure

WIDTH, LEFT, RIGHT, TOP, HEIGHT, LABEL = 860, 70, 380, 40, 180, 15
PANEL = TOP + HEIGHT + 36

# Told apart by people who see no red or no green; the same numbers of light and dark lines are of one figure.
LIGHT = ["#0550ae", "#bf3989", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#cf222e", "#1b7c83", "#24292f", "#bc4c00"]
DARK = ["#79c0ff", "#f778ba", "#56d364", "#e3b341", "#d2a8ff", "#8b949e", "#ff7b72", "#39c5cf", "#f0f6fc", "#f0883e"]


def colours(of: list[str]) -> str:
    return "\n".join(
        f"  polyline.c{at} {{ stroke: {colour} }} circle.c{at}, text.c{at} {{ fill: {colour} }}"
        for at, colour in enumerate(of)
    )


STYLE = f"""{plot.STYLE}
  .grid {{ stroke: #d1d9e0; stroke-width: 1 }}
  .line {{ fill: none; stroke-width: 2 }}
  .sum {{ stroke-dasharray: 5 4 }}
  .middle {{ text-anchor: middle }}
{colours(LIGHT)}
  @media (prefers-color-scheme: dark) {{
    .grid {{ stroke: #3d444d }}
  {colours(DARK)}
  }}
"""


@dataclass
class Line:
    """One figure of a panel."""

    label: str
    is_sum: bool
    # Number of things, and the figure over its first one.
    points: list[tuple[int, float]]


def lines(sweep: Sweep, result: Result) -> list[Line]:
    found = []
    for column in sweep.judged():
        known = points(column, result.rows)
        if len(known) < 2:
            continue
        first, last = known[0][1], known[-1][1]
        title = column.title.replace("`", "")
        label = f"{title}: {figure(first)} → {figure(last)} {column.unit}"
        found.append(Line(label, column.is_sum, [(count, value / first) for count, value in known]))
    return found


@dataclass
class Scale:
    """Places of a panel, in decades."""

    top: float
    left: float
    right: float
    low: int
    high: int

    def x(self, count: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(count) - self.left) / (self.right - self.left)

    def y(self, ratio: float) -> float:
        return self.top + HEIGHT * (self.high - math.log10(ratio)) / (self.high - self.low)


def panel(sweep: Sweep, result: Result, top: float) -> list[str]:
    drawn = lines(sweep, result)
    counts = [row["count"] for row in result.rows]
    ratios = [ratio for line in drawn for _, ratio in line.points]
    low, high = math.floor(math.log10(min(ratios))), max(math.ceil(math.log10(max(ratios))), 1)
    scale = Scale(top + TOP, math.log10(counts[0]), math.log10(counts[-1]), low, high)
    parts = [f'<text class="title" x="16" y="{top + 24}">{escape(sweep.title)}</text>', *grid(scale, counts)]
    places = spread([scale.y(line.points[-1][1]) for line in drawn], scale.top, scale.top + HEIGHT)
    for at, (line, place) in enumerate(zip(drawn, places)):
        path = " ".join(f"{scale.x(count):.1f},{scale.y(ratio):.1f}" for count, ratio in line.points)
        look = f"line c{at}{' sum' if line.is_sum else ''}"
        end = scale.x(line.points[-1][0]), scale.y(line.points[-1][1])
        parts += [
            f'<polyline class="{look}" points="{path}"/>',
            f'<circle class="c{at}" cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="2.5"/>',
            f'<text class="c{at}" style="font-size:12px" x="{WIDTH - RIGHT + 14}" y="{place + 4:.1f}">'
            f"{escape(line.label)}</text>",
        ]
    return parts


def grid(scale: Scale, counts: list[int]) -> list[str]:
    """A line a decade each way, with its number."""
    parts = []
    for decade in range(scale.low, scale.high + 1):
        y = scale.y(10**decade)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small end" x="{LEFT - 8}" y="{y + 4:.1f}">× {10**decade:g}</text>')
    for decade in range(math.ceil(scale.left), math.floor(scale.right) + 1):
        x = scale.x(10**decade)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{scale.top:.1f}" y2="{scale.top + HEIGHT:.1f}"/>'
        )
        parts.append(
            f'<text class="small middle" x="{x:.1f}" y="{scale.top + HEIGHT + 16:.1f}">{short(10**decade)}</text>'
        )
    return parts


def short(count: int) -> str:
    """A power of ten that has room beside the next one."""
    for unit, name in ((10**6, "M"), (10**4, "0k")):
        if count >= unit:
            return f"{count // unit}{name}"
    return f"{count:,}"


def spread(wanted: list[float], top: float, bottom: float) -> list[float]:
    """Those places, moved so far that labels do not lie on each other."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    places, free = [0.0] * len(wanted), top
    for at in order:
        places[at] = max(wanted[at], free)
        free = places[at] + LABEL
    free = bottom
    for at in reversed(order):
        places[at] = min(places[at], free)
        free = places[at] - LABEL
    return places


def svg(sweeps: list[Sweep], results: dict[str, Result]) -> str:
    measured = [(sweep, results[sweep.name]) for sweep in sweeps if sweep.name in results]
    measured = [(sweep, result) for sweep, result in measured if len(result.rows) > 1]
    parts = []
    for at, (sweep, result) in enumerate(measured):
        parts += panel(sweep, result, at * PANEL)
    note = (
        "Each figure over its value at the smallest step; both axes logarithmic. Dashed: sums, which grow with the things."
    )
    height = len(measured) * PANEL + 32
    parts.append(f'<text class="small" x="16" y="{height - 14}">{note}</text>')
    spoken = ". ".join(
        f"{sweep.title}: {'; '.join(line.label for line in lines(sweep, result))}" for sweep, result in measured
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(spoken, {chr(34): "&quot;"})}">'
    )
    page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *parts, "</svg>", ""])
