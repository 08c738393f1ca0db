"""Turns of a round: contenders and loads, and the ratios between them."""

import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import backlog
import contenders
import load
from contenders import Running

CONNECTIONS = 64
CONNECTIONS_MANY = 256
# A load that leaves a processor idle most of the time.
PER_SECOND = 1000
PROMPT = f"{contenders.SESSION}/prompt"
PAGE = f"{contenders.SESSION}/trajectories?limit=100"


@dataclass(frozen=True)
class Turn:
    """One contender under one load. `ready` starts it and says with which request it is loaded."""

    key: str
    contender: str
    does: str
    connections: int
    ready: Callable
    # What must be there for it beyond what is built.
    needs: str | None = None
    # Requests a second; as many as it answers if that is missing.
    per_second: float | None = None
    # What waits until the work that its answers leave behind is done, if processor time counts until then.
    catch_up: Callable[[Running], None] | None = None


@dataclass(frozen=True)
class Bar:
    """What a figure must reach."""

    limit: float
    at_least: bool

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def text(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.limit:,g}"


@dataclass(frozen=True)
class Ratio:
    """A figure of a round: one turn's number over another's."""

    title: str
    over: str
    under: str
    bar: Bar | None
    of: str = "per_second"


@dataclass(frozen=True)
class Scale:
    """A figure that the other benches print as `FIGURE key value unit`."""

    title: str
    unit: str
    bar: Bar


def appends(start: Callable) -> Callable:
    """A contender that has begun with one item and is sent more."""

    @contextmanager
    def ready(folder: Path):
        with start(folder) as running:
            yield running, load.append(running, folder)

    return ready


def reads(start: Callable, path: str) -> Callable:
    """A board of PROMPT_ITEMS items of which this is read."""

    @contextmanager
    def ready(folder: Path):
        with start(folder) as running:
            load.fill(running)
            expect(running, path, 200)
            yield running, ["GET", path, "-"]

    return ready


@contextmanager
def unchanged(folder: Path):
    """The same board, read by somebody who has its prompt already."""
    with contenders.blackboard(folder) as running:
        load.fill(running)
        headers, _ = expect(running, PROMPT, 200)
        tag = {"If-None-Match": headers["ETag"]}
        expect(running, PROMPT, 304, tag)
        yield running, ["GET", PROMPT, "-", f"If-None-Match: {headers['ETag']}"]


@contextmanager
def adds(folder: Path):
    """A number in the state to which each request adds one."""
    with contenders.blackboard(folder) as running:
        file = folder / "add.json"
        file.write_text('{"add":1}')
        path, json = f"{contenders.SESSION}/state/counter", "Content-Type: application/json"
        status, _, answer = running.request("PUT", path, "0", {"Content-Type": "application/json"})
        if status != 201:
            raise load.Failed(f"PUT {path}: {status} {answer[:200]!r}")
        # The number is no item of a log.
        yield replace(running, count=None), ["PATCH", path, file, json]


def static(path: str) -> Callable:
    """A file of the very bytes that the board has at this path."""

    @contextmanager
    def ready(folder: Path):
        with contenders.blackboard(folder) as running:
            load.fill(running)
            body = expect(running, path, 200)[1]
        file = folder / "body.json"
        file.write_bytes(body)
        with contenders.bare_axum(folder, file) as running:
            if expect(running, "/static", 200)[1] != body:
                raise load.Failed("the static body is another one")
            yield running, ["GET", "/static", "-"]

    return ready


def expect(running: Running, path: str, status: int, headers=None):
    got, answered, body = running.request("GET", path, headers=headers)
    if got != status:
        raise load.Failed(f"GET {path}: {got} instead of {status}, {body[:200]!r}")
    return answered, body


def logged(folder: Path):
    return contenders.blackboard(folder, level="info")


def without_search(folder: Path):
    return contenders.blackboard(folder, "--search", "off")


def before(folder: Path):
    return contenders.blackboard(folder, binary=contenders.BEFORE)


