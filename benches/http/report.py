"""Report of a run: RESULTS.md, the plot, and the figures in README and docs/performance.md."""

from pathlib import Path

import backlog
import figures
import plot
from counters import EVENTS
from figures import Figure, Results
from turns import CONNECTIONS, COSTS, PER_SECOND, TURNS


METHOD = """\
- A **turn** starts one contender as a fresh process over an empty folder, loads it with
  [wrk](https://github.com/wg/wrk) over loopback for {seconds:g} s after {warm_up:g} s that do not count, and ends it.
  Nothing else of the run is alive meanwhile but wrk, which uses the same cores. A round takes every turn once; every
  second round takes them backwards.
- A **ratio** is made within a round, of two turns of it. The table has the median of the {rounds} rounds' ratios.
- The **item** is a step of an agent as UFO's trajectories have them, {item_bytes} bytes of JSON. wrk sends it again
  and again; one log takes them all. After a turn of appends at least as many items must be there as were answered.
- **blackboard** is the binary that ships with its defaults but for `--log warn`, since the others write no line for each
  request either, plain Python excepted; with its default log there is a row of its own. The log goes to a file.
- **bare axum** (`benches/http/bare-axum`) reads the body, looks at nothing, stores nothing, and answers with the
  server's headers and a body of the same length: same axum, runtime, allocator and profile.
- **Redis** has `appendonly yes` and `appendfsync always`, and no snapshots; webdis has a thread a core and its own
  number of connections to Redis's Unix socket (others were no faster). An item is `PUT /RPUSH/…`.
- **Python** (`benches/http/original.py`) is the original's lists and prompt behind FastAPI, in one process, as they
  must share them. It stores nothing. Plain is what `pip install fastapi uvicorn` gives; tuned has uvloop and
  httptools and no access log.
- The **static bodies** are the prompt and the page of the very board, byte for byte, served by bare axum from memory.
- **p50 and p99** are wrk's, which waits for an answer before it asks again: they are of a full server. wrk counts a
  stall once for each request that was to be sent meanwhile, so one sync that the disk stalls for 0.3 s is the p99 of
  its whole turn; the row with the data in memory tells what is the server's own. **CPU** is the
  contender's processes in user and system mode, **resident** what they hold at the end of the turn, on average and
  in the median like the rest.
- **Until caught up** means that the processor time is counted until the index has the last item, the journal is
  compacted, and the server has done nothing for {quiet:g} s, so that a merge of the index counts too. What the warm-up left
  behind is done before. bare axum leaves nothing behind. At {paced:,} a second the clients are those of
  `benches/http/posts.py`, which take turns; their times are their own, not wrk's. `benches/http/instructions.py` counts
  the instructions of a POST by group.
- What is not over HTTP is measured by `cargo bench` (`benches/*.rs`); each says in its head how.
"""

PERFORMANCE = """\
Measured on {date} on one machine ({machine}), all contenders
taking turns; medians of {rounds} rounds. [benches/RESULTS.md](../benches/RESULTS.md) has the absolute numbers and says
how each figure is made; `benches/http/run --all` makes all of this anew.

{table}

![Requests a second of the contenders](../benches/results.svg)
"""

HEADLINES = """\
## How fast

Server and load shared one machine ({machine}) on {date}; [performance](docs/performance.md) has all figures.

{table}
"""

# The turns of the README's table: what each did, and the ratio with its turn of comparison, by the beginning of its title.
HEADLINE_TURNS = {
    "post": ("Durable POST of an 800 B item", "Durable POST of an 800 B item / bare axum", "a bare axum POST"),
    "add": ("PATCH that adds to a number", "`add` on one path", "the POST above"),
    "page": ("GET a page of 100 entries", "GET a page of 100 entries", "a static body of the same bytes"),
    "prompt": ("GET the prompt of 1,000 items", "GET prompt of 1,000 items / static", "a static body of the same bytes"),
}


def table(head: list[str], rows: list[list[str]], right: bool = False) -> str:
    """A table in Markdown; `right` aligns all columns but the first to the right."""
    lines = [head, ["---", *["--:" if right else "---"] * (len(head) - 1)], *rows]
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in cells) + "|" for cells in lines)


