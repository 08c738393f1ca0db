#!/usr/bin/env python3
"""Latency of searches among many items, beside writes, and the index's cost to durable writes.

    benches/search.py [--server PATH] [--items N] [--queries N] [--seconds S]

Fills a server with N items (1,000,000) of 800 bytes in 100 sessions: words drawn by Zipf's law from 50,000. Then
searches for two words, drawn alike, `--queries` times (300), first alone and then beside 5,000 writes a second. Prints
the median and the 95th percentile of the times, the bytes of the index and of the texts, and resident memory.

Then fills another server with N items in 10,000 sessions, and searches with a token that reaches 1,000 of them.

The cost to writes: appends of one client with 64 connections for S seconds (8) to a server with `--search on` and to
one with `--search off`, in turn, five times each; the ratio of the medians. Reports figures without judging them.
"""

import argparse
import bisect
import http.client
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

WORDS, SESSIONS, AT_ONCE, BYTES = 50_000, 100, 1000, 800
# Many sessions, of which a token reaches some.
MANY, REACHED, TOKEN_PATTERN = 10_000, 1_000, "in-*"
WRITES_PER_S = 5000
RANDOM = random.Random(1)
VOCABULARY = ["".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=RANDOM.randint(3, 10))) for _ in range(WORDS)]
WEIGHTS = list(itertools.accumulate(1 / (n + 10) for n in range(WORDS)))


def word():
    return VOCABULARY[bisect.bisect(WEIGHTS, RANDOM.random() * WEIGHTS[-1])]


def text():
    return " ".join(RANDOM.choices(VOCABULARY, cum_weights=WEIGHTS, k=130))[:BYTES]


def ask(connection, method, path, body=None, token=None):
    headers = {"Content-Type": "application/json"} if body else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    read = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {read[:300]}")
    return json.loads(read)


def fill(server, items, sessions=SESSIONS, name="s{}".format, token=None):
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    revision, size, at_once = {}, 0, min(AT_ONCE, items // sessions)
    for batch in range(items // at_once):
        session = name(batch % sessions)
        texts = [text() for _ in range(at_once)]
        size += sum(map(len, texts))
        body = json.dumps([{"t": one} for one in texts])
        revision[session] = ask(connection, "POST", f"/v1/sessions/{session}/trajectories", body, token)["revision"]
    begun = time.monotonic()
    for session, last in revision.items():
        while True:
            try:
                ask(connection, "GET", f"/v1/search?q=zz&session={session}&min_revision={last}&wait=60s", token=token)
                break
            except RuntimeError as error:
                if "503" not in str(error):
                    raise
                time.sleep(1)
    print(f"indexed {time.monotonic() - begun:.1f} s after the last write")
    return size


def queries(server, number, token=None):
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    times = []
    for _ in range(number):
        path = f"/v1/search?q={urllib.parse.quote(word() + ' ' + word())}"
        begun = time.perf_counter()
        ask(connection, "GET", path, token=token)
        times.append((time.perf_counter() - begun) * 1000)
    return f"median {statistics.median(times):.1f} ms, p95 {statistics.quantiles(times, n=20)[-1]:.1f} ms"


def wrk(server, seconds, rate=None):
    script = tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False)
    with script:
        # The answer takes two milliseconds or so beside the delay.
        pause = f"function delay() return {int(64 / rate * 1000) - 2} end\n" if rate else ""
        script.write(
            pause + "local n = 0\nrequest = function()\n  n = n + 1\n"
            '  return wrk.format("POST", "/v1/sessions/s" .. (n % 100) .. "/trajectories",\n'
            f'    {{["Content-Type"] = "application/json"}}, [[{json.dumps({"t": text()})}]])\nend\n'
        )
    host, port = server.address
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", script.name, f"http://{host}:{port}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def rate_of(process):
    out, _ = process.communicate()
    if "Non-2xx" in out:
        raise RuntimeError(out)
    return float(next(line.split(":")[1] for line in out.splitlines() if line.startswith("Requests/sec")))


def created(server, name, *arguments):
    """A new token."""
    return server.run("token", "create", "--name", name, *arguments).stdout.split()[-1]


def many_sessions(server, items, number):
    """Queries with a token that reaches some of many sessions."""
    with Server(server, arguments=["--memory-budget", "4GiB", "--token-rate", "0"]) as other:
        admin = created(other, "admin", "--scopes", "admin")
        reader = created(other, "reader", "--scopes", "read", "--sessions", TOKEN_PATTERN)
        every = MANY // REACHED
        fill(other, items, MANY, lambda n: f"{'in' if n % every == 0 else 'out'}-{n}", admin)
        print(f"two words, {REACHED} sessions in reach of {MANY}:", queries(other, number, reader))
        print(f"two words, all {MANY} in reach:", queries(other, number, admin))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=8)
    wanted = parser.parse_args()
    limits = ["--memory-budget", "4GiB"]
    with Server(wanted.server, arguments=limits) as server:
        size = fill(server, wanted.items)
        index = pathlib.Path(server.data) / "cache" / "search.db"
        held = sum(file.stat().st_size for file in index.parent.glob("search.db*"))
        print(f"index {held / size:.2f} of {size / 1e6:.0f} MB of text (with its log)")
        print("two words, alone:", queries(server, wanted.queries))
        load = wrk(server, 20, WRITES_PER_S)
        time.sleep(1)
        print("two words, beside the writes:", queries(server, wanted.queries))
        print(f"the writes were {rate_of(load):.0f} a second")
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        print(next(line for line in status.splitlines() if line.startswith("VmHWM")))
    many_sessions(wanted.server, wanted.items, wanted.queries)
    rates = {"on": [], "off": []}
    for mode in ["on", "off", "off", "on", "on", "off", "off", "on", "on", "off"]:
        with Server(wanted.server, arguments=["--search", mode]) as server:
            rate_of(wrk(server, 1))
            rates[mode].append(rate_of(wrk(server, wanted.seconds)))
    on, off = (statistics.median(rates[mode]) for mode in ("on", "off"))
    print(f"durable appends: {on:.0f} a second with search, {off:.0f} without, ratio {on / off:.2f}")


if __name__ == "__main__":
    main()
