"""Sweeps over connections: watchers of one session, and idle connections."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from boards import item, log_of
from clients import Clients, Watchers, ask, request
from server import Server
from sweep import CONNECTIONS, REST_SECONDS_MAX, Column, Operation, Sweep, of

FLAGS = ["--connections-max", "16000", "--streams-max", "16000"]
# So many events are measured at each step, but within these numbers of POSTs.
EVENTS, POSTS_MIN, POSTS_MAX = 100_000, 20, 500
LOADING_CONNECTIONS = 64
HELD = Column("resident_mib", "resident", "MiB", "KiB", 2**-10)


def warm(server: Server) -> bool:
    """Has it take POSTs as it does later, so that what the allocator keeps for them is there beforehand; and whether it
    was at rest again afterwards."""
    with Clients(server.port, LOADING_CONNECTIONS) as clients:
        server.cost(clients, posts_beside, 201)
    return server.rest(REST_SECONDS_MAX)


def posts_beside(count: int) -> list[bytes]:
    return [request("POST", log_of("beside"), item(1))] * count


def fresh(folder: Path, steps: list[int]) -> Iterator[tuple[int, Server]]:
    """A server of its own for each step."""
    for count in steps:
        with tempfile.TemporaryDirectory(dir=folder) as own, Server(Path(own), FLAGS) as server:
            yield count, server


def watchers(folder: Path, steps: list[int]) -> Iterator[dict]:
    for count, server in fresh(folder, steps):
        ask(server.port, request("POST", log_of("watched"), item(1)))
        row = {"count": count, "rested": warm(server)}
        # Nobody watches: what a POST costs without events.
        with Watchers(server.port, "", 0) as nobody:
            alone_us, _ = watched_posts(server, nobody, POSTS_MAX)
        with Watchers(server.port, "/v1/sessions/watched/events", count) as streams:
            posts = max(POSTS_MIN, min(POSTS_MAX, EVENTS // count))
            cpu_us, row["last_ms"] = watched_posts(server, streams, posts)
            row["resident_mib"] = server.resident_mib()
            with Clients(server.port, CONNECTIONS) as clients:
                row |= of("beside", server.cost(clients, posts_beside, 201))
        yield row | {"event_cpu_us": (cpu_us - alone_us) / count}


def watched_posts(server: Server, streams: Watchers, posts: int) -> tuple[float, float]:
    """One POST after another, each once all have the event of the one before: the medians of the processor time of a
    POST with its events, and of the milliseconds until the last watcher has it."""
    session = json.loads(ask(server.port, request("GET", "/v1/sessions/watched")))
    first, cpu, took = session["revision"] + 1, [], []
    with Clients(server.port, 1) as client:
        for number in range(POSTS_MIN + posts):
            before, begun = server.cpu_us(), time.perf_counter()
            client.run([request("POST", log_of("watched"), item(number))], 201)
            at = streams.until(first + number)
            took.append((at - begun) * 1000)
            cpu.append(server.cpu_us() - before)
    return median(cpu[POSTS_MIN:]), median(took[POSTS_MIN:])


def connections(folder: Path, steps: list[int]) -> Iterator[dict]:
    each = request("GET", f"{log_of('beside')}?latest=1")
    for count, server in fresh(folder, steps):
        row = {"count": count, "rested": warm(server)}
        with Clients(server.port, count) as resting:
            resting.run([each] * count, 200)
            row["resident_mib"] = server.resident_mib()
            with Clients(server.port, LOADING_CONNECTIONS) as clients:
                row |= of("post", server.cost(clients, posts_beside, 201))
            # None of them was closed meanwhile.
            resting.run([each] * count, 200)
        yield row


WATCHERS = Sweep(
    name="watchers",
    title="Watchers of one session",
    steps=[1, 10, 100, 1_000],
    full=[3_000, 10_000],
    columns=[
        # Of one watcher, it is a difference of two POSTs that is smaller than what these differ by.
        Column("event_cpu_us", "processor time of an event delivered", "µs", least=10),
        Column("last_ms", "from the POST to the last watcher's event", "ms", by_wall_clock=True),
        Operation("beside", "POST to another session beside them"),
        HELD,
    ],
    measured=watchers,
    about="Streams of events. The POSTs come one after another, each once all watchers have the event of the one before.",
)
CONNECTED = Sweep(
    name="connections",
    title="Connections that rest",
    steps=[1, 10, 100, 1_000],
    full=[3_000, 10_000],
    columns=[
        Operation("post", "POST over 64 others"),
        HELD,
    ],
    measured=connections,
    about="Each was used for one request, is kept alive, and answers another one afterwards.",
)