def listed(facts: list[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def results_md(results: Results, item_bytes: int) -> str:
    everything = figures.ratios(results) + figures.scales(results)
    method = METHOD.format(
        seconds=results.seconds,
        warm_up=results.warm_up,
        rounds=results.rounds,
        item_bytes=item_bytes,
        quiet=backlog.QUIET_SECONDS,
        paced=PER_SECOND,
    )
    parts = [
        "# Results",
        f"Made on {results.date} by `benches/http/run`. Do not edit: run it again.",
        "## The machine and the versions",
        listed(results.machine + results.versions),
        "## Ratios",
        "Two turns of a round each, so that they can be compared between machines.",
        ratios_only(results),
        "## The figures",
        table(
            ["figure", "bar", "measured", "holds", "each round"],
            [[f.title, f.wanted(), f.measured(), f.holds(), f.each()] for f in everything],
        ),
        "![Requests a second of the contenders](results.svg)",
        "## What they are made of",
        "Medians of the rounds.",
        table(
            [
                "contender",
                "request",
                "connections",
                "requests/s",
                "each round",
                "p50 ms",
                "p99 ms",
                "CPU s a 1,000",
                "resident MiB",
            ],
            figures.absolute(results),
        ),
        *counted(results),
        *others(figures.others(results)),
        "## How they are made",
        method,
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def counted(results: Results) -> list[str]:
    rows = figures.counted(results)
    if not rows:
        return []
    head = ["contender", "request", "connections", *(title for title, _ in EVENTS.values())]
    told = "Medians of the rounds, each a request. perf counts a process from outside."
    return ["## Counted by `perf stat`", told, table(head, rows)]


def ratios_only(results: Results) -> str:
    """Ratios and their bars: what can be compared between machines."""
    rows = [[f.title, f.wanted(), f.measured(), f.holds()] for f in figures.ratios(results)]
    return table(["ratio", "bar", "measured", "holds"], rows)


def costs(results: Results) -> str:
    """What a POST costs until its index and compaction have caught up: the ratios, and microseconds."""
    found = [figures.ratio(results, of) for of in COSTS]
    ratios = [[f.title, f.wanted(), f.measured(), f.each()] for f in found]
    micros = [
        [turn.contender, turn.does, f"{figures.middle(results, turn.key, 'cpu_seconds_per_1000')[0] * 1000:,.0f}"]
        for turn in TURNS
        if turn.key in results.samples
    ]
    first = table(["ratio", "bar", "measured", "each round"], ratios)
    return f"{first}\n\n{table(['contender', 'request', 'processor time, µs'], micros)}"


def others(found: list[Figure]) -> list[str]:
    if not found:
        return []
    return [
        "## What else the benches said",
        table(["figure", "measured"], [[f.title, f.measured()] for f in found]),
    ]


def machine(results: Results) -> str:
    facts = dict(results.machine)
    cores = facts["cores"].partition(",")[0]
    return f"{facts['CPU']}, {cores} cores, {facts['memory']}, {facts['data on'].partition(' ')[0]}"


def performance(results: Results) -> str:
    """The figures that have a bar."""
    everything = figures.ratios(results) + figures.scales(results)
    rows = [[f.title, f.measured(), f.wanted()] for f in everything if f.bar and f.value is not None]
    return PERFORMANCE.format(
        date=results.date,
        machine=machine(results),
        rounds=results.rounds,
        table=table(["", "measured", "aim"], rows),
    )


def beginning(found: list[Figure], title: str) -> Figure:
    return next(f for f in found if f.title.startswith(title))


def headlines(results: Results) -> str:
    """Requests a second and their times, each beside its ratio."""
    ratios, rows = figures.ratios(results), []
    for key, (does, title, beside) in HEADLINE_TURNS.items():
        per_second, p50, p99 = figures.middle(results, key, "per_second", "p50_ms", "p99_ms")
        times = f"{figures.number(p50)} ms, {figures.number(p99)} ms"
        ratio = f"{beginning(ratios, title).measured()} of {beside}"
        rows.append([does, f"{per_second:,.0f}", times, ratio])
    return HEADLINES.format(
        date=results.date,
        machine=machine(results),
        table=table([f"{CONNECTIONS} connections", "requests/s", "p50, p99", "compared with"], rows),
    )


def replaced(text: str, marker: str, section: str) -> str:
    """A document with that section between its markers."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"there is no {begin} … {end}")
    return f"{before}{begin}\n{section}{end}{after}"


def write(results: Results, folder: Path, root: Path, into: Path, item_bytes: int):
    """The results and the plot into `folder`; README and docs/performance.md of `root` with their figures into `into`."""
    folder.joinpath("RESULTS.md").write_text(results_md(results, item_bytes))
    folder.joinpath("results.svg").write_text(plot.svg(results))
    (into / "docs").mkdir(exist_ok=True)
    for path, marker, text in (
        ("README.md", "headlines", headlines(results)),
        ("docs/performance.md", "figures", performance(results)),
    ):
        (into / path).write_text(replaced((root / path).read_text(), marker, text))
