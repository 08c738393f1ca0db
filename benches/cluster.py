#!/usr/bin/env python3
"""Throughput of replicas over PostgreSQL beside pgbench, and the latency of events between replicas.

    benches/cluster.py [--server target/dist/blackboard] [--seconds 8] [--search off]

Everything runs on one machine with a temporary PostgreSQL, so only ratios count. First, 500 commits a second go through
all replicas while a session is written through one and watched through another: the time from acknowledgement to event.
Then one and three replicas take wrk's load of appends to many sessions, beside pgbench with the same statement.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests"))
from board_server import Server  # noqa: E402
from postgres import Cluster, Home, program  # noqa: E402

REPLICAS = 3
CONNECTIONS = 192
SESSIONS = 100
COMMITS_A_SECOND = 500
WRITERS = 10
SETTLE_S = 2

LOAD = """
local n, id, threads = 0, 0, 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
function init(args) mark = args[1] end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"step":1,"agent":"HostAgent","thought":"' .. string.rep("x", 300) .. '"}'
function request()
  n = n + 1
  return wrk.format(nil, "/v1/sessions/" .. mark .. "-" .. id .. "-" .. (n % %SESSIONS%) .. "/trajectories")
end
"""

# As crates/store/src/postgres/append.rs has it, with the head that is there for the one that is expected.
APPEND = """
\\set s random(1, %SESSIONS%)
WITH changed AS (UPDATE session SET head = head + 1, bytes = bytes + 450, is_live = true, next_due = NULL, labels = '{}',
  asks = false, requests = false, over_budget = false, is_limited = false, summary = decode(repeat('ab', 300), 'hex'),
  image_bytes = 0, has_blobs = false
  WHERE id = ('00000000-0000-0000-0000-' || lpad((:s + :client_id * 1000)::text, 12, '0'))::uuid
  AND staged_at IS NULL AND ended_at IS NULL RETURNING id, head)
INSERT INTO history_commit (session, revision, frame) SELECT changed.id, added.revision, added.frame FROM changed,
  unnest(ARRAY[changed.head], ARRAY[decode(repeat('cd', 450), 'hex')]) AS added (revision, frame);
"""


def wrk(scratch, replicas, seconds, mark):
    """The appends a second of all replicas together."""
    script = os.path.join(scratch, "load.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write(LOAD.replace("%SESSIONS%", str(SESSIONS)))
    running = [
        subprocess.Popen(
            ["wrk", "-t1", f"-c{CONNECTIONS // len(replicas)}", f"-d{seconds}s", "-s", script,
             "http://{}:{}".format(*replica.address), "--", f"{mark}{number}"],
            stdout=subprocess.PIPE, text=True,
        )
        for number, replica in enumerate(replicas)
    ]
    rates = []
    for load in running:
        said = load.communicate()[0]
        if "Non-2xx" in said:
            raise RuntimeError(said)
        rates.append(float(re.search(r"Requests/sec:\s*([0-9.]+)", said)[1]))
    return sum(rates)


def pgbench(scratch, cluster, seconds, connections):
    cluster.sql(
        "INSERT INTO session (id, name, head, is_live) SELECT "
        "('00000000-0000-0000-0000-' || lpad((s + c * 1000)::text, 12, '0'))::uuid, ('b' || c || '-' || s)::bytea, 0, true "
        f"FROM generate_series(1, {SESSIONS}) s, generate_series(0, {connections - 1}) c ON CONFLICT DO NOTHING"
    )
    script = os.path.join(scratch, "append.sql")
    with open(script, "w", encoding="utf-8") as file:
        file.write(APPEND.replace("%SESSIONS%", str(SESSIONS)))
    done = subprocess.run(
        [program("pgbench"), "-n", "-M", "prepared", "-c", str(connections), "-j", "2", "-T", str(seconds), "-h",
         "127.0.0.1", "-p", str(cluster.port), "-U", "blackboard", "-f", script, "postgres"],
        capture_output=True, text=True, check=True,
    )
    return float(re.search(r"tps = ([0-9.]+)", done.stdout)[1])


def follow(address, until):
    """When each revision's event came. `time.monotonic` is one clock for all processes."""
    seen = {}
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.request("GET", "/v1/sessions/watched/events?after=1")
    for line in connection.getresponse():
        if line.startswith(b"id: "):
            # A comment in a silence repeats the last one.
            seen.setdefault(int(line[4:]), time.monotonic())
        elif time.monotonic() > until:
            return seen