@contextmanager
def in_memory(_: Path):
    """The server with its data where no disk can stall it."""
    with (
        tempfile.TemporaryDirectory(dir=contenders.MEMORY, prefix="blackboard-") as folder,
        contenders.blackboard(Path(folder)) as running,
    ):
        yield running


def plain(folder: Path):
    return contenders.original(folder, *contenders.PLAIN)


def tuned(folder: Path):
    return contenders.original(folder, *contenders.TUNED)


OURS, BARE, REDIS = "blackboard", "bare axum", "Redis + webdis"
OFF, BEFORE = "blackboard, `--search off`", "blackboard before"
PLAIN, TUNED = "Python, FastAPI on uvicorn", "Python, the same tuned"
POST = f"POST an item of {load.ITEM_BYTES} B"
GET = f"GET the prompt of {load.PROMPT_ITEMS:,} items"



def caught_up(key: str, contender: str, start: Callable, needs: str | None = None) -> list[Turn]:
    """POSTs at full rate and at PER_SECOND, with the processor time until index and compaction have caught up."""
    does, ready, wait = f"{POST}, until caught up", appends(start), backlog.wait
    return [
        Turn(f"{key}_caught_up", contender, does, CONNECTIONS, ready, needs, None, wait),
        Turn(f"{key}_paced", contender, f"{does}, {PER_SECOND:,}/s", CONNECTIONS, ready, needs, PER_SECOND, wait),
    ]


TURNS = [
    Turn("post", OURS, POST, CONNECTIONS, appends(contenders.blackboard)),
    Turn("bare", BARE, POST, CONNECTIONS, appends(contenders.bare_axum)),
    Turn("unchanged", OURS, f"{GET}, unchanged (304)", CONNECTIONS, unchanged),
    Turn("post_logged", OURS, f"{POST}, a line in the log for each", CONNECTIONS, appends(logged)),
    Turn("add", OURS, "PATCH one number of the state by `add`", CONNECTIONS, adds),
    Turn("redis", REDIS, POST, CONNECTIONS, appends(contenders.redis_webdis), "redis"),
    Turn("python", PLAIN, POST, CONNECTIONS, appends(plain), "python"),
    Turn("python_tuned", TUNED, POST, CONNECTIONS, appends(tuned), "python"),
    Turn("prompt", OURS, GET, CONNECTIONS, reads(contenders.blackboard, PROMPT)),
    Turn("static", BARE, "GET a static body of the same bytes", CONNECTIONS, static(PROMPT)),
    Turn("page", OURS, "GET a page of 100 entries", CONNECTIONS, reads(contenders.blackboard, PAGE)),
    Turn("static_page", BARE, "GET a static body of the bytes of that page", CONNECTIONS, static(PAGE)),
    Turn("python_prompt", TUNED, GET, CONNECTIONS, reads(tuned, PROMPT), "python"),
    Turn("post_many", OURS, POST, CONNECTIONS_MANY, appends(contenders.blackboard)),
    Turn("bare_many", BARE, POST, CONNECTIONS_MANY, appends(contenders.bare_axum)),
    Turn(
        "post_many_memory",
        OURS,
        f"{POST}, the data in memory",
        CONNECTIONS_MANY,
        appends(in_memory),
        "memory",
    ),
    *caught_up("post", OURS, contenders.blackboard),
    *caught_up("off", OFF, without_search),
    *caught_up("before", BEFORE, before, "before"),
    Turn("bare_paced", BARE, f"{POST}, {PER_SECOND:,}/s", CONNECTIONS, appends(contenders.bare_axum), None, PER_SECOND),
]

