"""Sweeps over stored data: sessions, items of one session, leaves of one state."""

import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from clients import Clients, ask, request
from server import REQUESTS_A_ROUND, ROUNDS, Server
from sweep import (
    COLD,
    COLD_CPU,
    CONNECTIONS,
    DISK,
    RESIDENT,
    REST_SECONDS_MAX,
    RESTARTED,
    START,
    START_CPU,
    Operation,
    Sweep,
    at_rest,
    of,
    restarted,
    seeded,
)

PAGE = 100
FILLING_CONNECTIONS = 64
ACTIVE = 1_000
ITEMS_A_WRITE = 50_000
# A log that is shorter than this is a new one for each round, since what is appended would make it a longer one.
LONG = 10_000
SHORT_ROUNDS, SHORT_APPENDS = 20, 100
# Of requests that may look at the whole log.
FEW = 50
LEAVES_IN_AN_OBJECT = 100
# No limit of the server is reached, or it would be what is measured.
FLAGS = ["--sessions-max", "10000000", "--session-items-max", "100000000"]
FLAGS += ["--session-bytes-max", "64GiB", "--memory-budget", "16GiB"]


def item(step: int) -> bytes:
    """A small step of an agent."""
    return b'{"step":%d,"agent":"AppAgent","action":"click","control":"Save","status":"CONTINUE"}' % step


def log_of(session: str) -> str:
    return f"/v1/sessions/{session}/trajectories"


