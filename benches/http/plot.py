"""Plot of requests per second by contender, as an SVG for light and dark pages."""

from dataclasses import dataclass
from statistics import median
from xml.sax.saxutils import escape

from figures import Results, of_turn

WIDTH, LEFT, RIGHT, ROW, BAR = 760, 236, 96, 30, 18

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .small { font-size: 11px; fill: #59636e }
  .end { text-anchor: end }
  .page { fill: #ffffff; stroke: #d1d9e0 }
  .ours { fill: #0969da }
  .durable { fill: #6e7781 }
  .volatile { fill: #c4cbd3 }
  .range { stroke: #1f2328; stroke-width: 1.2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .page { fill: #0d1117; stroke: #3d444d }
    .ours { fill: #4493f8 }
    .durable { fill: #9198a1 }
    .volatile { fill: #4d5560 }
    .range { stroke: #f0f6fc }
  }
"""


@dataclass
class Row:
    label: str
    key: str
    look: str


PANELS = [
    (
        "Appends of an 800 B item, 64 connections: requests a second",
        [
            Row("bare axum, stores nothing", "bare", "volatile"),
            Row("blackboard, durable", "post", "ours"),
            Row("Redis + webdis, durable", "redis", "durable"),
            Row("Python lists, tuned, not durable", "python_tuned", "volatile"),
            Row("Python lists, not durable", "python", "volatile"),
        ],
    ),
    (
        "Prompts of 1,000 items, 64 connections: requests a second",
        [
            Row("bare axum, a static body", "static", "volatile"),
            Row("blackboard", "prompt", "ours"),
            Row("Python lists, tuned", "python_prompt", "volatile"),
        ],
    ),
]


def svg(results: Results) -> str:
    parts, top = [], 14
    for title, rows in PANELS:
        parts.append(f'<text class="title" x="16" y="{top + 18}">{escape(title)}</text>')
        top += 32
        drawn, top = panel(results, rows, top)
        parts += drawn
        top += 12
    note = f"{results.date}. Medians of {results.rounds} rounds; the line spans the slowest and the fastest."
    parts.append(f'<text class="small" x="16" y="{top + 8}">{escape(note)}</text>')
    height = top + 24
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(spoken(results))}">'
    )
    page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *parts, "</svg>", ""])


def panel(results: Results, rows: list[Row], top: int) -> tuple[list[str], int]:
    """Bars that share a scale, and where the next thing may begin."""
    found = {row.key: of_turn(results, row.key, "per_second") for row in rows}
    most = max((max(values) for values in found.values() if values), default=1)
    scale = (WIDTH - LEFT - RIGHT) / most
    parts = []
    for row in rows:
        values, middle = found[row.key], top + ROW / 2
        base = middle + 4.5
        parts.append(f'<text class="end" x="{LEFT - 10}" y="{base:.1f}">{escape(row.label)}</text>')
        if values:
            parts += bar(values, row.look, scale, middle, base)
        else:
            parts.append(f'<text class="small" x="{LEFT}" y="{base:.1f}">not measured</text>')
        top += ROW
    return parts, top


def bar(values: list[float], look: str, scale: float, middle: float, base: float) -> list[str]:
    """The median as a bar, the rounds as a line, the number behind both."""
    value, low, high = median(values), LEFT + min(values) * scale, LEFT + max(values) * scale
    width = max(value * scale, 1)
    return [
        f'<rect class="{look}" x="{LEFT}" y="{middle - BAR / 2:.1f}" width="{width:.1f}" height="{BAR}" rx="2"/>',
        f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
        f'<text x="{max(high, LEFT + width) + 8:.1f}" y="{base:.1f}">{value:,.0f}</text>',
    ]


def spoken(results: Results) -> str:
    """The plot in words, for those who do not see it."""
    told = []
    for title, rows in PANELS:
        bars = (
            f"{row.label} {median(values):,.0f}"
            for row in rows
            if (values := of_turn(results, row.key, "per_second"))
        )
        told.append(f"{title}: {'; '.join(bars)}")
    return ". ".join(told)
