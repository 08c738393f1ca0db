"""Malicious clients for `benches/fairness.py`: many connections in one process, each in a thread of its own.

Requests are built beforehand and answers only counted by status, so that the attacker needs little of the processor. A
process ends on command, with its parent, or after `LIFE_S_MAX`.
"""

import collections
import itertools
import multiprocessing
import os
import re
import select
import socket
import threading
import time

LIFE_S_MAX = 120
# All of one width, so that a body with a number in it keeps its length.
FIRST_NUMBER = 100_000_000
RECEIVED_AT_ONCE = 256 << 10
SENT_AT_ONCE = 256 << 10
# Until the next try after a refusal, or after a connection that the server closed.
REFUSED_REST_S = 0.1
# Of a part of a core.
BURN_TURN_S = 0.02
# A fault of ours among the answers.
HARNESS = "harness: "
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
LAST_CHUNK = b"0\r\n\r\n"


class Request:
    """A request; `{n}` in its path or at the start of its body is another number each time: from `first`, `turn` many."""

    def __init__(self, method, path, body=b"", headers=(), first=FIRST_NUMBER, turn=FIRST_NUMBER):
        self.method, self.path, self.body, self.headers = method, path, body, dict(headers)
        self.first, self.turn = first, turn

    def for_token(self, token):
        """What the holder of that token sends, time after time."""
        is_numbered = b"{n}" in self.path.encode() + self.body[:64]
        headers = {"Host": "localhost", "Authorization": f"Bearer {token}"}
        if self.body:
            width = len(str(self.first)) - len("{n}") if b"{n}" in self.body[:64] else 0
            headers |= {"Content-Type": "application/json", "Content-Length": len(self.body) + width}
        lines = (f"{name}: {value}" for name, value in (headers | self.headers).items())
        whole = "\r\n".join([f"{self.method} {self.path} HTTP/1.1", *lines, "", ""]).encode() + self.body
        if not is_numbered:
            return itertools.repeat(whole)
        # Unlike a generator, `map` may be asked by several threads.
        return map(lambda n: whole.replace(b"{n}", b"%d" % (self.first + n % self.turn), 1), itertools.count())


class Attacker:
    """What the connections of one process share."""

    def __init__(self, address):
        self.address, self.answers = address, collections.Counter()

    def for_ever(self, work, *arguments):
        """Does it, and again whenever the server closes the connection."""
        while True:
            try:
                with socket.create_connection(self.address) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    work(self.answers, connection, *arguments)
            except OSError:
                self.answers["closed"] += 1
            except Exception as error:
                self.answers[f"{HARNESS}{error!r}"] += 1
                raise
            time.sleep(REFUSED_REST_S)


def read_answer(connection, buffer, rest_s):
    """The status of an answer that is read to its end and dropped, with a rest before each piece of its body."""
    head = b""
    while (end := head.find(b"\r\n\r\n")) < 0:
        piece = connection.recv(4096)
        if not piece:
            raise ConnectionResetError
        head += piece
    fields, rest = head[: end + 2], head[end + 4 :]
    length = LENGTH.search(fields)
    left = int(length[1]) - len(rest) if length else 0
    is_chunked = CHUNKED.search(fields) is not None
    tail = rest[-len(LAST_CHUNK) :]
    while tail != LAST_CHUNK if is_chunked else left > 0:
        if rest_s:
            time.sleep(rest_s)
        received = connection.recv_into(buffer)
        if received == 0:
            raise ConnectionResetError
        left -= received
        tail = (tail + buffer[max(0, received - len(LAST_CHUNK)) : received])[-len(LAST_CHUNK) :]
    return int(head[9:12])


def asks(answers, connection, requests, at_once=RECEIVED_AT_ONCE, rest_s=0):
    """One request after another."""
    buffer = bytearray(at_once)
    if rest_s:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, at_once)
    while True:
        connection.sendall(next(requests))
        status = read_answer(connection, buffer, rest_s)
        answers[status] += 1
        if status >= 429:
            time.sleep(REFUSED_REST_S)


def never_reads(answers, connection, requests):
    """Asks, and takes nothing of the answer until it is cut off."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.sendall(next(requests))
    answers["unread"] += 1
    wait_for_end(connection)


def sends_slowly(answers, connection, requests, length, left, rest_s):
    """Sends a body of that length but for what is left, and of that a byte at a time."""
    head = next(requests)
    missing = length - (len(head) - head.index(b"\r\n\r\n") - 4)
    connection.sendall(head)
    answers["begun"] += 1
    while missing > 0 and not select.select([connection], [], [], rest_s if missing <= left else 0)[0]:
        missing -= connection.send(b" " * max(1, min(missing - left, SENT_AT_ONCE)))
    status = connection.recv(4096)[9:12]
    answers[int(status) if status else "closed"] += 1


def idles(answers, connection):
    """Says nothing."""
    answers["opened"] += 1
    wait_for_end(connection)


def floods(answers, connection, requests, at_once):
    """So many requests at once, and as many again when all are answered."""
    block, buffer = next(requests) * at_once, bytearray(RECEIVED_AT_ONCE)
    while True:
        connection.sendall(block)
        answered = 0
        while answered < at_once:
            received = connection.recv_into(buffer)
            if received == 0:
                raise ConnectionResetError
            answered += buffer.count(b"HTTP/1.1 ", 0, received)
            if buffer.startswith(b"HTTP/1.1 "):
                status = int(buffer[9:12])
        answers[status] += answered


def wait_for_end(connection):
    """Until the server closes it."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    poll.poll()


def attack(pipe, address, token, kind, count, requests, arguments):
    """The process of an attacker: so many connections, which go through the requests in turn. Asked for it, it tells its
    answers by status, and ends."""
    attacker = Attacker(address)
    requests = [(request.for_token(token),) for request in requests] or [()]
    for n in range(count):
        whole = (kind, *requests[n % len(requests)], *arguments)
        threading.Thread(target=attacker.for_ever, args=whole, daemon=True).start()
    try:
        if pipe.poll(LIFE_S_MAX):
            pipe.send({str(status): count for status, count in attacker.answers.items()})
    finally:
        os._exit(0)


def burn(pipe, part):
    """The process of a client that takes that part of a core, and asks the server for nothing."""
    until = time.monotonic()
    while not pipe.poll():
        until += BURN_TURN_S
        while time.monotonic() < until - BURN_TURN_S * (1 - part):
            pass
        time.sleep(max(0, until - time.monotonic()))


class Beside:
    """A process of ours, which ends with the block."""

    def __init__(self, work, *arguments):
        spawn = multiprocessing.get_context("spawn")
        self.pipe, self.theirs = spawn.Pipe()
        self.process = spawn.Process(target=work, args=(self.theirs, *arguments), daemon=True)

    def __enter__(self):
        self.process.start()
        # Otherwise its end would not be noticed where it is heard from.
        self.theirs.close()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()

    def asked(self, what):
        """What it says to that."""
        self.pipe.send(what)
        return self.pipe.recv()
