"""RESULTS.md of the growth: a table for each sweep, with the growth of each figure."""

from collections.abc import Iterable

from figures import number
from growth import FLAT, GROWS, LOGARITHMIC, PROPORTIONAL, Growth, growth
from report import listed, table
from sweep import Column, Operation, Result, Sweep

METHOD = """\
- A **sweep** starts the binary that ships over an empty folder with its defaults, but for `--log warn` and bounds that are wide
  enough, and makes more of one thing step by step. At each step it waits until indexing and compaction are done with what
  came, measures, kills the server and starts it again.
- A **cost** is the processor time of the server's process (user and system, as in `/proc/PID/stat`, by the clock of the
  process) between the first request and the last answer, over the number of requests; what goes on behind them meanwhile
  counts. It is the lower quartile of 7 rounds of 1,000 requests (prompts and filters: 50) after one that does not count, since work beside it only ever
  adds to it. 16 connections each send the next request once the last was answered; any answer but the expected status ends
  the run. **p50 and p99** are the client's: a
  Python process, which shares the cores with the server.
- A **start** is the time from the start of the process to the first 200 of `/readyz`, after a kill. **Resident** is what
  the process holds once nothing is left to do; after a start, once the first read was answered where there is one.
- **Growth**: *{flat}* is at most 1.5 times from the smallest step to the largest; *{logarithmic}* at most 1.25 times a
  decade on average and 1.5 times in the last one. A sum, such as bytes in all, is *{proportional}* where one more thing adds
  at most 1.5 times as much in the last step as in the one before. {grows} is anything else. Where more things cost less at
  first, since they share something, the step of the least cost is the smallest. Wall-clock times are not judged.
""".format(flat=FLAT, logarithmic=LOGARITHMIC, proportional=PROPORTIONAL, grows=GROWS)


def written(sweeps: list[Sweep], results: dict[str, Result]) -> str:
    """The whole document, of the sweeps that were measured."""
    measured = [(sweep, results[sweep.name]) for sweep in sweeps if sweep.name in results]
    parts = [
        "# Growth",
        "What an operation costs as there is more of something. Made by `benches/growth/run --full`; do not edit, run it "
        "again. Figures that neither stay nor grow with the logarithm come first; "
        "[performance](../../docs/performance.md#growth) tells why they do.",
        "![Figures by the number of things, each over its value at the smallest step](growth.svg)",
        "## What grows",
        grown(measured),
    ]
    for sweep, result in measured:
        parts += [f"## {sweep.title}", sweep.about, steps(sweep, result), how(sweep, result)]
    parts += ["## How they are made", METHOD, "## The machine", listed(measured[-1][1].machine), runs(measured)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def runs(measured: list[tuple[Sweep, Result]]) -> str:
    """When each sweep ran, and beside what."""
    rows = [
        [sweep.title, result.date, result.commit, *(f"{load:.1f}" for load in result.load)]
        for sweep, result in measured
    ]
    return table(["sweep", "date", "blackboard", "load when it began", "when it ended"], rows)


def figure(value: float | None) -> str:
    if value is None:
        return ""
    return number(value) if value >= 0.1 else f"{value:.3f}"


def cells(column: Operation | Column, row: dict) -> list[str]:
    if row["count"] < column.least:
        return [""] * (2 if isinstance(column, Operation) else 1)
    if isinstance(column, Column):
        return [figure(row.get(column.key))]
    p50, p99 = (figure(row.get(f"{column.key}_{name}_ms")) for name in ("p50", "p99"))
    return [figure(row.get(f"{column.key}_cpu_us")), f"{p50}, {p99}"]


def heads(column: Operation | Column) -> Iterable[str]:
    if isinstance(column, Column):
        return [f"{column.title}, {column.unit}"]
    return [f"{column.title}, µs", "p50, p99 ms"]


def steps(sweep: Sweep, result: Result) -> str:
    """A row a step."""
    rows = []
    for row in result.rows:
        mark = "" if row["rested"] else " (not at rest)"
        rows.append([f"{row['count']:,}{mark}", *(cell for column in sweep.columns for cell in cells(column, row))])
    return table(["", *(head for column in sweep.columns for head in heads(column))], rows)


def judged(sweep: Sweep, result: Result) -> Iterable[tuple[Column, Growth]]:
    for column in sweep.judged():
        found = growth(column, result.rows)
        if found:
            yield column, found


def how(sweep: Sweep, result: Result) -> str:
    """How each figure of a sweep grows."""
    rows = [
        [
            column.title,
            f"{figure(found.last)} / {figure(found.first)} {column.unit}",
            figure(found.ratio),
            figure(found.a_decade),
            adds(column, found),
            found.kind,
        ]
        for column, found in judged(sweep, result)
    ]
    return table(["figure", "largest step / smallest", "ratio", "a decade", "one more adds in the last step (in the one before)", "growth"], rows)


def adds(column: Column, found: Growth) -> str:
    if not found.adds or found.kind == FLAT:
        return ""
    last, *before = found.adds
    earlier = f" ({figure(before[0])})" if before else ""
    return f"{figure(last)}{earlier} {column.part_unit}"


def grown(measured: list[tuple[Sweep, Result]]) -> str:
    """Those that ask for a reason."""
    rows = [
        [sweep.title, column.title, f"{figure(found.ratio)} over {found.decades:.0f} decades of things", adds(column, found)]
        for sweep, result in measured
        for column, found in judged(sweep, result)
        if found.kind == GROWS
    ]
    if not rows:
        return "Nothing: each figure is flat, logarithmic or in proportion."
    return table(["sweep", "figure", "ratio", "one more adds in the last step (in the one before)"], rows)
