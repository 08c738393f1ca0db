#!/usr/bin/env python3
"""Slow and silent clients, and their effect on a well-behaved one.

    benches/slow_clients.py [--server PATH] [--connections N] [--only NAME,...]

Starts the server in a new directory, on loopback. For each kind of bad client it opens N connections (2,000), and
measures the median latency of a well-behaved client, which writes and reads in turn, before and meanwhile. Where
slowhttptest is installed, its slow headers, slow body and slow read run too, with 1,000 connections. Reports figures
without judging them.
"""

import argparse
import http.client
import os
import pathlib
import re
import resource
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

WATCHED_S = 25.0
BEFORE_S = 5.0
ITEM = b'{"step":1,"thought":"Open the spreadsheet."}'
HEADERS = {"Content-Type": "application/json"}
LONG_ITEMS = 400


class SlowServer(Server):
    """A server under test whose sockets are counted."""

    def sockets(self):
        """How many it has open: what a client sees of its end may come later, or never."""
        directory = f"/proc/{self.process.pid}/fd"
        count = 0
        for name in os.listdir(directory):
            try:
                count += os.readlink(f"{directory}/{name}").startswith("socket:")
            except OSError:
                pass
        return count

    def fill(self):
        """A session whose trajectories are some megabytes, for those who read slowly."""
        client = http.client.HTTPConnection(*self.address)
        item = '{"text":"' + "a step and another " * 500 + '"}'
        body = "[" + ",".join([item] * LONG_ITEMS) + "]"
        client.request("POST", "/v1/sessions/long/trajectories", body, HEADERS)
        assert client.getresponse().status == 201


class WellBehaved(threading.Thread):
    """Writes and reads in turn, and keeps how long each took and what went wrong."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.times, self.failures, self.stopped = address, [], 0, False
        self.lock = threading.Lock()

    def run(self):
        client = http.client.HTTPConnection(*self.address, timeout=10)
        while not self.stopped:
            for method, body in (("POST", ITEM), ("GET", None)):
                begun = time.monotonic()
                try:
                    client.request(method, "/v1/sessions/good/requests?" + "limit=1" * (not body), body, HEADERS)
                    answer = client.getresponse()
                    answer.read()
                    well = answer.status < 300
                except OSError:
                    client.close()
                    well = False
                with self.lock:
                    self.times.append(time.monotonic() - begun)
                    self.failures += not well
            time.sleep(0.005)

    def take(self):
        with self.lock:
            times, failures = self.times, self.failures
            self.times, self.failures = [], 0
        return times, failures


def silent(_connection, _n):
    """Never says anything."""


def slow_head(connection, n):
    """A header every few seconds, and never the last one."""
    connection.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" if n == 0 else b"X-A: b\r\n")


def slow_body(connection, n):
    """A byte of a body every few seconds."""
    head = b"POST /v1/sessions/bad/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.send(head + b"Content-Length: 8192\r\n\r\n[" if n == 0 else b" ")


def slow_read(connection, n):
    """Asks for megabytes and takes a few bytes of them every few seconds."""
    if n == 0:
        connection.send(b"GET /v1/sessions/long/trajectories?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    else:
        connection.recv(32)


def stalled_read(connection, n):
    """Asks for megabytes and takes none of them."""
    if n == 0:
        connection.send(b"GET /v1/sessions/long/trajectories?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")


KINDS = [silent, slow_head, slow_body, slow_read, stalled_read]


def opened(address, count, reads_little):
    """The connections, each with when it was opened."""
    connections = {}
    for _ in range(count):
        connection = socket.socket()
        if reads_little:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(address)
        connection.setblocking(False)
        connections[connection] = time.monotonic()
    return connections


def is_closed(connection):
    """Whether the server has ended it: what it said before lies unread."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def attack(server, kind, count):
    """How long it took to open them; how long the one that the server closed first was open, in seconds, and the
    one that lasted longest; how many it never closed."""
    before = server.sockets()
    begun = time.monotonic()
    connections = opened(server.address, count, kind in (slow_read, stalled_read))
    took = time.monotonic() - begun
    open_now, lasted, n = set(connections), [], 0
    while open_now and time.monotonic() - begun < WATCHED_S:
        for connection in list(open_now):
            try:
                kind(connection, n)
            except BlockingIOError:
                pass
            except OSError:
                open_now.discard(connection)
                lasted.append(time.monotonic() - connections[connection])
        n += 1
        until = time.monotonic() + 3
        while open_now and time.monotonic() < until:
            for connection in [connection for connection in open_now if is_closed(connection)]:
                open_now.discard(connection)
                lasted.append(time.monotonic() - connections[connection])
            if kind in (slow_read, stalled_read) and server.sockets() <= before:
                lasted += [time.monotonic() - connections[connection] for connection in open_now]
                open_now.clear()
            time.sleep(0.2)
    for connection in connections:
        connection.close()
    return took, min(lasted, default=None), max(lasted, default=None), len(open_now)


