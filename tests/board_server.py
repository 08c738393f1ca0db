"""Server under test for Python scripts: on a free loopback port, killed, stopped, restarted."""

import http.client
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import threading
import zlib

START_S_MAX = 120


class Server:
    """A running server; it ends with the block. Without `data` or `store` it has a directory of its own.

    It and its commands run as `user`, the id of a user and a group, if one is given; that takes root. Each start is on
    `port`, by default on any free one, of the address `host`.
    """

    def __init__(
        self, path, data=None, arguments=(), log="warn", store=None, environment=None, user=None, port=0,
        host="127.0.0.1",
    ):  # fmt: skip
        self.port, self.host = port, host
        self.rights = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.environment = os.environ | (environment or {})
        self.path, self.arguments, self.log = path, list(arguments), log
        self.home = None if data or store else tempfile.TemporaryDirectory()
        self.data = data or (None if store else os.path.join(self.home.name, "data"))
        self.place = ["--store", store] if store else ["--data", self.data]
        self.said, self.process, self.address = [], None, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        if self.home:
            self.home.cleanup()

    def start(self):
        """Starts it, and returns once it listens."""
        command = [self.path, "serve", "--listen", f"{self.host}:{self.port}", "--log", self.log, *self.place]
        self.process = subprocess.Popen(
            command + self.arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment,
            **self.rights,
        )
        listens = threading.Event()
        threading.Thread(target=self._read, args=(self.process, listens), daemon=True).start()
        if not listens.wait(START_S_MAX) or self.address is None:
            raise RuntimeError("the server does not listen:\n" + "\n".join(self.said[-20:]))

    def _read(self, process, listens):
        self.address = None
        for line in process.stdout:
            found = self.address is None and re.search(r"http://([0-9.]+):(\d+)", line)
            if found:
                self.address = (found[1], int(found[2]))
                listens.set()
            else:
                self.said.append(line.rstrip())
        listens.set()

    def stop(self):
        """Ends it as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()

    def kill(self):
        """Ends it without a chance to do anything."""
        self.process.kill()
        self.process.wait()

    def run(self, command, *arguments):
        """A command of the same binary on the same data directory, finished."""
        return subprocess.run(
            [self.path, command, *arguments, *self.place], capture_output=True, text=True, check=False, **self.rights
        )

    def client(self, timeout_s=60):
        return Client(self.address, timeout_s)


class Answer:
    """The answer to one request, with its body read."""

    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The code of a problem, or nothing."""
        try:
            return self.json().get("code")
        except (ValueError, AttributeError):
            return None


def expect(answer, *statuses):
    """The answer, which must have one of these statuses."""
    if answer.status not in statuses:
        raise RuntimeError(f"{answer.status} {answer.body[:300]}")
    return answer


class Client:
    """One connection, opened again where it was closed between two requests."""

    def __init__(self, address, timeout_s):
        self.connection = http.client.HTTPConnection(*address, timeout=timeout_s)

    def ask(self, method, path, body=None, **headers):
        """Sends one request. A body that is neither text nor bytes is sent as JSON."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        try:
            self.connection.request(method, path, body, headers)
            return Answer(self.connection.getresponse())
        except (OSError, http.client.HTTPException):
            self.connection.close()
            raise

    def close(self):
        self.connection.close()


def picture(width, height, noise):
    """A PNG whose pixels are those bytes, 3 a pixel: no two pictures of random bytes are the same or compress."""
    row = width * 3
    raw = b"".join(b"\0" + noise[at * row : (at + 1) * row] for at in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 0)) + chunk(b"IEND", b"")
