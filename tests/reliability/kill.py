"""Kills (SIGKILL) under load: nothing acknowledged is lost, duplicated or out of order.

Processes append to sessions of their own as fast as they are answered; beside them go writers that know the board of each
revision (`load.py`), forks and their deletion, purges, backups, a session whose history is limited, and in every second
piece a memory budget so small that boards are always evicted. The server is killed at a random moment, started on what is
there, and compared with what each client was told.
"""

import http.client
import multiprocessing
import shutil
import socket
import time
from collections import Counter

import load

KILLS = 10
APPENDERS_IN_SHORT, APPENDERS_IN_LONG = 2, 12
WRITERS = 4
LOAD_S = (0.3, 3.0)
EVICTING = ("--memory-budget", "1")
COMMITS_KEPT = 50


def append(address, path, first, acknowledged, sent):
    """Appends items that count from `first` until the server is gone; tells how far it was sent and acknowledged."""
    try:
        with socket.create_connection(address) as connection:
            number, buffered = first, b""
            while True:
                body = b'{"n":%d}' % number
                head = f"POST {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\n"
                sent.value = number + 1
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                status, buffered = answer(connection, buffered)
                if status != 201:
                    return
                number += 1
                acknowledged.value = number
    except OSError:
        pass


def answer(connection, buffered):
    """The status of the next answer, and what came behind it."""
    while b"\r\n\r\n" not in buffered:
        buffered += received(connection)
    head, _, rest = buffered.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    while len(rest) < length:
        rest += received(connection)
    return int(lines[0].split()[1]), rest[length:]


def received(connection):
    data = connection.recv(65_536)
    if not data:
        raise ConnectionError("closed")
    return data


class Appender:
    """A session that one process appends to."""

    def __init__(self, name):
        self.path = f"/v1/sessions/{name}/trajectories"
        self.sent, self.acknowledged = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)
        self.next, self.process = 0, None

    def start(self, server):
        what = (server.address, self.path, self.next, self.acknowledged, self.sent)
        self.process = multiprocessing.Process(target=append, args=what)
        self.process.start()

    def judge(self, client):
        """What is there counts from 0 without a gap, at least as far as was acknowledged, at most as far as was sent."""
        answer = client.ask("GET", self.path, Accept="application/x-ndjson")
        if answer.status == 404 and self.acknowledged.value == 0:
            return
        lines = load.expect(answer, 200).body.splitlines()
        for number, line in enumerate(lines):
            if line != b'{"n":%d}' % number:
                raise load.Broken(f"{self.path}: item {number} is {line[:100]!r}")
        if not self.acknowledged.value <= len(lines) <= self.sent.value:
            told = f"{self.acknowledged.value} were acknowledged, {self.sent.value} sent"
            raise load.Broken(f"{self.path} has {len(lines)} items; {told}")
        self.next = len(lines)


class House:
    """What a server has to do besides: forks, their deletion, purges, backups."""

    def __init__(self, place):
        self.place, self.counts, self.forks = place, Counter(), 0

    def run(self, server, stopping):
        client = server.client(timeout_s=30)
        try:
            while not stopping.is_set():
                self.round(server, client)
        except (OSError, http.client.HTTPException):
            pass

    def round(self, server, client):
        fork, self.forks = f"fork-{self.forks}", self.forks + 1
        if client.ask("POST", "/v1/sessions/s0/fork", {"to": fork}).status == 201:
            self.counts["forks"] += 1
            self.counts["purges"] += client.ask("POST", f"/v1/sessions/{fork}/purge").status == 200
            client.ask("DELETE", f"/v1/sessions/{fork}")
        if self.forks % 10 == 0:
            copy = self.place.path(f"copy-{self.forks}")
            backed_up = server.run("backup", "--to", copy)
            if backed_up.returncode == 0:
                self.counts["backups"] += 1
                self.place.sound(copy)
            for left in (copy, copy + ".partial"):
                shutil.rmtree(left, ignore_errors=True)
        time.sleep(0.02)


class Kill:
    """Kills of one server on one data directory."""

    name = "kill"
    short, long = 1, 48

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        chance = self.place.chance(number)
        data = self.place.path("data")
        count = APPENDERS_IN_LONG if self.place.is_long else APPENDERS_IN_SHORT
        appenders = [Appender(f"appended-{n}") for n in range(count)]
        sessions = [load.Session(f"s{n}", chance.random()) for n in range(WRITERS)]
        house, counts = House(self.place), Counter()
        server = self.place.server(data, EVICTING if number % 2 else ())
        with server:
            limited = {"settings": {"history": COMMITS_KEPT}}
            load.expect(server.client().ask("PUT", "/v1/sessions/appended-1", limited), 201)
            for _ in range(KILLS):
                self.until_killed(server, appenders, sessions, house, chance.uniform(*LOAD_S))
                counts["kills"] += 1
                server.start()
                client = server.client()
                for session in sessions:
                    session.go_on(load.judge(client, session, 0))
                for appender in appenders:
                    appender.judge(client)
        self.place.sound(data)
        counts["acknowledged"] = sum(session.acknowledged for session in sessions)
        counts["acknowledged"] += sum(appender.acknowledged.value for appender in appenders)
        return counts + house.counts

    def until_killed(self, server, appenders, sessions, house, seconds):
        for appender in appenders:
            appender.start(server)
        work = load.Load(server, sessions, lambda: 0, beside=[house])
        time.sleep(seconds)
        work.stopping.set()
        server.kill()
        work.end()
        for appender in appenders:
            appender.process.join()