def milliseconds(times):
    if not times:
        return "no answer"
    last = sorted(times)[max(0, len(times) * 99 // 100 - 1)]
    return f"{statistics.median(times) * 1e3:6.2f} ms median, {last * 1e3:7.2f} ms p99"


def report(name, before, meanwhile, failures, said):
    ratio = statistics.median(meanwhile) / statistics.median(before)
    print(f"{name}")
    print(f"  bad clients   {said}")
    print(f"  well-behaved  before {milliseconds(before)}; meanwhile {milliseconds(meanwhile)} "
          f"({len(meanwhile)} requests, {failures} failed; median x {ratio:.2f})", flush=True)


def meanwhile(server, work):
    """The latencies of a well-behaved client before some work and during it, and what the work gave."""
    good = WellBehaved(server.address)
    good.start()
    time.sleep(BEFORE_S)
    before, _ = good.take()
    given = work()
    during, failures = good.take()
    good.stopped = True
    good.join()
    return before, during, failures, given


def slowhttptest(server, name, flags):
    host = f"http://{server.address[0]}:{server.address[1]}"
    target = "/v1/sessions/long/trajectories?limit=1000" if name == "slow read" else "/v1/sessions/bad/requests"
    # As many as it can open in a few seconds; a probe that is answered within 3 s is a service available.
    command = ["slowhttptest", *flags, "-c", "1000", "-r", "500", "-l", str(int(WATCHED_S)), "-p", "3", "-u", host + target]
    before, begun, highest, gone = server.sockets(), time.monotonic(), 0, None
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            sockets = server.sockets() - before
            highest = max(highest, sockets)
            # Its probe may be one of them.
            if sockets <= 1 < highest and gone is None:
                gone = time.monotonic() - begun
            time.sleep(0.25)
        output.seek(0)
        said = output.read()
    said = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said)
    seen = re.findall(r"slow HTTP test status on (\d+)th second:\s+initializing:\s+(\d+)\s+pending:\s+(\d+)\s+"
                      r"connected:\s+(\d+)\s+error:\s+(\d+)\s+closed:\s+(\d+)\s+service available:\s+(\w+)", said)
    ended = re.search(r"Test ended on (\d+)\w* second\s*\n?.*?Exit status:\s*(.*)", said, re.S)
    counts = "; ".join(f"{s} s: {connected} connected, {closed} closed, available {up}"
                       for s, _, _, connected, _, closed, up in seen)
    ended = f"{ended[1]} s, {ended[2].strip()}" if ended else "without a summary"
    served = f"at most {highest} were open at the server, none any more after {gone and round(gone, 1)} s"
    return f"{served}; as slowhttptest saw it: {counts}; ended: {ended}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server", default="target/dist/blackboard")
    arguments.add_argument("--connections", type=int, default=2000)
    arguments.add_argument("--only", default="")
    arguments = arguments.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    only = set(filter(None, arguments.only.split(",")))
    for kind in KINDS:
        if only and kind.__name__ not in only:
            continue
        with SlowServer(arguments.server) as server:
            server.fill()
            count = arguments.connections
            before, during, failures, given = meanwhile(server, lambda: attack(server, kind, count))
            took, first, last, left = given
            shown = "none was closed" if first is None else f"each closed {first:.1f} s to {last:.1f} s after it was opened"
            report(f"{kind.__name__}, {count} connections", before, during, failures,
                   f"opened in {took:.1f} s; {shown}; still open after {WATCHED_S:.0f} s: {left}")
    if not shutil.which("slowhttptest"):
        print("slowhttptest is not installed: its tests were left out")
        return
    for name, flags in [
        ("slow headers", ["-H", "-i", "3"]),
        ("slow body", ["-B", "-i", "3", "-s", "8192", "-t", "POST"]),
        ("slow read", ["-X", "-w", "512", "-y", "1024", "-n", "3", "-z", "32", "-k", "1"]),
    ]:
        if only and name not in only:
            continue
        with SlowServer(arguments.server) as server:
            server.fill()
            before, during, failures, said = meanwhile(server, lambda: slowhttptest(server, name, flags))
            report(f"slowhttptest, {name}, 1000 connections", before, during, failures, said)


if __name__ == "__main__":
    main()