def sessions(folder: Path, steps: list[int]) -> Iterator[dict]:
    """Sessions of one item; the active ones lie evenly among the names."""
    rng, there = seeded(), 0
    with Server(folder, FLAGS) as server:
        for count in steps:
            with Clients(server.port, FILLING_CONNECTIONS) as clients:
                new = (request("POST", log_of(f"task-{number:07}"), item(1)) for number in range(there, count))
                clients.run(new, 201)
            there, active = count, min(count, ACTIVE)
            server.rest(REST_SECONDS_MAX)

            def post() -> bytes:
                number = rng.randrange(active) * (count // active)
                return request("POST", log_of(f"task-{number:07}"), item(2))

            def page() -> bytes:
                return request("GET", f"/v1/sessions?limit={PAGE}&after=task-{rng.randrange(count - PAGE):07}")

            with Clients(server.port, CONNECTIONS) as clients:
                row = of("post", server.cost(clients, lambda n: [post() for _ in range(n)], 201))
                server.rest(REST_SECONDS_MAX)
                if count > PAGE:
                    row |= of("list", server.cost(clients, lambda n: [page() for _ in range(n)]))
            yield {"count": count, **row, **at_rest(server), **restarted(server)}


def append_many(port: int, path: str, begin: int, end: int):
    """Items by the ten thousands, each request one commit."""
    for first in range(begin, end, ITEMS_A_WRITE):
        batch = b",".join(item(step) for step in range(first, min(first + ITEMS_A_WRITE, end)))
        ask(port, request("POST", path, b"[%b]" % batch))


def items(folder: Path, steps: list[int]) -> Iterator[dict]:
    with Server(folder, FLAGS) as server:
        there = 0
        for count in steps:
            if count < LONG:
                rounds, appends = SHORT_ROUNDS, SHORT_APPENDS
                paths = [log_of(f"short-{count}-{number}") for number in range(rounds + 1)]
                for path in paths:
                    append_many(server.port, path, 0, count)
            else:
                rounds, appends = ROUNDS, REQUESTS_A_ROUND
                paths = [log_of("long")] * (rounds + 1)
                append_many(server.port, paths[0], there, count)
                there = count + (rounds + 1) * appends
            server.rest(REST_SECONDS_MAX)
            row, latest = log_costs(server, paths, appends)
            yield {"count": count, **row, **at_rest(server), **restarted(server, latest)}


def log_costs(server: Server, paths: list[str], appends: int) -> tuple[dict, bytes]:
    """The costs of a log's operations, its appends by the rounds' paths; and the read of its latest entry."""
    rest, last = iter(paths), paths[-1]

    def round_of_appends(count: int) -> list[bytes]:
        path = next(rest)
        return [request("POST", path, item(step)) for step in range(count)]

    latest = request("GET", f"{last}?latest=1")
    with Clients(server.port, CONNECTIONS) as clients:
        row = of("append", server.cost(clients, round_of_appends, 201, appends, len(paths) - 1))
        server.rest(REST_SECONDS_MAX)
        there = json.loads(ask(server.port, latest))["count"]
        page = request("GET", f"{last}?after={max(there - PAGE, 0)}&limit={PAGE}")
        row |= of("page", server.cost(clients, lambda n: [page] * n))
        row |= of("latest", server.cost(clients, lambda n: [latest] * n))
        prompt = request("GET", f"{last.removesuffix('/trajectories')}/prompt?max_tokens=2000")
        row |= of("prompt", server.cost(clients, lambda n: [prompt] * n, count=FEW))
        none = request("GET", f"{last}?steps=-1")
        row |= of("none", server.cost(clients, lambda n: [none] * n, count=FEW))
    return row, latest


def an_object(number: int, size: int) -> str:
    return "{" + ",".join(f'"k{leaf}":{number * size + leaf}' for leaf in range(size)) + "}"


def leaves(folder: Path, steps: list[int]) -> Iterator[dict]:
    """A state of objects with a hundred numbers each."""
    rng, values = seeded(), itertools.count(1_000)
    for count in steps:
        size = min(count, LEAVES_IN_AN_OBJECT)
        state = ",".join(f'"g{number}":{an_object(number, size)}' for number in range(count // size))
        root = "/v1/sessions/state"

        def leaf() -> str:
            return f"{root}/state/g{rng.randrange(count // size)}/k{rng.randrange(size)}"

        def puts(number: int) -> list[bytes]:
            """Each of another value, since a write that changes nothing is cheap."""
            return [request("PUT", leaf(), b"%d" % next(values)) for _ in range(number)]

        def page() -> bytes:
            return request("GET", f"{root}/state/g{rng.randrange(count // size)}")

        with tempfile.TemporaryDirectory(dir=folder) as own, Server(Path(own), FLAGS) as server:
            whole = '{"state":{%s}}' % state
            ask(server.port, request("PUT", f"{root}/blackboard", whole.encode()))
            server.rest(REST_SECONDS_MAX)
            with Clients(server.port, CONNECTIONS) as clients:
                row = of("put", server.cost(clients, puts))
                add = b'{"add":1}'
                row |= of("add", server.cost(clients, lambda n: [request("PATCH", leaf(), add) for _ in range(n)]))
                server.rest(REST_SECONDS_MAX)
                row |= of("get", server.cost(clients, lambda n: [request("GET", leaf()) for _ in range(n)]))
                row |= of("list", server.cost(clients, lambda n: [page() for _ in range(n)]))
            yield {"count": count, **row, **at_rest(server), **restarted(server, request("GET", leaf()))}


# Memory, disk and a start.
KEPT = [RESIDENT, RESTARTED, DISK, START, START_CPU]

SESSIONS = Sweep(
    name="sessions",
    title="Sessions",
    steps=[1, 10, 100, 1_000, 10_000, 100_000],
    full=[1_000_000],
    columns=[
        Operation("post", "POST of an item to an active one"),
        Operation("list", "GET of a page of 100 of them", least=1_000),
        *KEPT,
    ],
    measured=sessions,
    about=f"Each has one item; at most {ACTIVE:,} are active, which take the POSTs in no order, 16 at a time.",
)
ITEMS = Sweep(
    name="items",
    title="Items of one session",
    steps=[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
    full=[10_000_000],
    columns=[
        Operation("append", "POST of one more"),
        Operation("page", "GET of the last 100", least=100),
        Operation("latest", "GET of the latest"),
        Operation("prompt", "GET of the prompt, `max_tokens=2000`", least=100),
        Operation("none", "GET by a step that none has", least=1_000),
        *KEPT,
        COLD,
        COLD_CPU,
    ],
    measured=items,
    about=(
        f"Items of some {len(item(1000))} bytes in one log, {ITEMS_A_WRITE:,} to a write. The appends of a round make "
        f"a log longer by {SHORT_APPENDS} below {LONG:,} items, where each round has a log of its own, else by "
        f"{REQUESTS_A_ROUND:,}."
    ),
)
LEAVES = Sweep(
    name="leaves",
    title="Leaves of one state",
    steps=[10, 100, 1_000, 10_000, 100_000],
    full=[1_000_000],
    columns=[
        Operation("put", "PUT of one"),
        Operation("add", 'PATCH `{"add":1}` of one'),
        Operation("get", "GET of one"),
        Operation("list", "GET of an object of 100", least=100),
        *KEPT,
        COLD,
        COLD_CPU,
    ],
    measured=leaves,
    about=f"Numbers in objects of {LEAVES_IN_AN_OBJECT}, so that a GET of an object is a page; each request another leaf.",
)