def write(address, number, until):
    """The number of writes, and when each revision of the watched session was acknowledged."""
    acknowledged, sent = {}, 0
    connection = http.client.HTTPConnection(*address, timeout=30)
    name = "watched" if number == 0 else f"other-{number}"
    due = time.monotonic()
    while time.monotonic() < until:
        connection.request("POST", f"/v1/sessions/{name}/requests", '{"n":1}', {"content-type": "application/json"})
        revision = json.loads(connection.getresponse().read())["revision"]
        sent += 1
        if number == 0:
            acknowledged[revision] = time.monotonic()
        due += WRITERS / COMMITS_A_SECOND
        time.sleep(max(0.0, due - time.monotonic()))
    return sent, acknowledged


def events(replicas, seconds):
    """The times from acknowledgement to event in ms, sorted, at another replica and at the writer's; the commits a second.

    Each client is a process of its own: threads of one would wait for its lock, and that would be measured.
    """
    addresses = [replica.address for replica in replicas]
    connection = http.client.HTTPConnection(*addresses[0])
    connection.request("PUT", "/v1/sessions/watched", "{}", {"content-type": "application/json"})
    connection.getresponse().read()
    until = time.monotonic() + seconds
    with ProcessPoolExecutor(WRITERS + 2) as pool:
        following = [pool.submit(follow, address, until + SETTLE_S) for address in (addresses[1], addresses[0])]
        writing = [pool.submit(write, addresses[number % len(addresses)], number, until) for number in range(WRITERS)]
        sent = sum(one.result()[0] for one in writing)
        acknowledged = writing[0].result()[1]
        seen = [one.result() for one in following]
    missing = [one for one in acknowledged if any(one not in some for some in seen)]
    if missing:
        raise RuntimeError(f"{len(missing)} events did not come")
    late = [sorted(max(0.0, some[one] - at) * 1e3 for one, at in acknowledged.items()) for some in seen]
    return *late, sent / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--search", choices=["on", "off"], default="on")
    options = parser.parse_args()
    with Home() as home, tempfile.TemporaryDirectory() as scratch:
        cluster = Cluster(home).init().start()
        replicas = [
            Server(os.path.abspath(options.server), store=cluster.url(), arguments=["--token-rate", "0", "--search", options.search])
            for _ in range(REPLICAS)
        ]
        for replica in replicas:
            replica.start()
        try:
            # Before the load, whose texts the leader goes on to index.
            other, own, rate = events(replicas, 3 * options.seconds)
            for whose, late in (("another", other), ("the writer's", own)):
                print(f"events of {whose} replica at {rate:.0f} commits a second: {late[len(late) // 2]:.1f} ms at p50, "
                      f"{late[int(len(late) * 0.99)]:.1f} ms at p99, {late[-1]:.1f} ms at most, {len(late)} events", flush=True)
            for mark in range(2):
                one = wrk(scratch, replicas[:1], options.seconds, f"one{mark}-")
                all_of_them = wrk(scratch, replicas, options.seconds, f"all{mark}-")
                bench = {count: pgbench(scratch, cluster, options.seconds, count) for count in (24, 48, 192)}
                best = max(bench.values())
                print(f"appends a second: one replica {one:.0f}, {REPLICAS} replicas {all_of_them:.0f}; pgbench "
                      + ", ".join(f"{tps:.0f} from {count}" for count, tps in bench.items())
                      + f"; ratio to its best {all_of_them / best:.2f} ({one / best:.2f} for one)", flush=True)
        finally:
            for replica in replicas:
                replica.kill()
            cluster.stop()


if __name__ == "__main__":
    main()