# What a POST costs in the end.
COSTS = [
    Ratio(
        "Processor time of a durable POST until index and compaction have caught up / bare axum POST",
        "post_caught_up",
        "bare",
        None,
        "cpu_seconds_per_1000",
    ),
    Ratio("The same with `--search off`", "off_caught_up", "bare", Bar(2.2, False), "cpu_seconds_per_1000"),
    Ratio(
        "Processor time of a durable POST until caught up / of the binary before",
        "post_caught_up",
        "before_caught_up",
        Bar(0.5, False),
        "cpu_seconds_per_1000",
    ),
    Ratio(
        f"Processor time until caught up / bare axum POST, at {PER_SECOND:,} a second",
        "post_paced",
        "bare_paced",
        None,
        "cpu_seconds_per_1000",
    ),
    Ratio(
        f"The same with `--search off`, at {PER_SECOND:,} a second",
        "off_paced",
        "bare_paced",
        None,
        "cpu_seconds_per_1000",
    ),
    Ratio(
        f"Processor time until caught up / of the binary before, at {PER_SECOND:,} a second",
        "post_paced",
        "before_paced",
        None,
        "cpu_seconds_per_1000",
    ),
]

RATIOS = [
    Ratio("Durable POST of an 800 B item / bare axum POST", "post", "bare", Bar(0.5, True)),
    Ratio("The same with a line in the log for each request, as is the default", "post_logged", "bare", None),
    Ratio("`add` on one path / durable POST", "add", "post", Bar(1, True)),
    Ratio("Processor time of a durable POST / bare axum POST", "post", "bare", None, "cpu_seconds_per_1000"),
    *COSTS,
    Ratio("Durable POST / Redis with `appendfsync always` behind webdis", "post", "redis", Bar(1.25, True)),
    Ratio(
        "Durable POST / Python lists behind FastAPI on uvicorn, not durable", "post", "python", Bar(15, True)
    ),
    Ratio("Durable POST / that Python with uvloop and httptools", "post", "python_tuned", None),
    Ratio("GET prompt of 1,000 items / static body of the same bytes", "prompt", "static", Bar(1, True)),
    Ratio("GET a page of 100 entries / static body of the same bytes", "page", "static_page", Bar(0.95, True)),
    Ratio(
        "GET prompt of 1,000 items / from Python with uvloop and httptools", "prompt", "python_prompt", None
    ),
    Ratio("Unchanged prompt by `If-None-Match` / bare axum POST", "unchanged", "bare", Bar(0.9, True)),
    Ratio(
        "p99 of durable POST on 64 connections / bare axum's", "post", "bare", Bar(1, False), "p99_ms"
    ),
    Ratio(
        "p99 of durable POST on 256 connections / bare axum's",
        "post_many",
        "bare_many",
        Bar(1, False),
        "p99_ms",
    ),
    Ratio(
        "The same with the data in memory, where no disk stalls",
        "post_many_memory",
        "bare_many",
        None,
        "p99_ms",
    ),
]

SCALES = {
    "prompt_vs_cpython": Scale(
        "Prompt of 1,000 items in process / CPython's `json.dumps` twice", "times faster", Bar(200, True)
    ),
    "append_large_ratio": Scale("Append to a board of 1,000,000 items / to an empty one", "", Bar(0.9, True)),
    "resident_ratio": Scale("Resident bytes a byte of item JSON, rendered once", "", Bar(2.4, False)),
    "resident_ratio_10000x20": Scale(
        "The same of 10,000 sessions with 20 items each", "", Bar(2.2, False)
    ),
    "disk_ratio": Scale("Bytes on disk after compaction / payload", "", Bar(1.25, False)),
    "restart_settled_seconds": Scale(
        "Restart with 1,000,000 compacted commits in 10,000 sessions", "s", Bar(1, False)
    ),
    "restart_unsettled_commits_per_second": Scale(
        "Restart with 200,000 commits that are not compacted", "commits/s", Bar(150_000, True)
    ),
    "budget_resident_mib": Scale(
        "100,000 sessions of 20 items with `--memory-budget 256MiB`, resident", "MiB", Bar(300, False)
    ),
    "cold_read_ms_median": Scale("First read of a cold one of these sessions, median", "ms", Bar(10, False)),
}
