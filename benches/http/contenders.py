"""Contenders: started in processes of their own on loopback, and stopped."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DIST = ROOT / "target/dist"
BINARY = DIST / "blackboard"
# An older one to compare with, if the command line names one.
BEFORE: Path | None = None
VENV = ROOT / "target/bench/venv"

# A file system in memory, and how much of it a turn may need.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 1 << 30

START_SECONDS = 30
STOP_SECONDS = 30
COUNT_TRIES = 10

SESSION = "/v1/sessions/bench"
ITEMS = f"{SESSION}/trajectories"


class NotStarted(Exception):
    """A contender did not begin to listen."""


@dataclass
class Running:
    """A contender that listens."""

    port: int
    pids: list[int]
    # The method and path of an append, and the path that tells how many items there are.
    append: tuple[str, str]
    count: str | None = None

    def request(self, method: str, path: str, body=None, headers=None):
        """One request on a connection of its own: status, headers, body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def items(self) -> int | None:
        """How many items are in the log now."""
        if self.count is None:
            return None
        for _ in range(COUNT_TRIES):
            found = json.loads(self.request("GET", self.count)[2])
            if "counts" in found:
                return found["counts"]["trajectories"]
            # After clients have gone, webdis may give the answer that one of them was to get.
            if "LLEN" in found:
                return found["LLEN"]
        raise NotStarted(f"{self.count} does not tell how many items there are")

    def cpu_seconds(self) -> float:
        """What its processes have used so far, in user and system mode."""
        ticks = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """What its processes hold in memory now."""
        found = (Path(f"/proc/{pid}/status").read_text() for pid in self.pids)
        return sum(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) for text in found) / 1024


@contextmanager
def process(command: list, log: Path, **options):
    """A process with its output in `log`; however the block ends, so does the process."""
    with open(log, "wb") as out:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            **options,
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def until(child: subprocess.Popen, log: Path, ready):
    """What `ready` returns once that is something, as long as the process lives."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        found = ready()
        if found:
            return found
        time.sleep(0.02)
    tail = log.read_text(errors="replace")[-2000:]
    raise NotStarted(f"{child.args[0]} did not start:\n{tail}")


def announced(child: subprocess.Popen, log: Path) -> int:
    """The port that a process says it listens on."""
    pattern = re.compile(r"listening.*http://127\.0\.0\.1:(\d+)")
    return int(until(child, log, lambda: pattern.search(log.read_text(errors="replace")))[1])


def accepting(child: subprocess.Popen, log: Path, port: int):
    """Waits until somebody takes connections on that port."""

    def connects():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    until(child, log, connects)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def blackboard(folder: Path, *flags: str, level: str = "warn", binary: Path | None = None):
    """The binary that ships: every answered write is synced. Like the others it writes no line for each request."""
    log = folder / "blackboard.log"
    command = [binary or BINARY, "serve", "--listen", "127.0.0.1:0", "--log", level, *flags]
    # Whoever runs this may have settings in the environment; all others are the defaults.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
    with process([*command, "--data", folder / "data"], log, env=clean) as child:
        port = announced(child, log)
        yield Running(port, [child.pid], ("POST", ITEMS), SESSION)


@contextmanager
def bare_axum(folder: Path, body: Path | None = None):
    """axum with nothing behind it; `body` is its static file."""
    log = folder / "bare-axum.log"
    with process([DIST / "bare-axum", *([body] if body else [])], log) as child:
        yield Running(announced(child, log), [child.pid], ("POST", "/item"))


@contextmanager
def redis_webdis(folder: Path):
    """Redis that syncs its append-only file before it answers, spoken to through webdis."""
    with tempfile.TemporaryDirectory(prefix="redis-") as short:
        # The path of a Unix socket may have a hundred bytes, and that of `folder` may be longer.
        yield from redis_behind(folder, Path(short) / "socket")


def redis_behind(folder: Path, socket_path: Path):
    log = folder / "redis.log"
    redis = ["redis-server", "--port", "0", "--unixsocket", socket_path, "--dir", folder]
    redis += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    with process(redis, log) as store:
        until(store, log, socket_path.exists)
        port = free_port()
        settings = {
            "redis_host": str(socket_path),
            "redis_port": 0,
            "redis_auth": None,
            "http_host": "127.0.0.1",
            "http_port": port,
            "threads": os.cpu_count(),
            "daemonize": False,
            "database": 0,
            "verbosity": 0,
            "logfile": str(folder / "webdis.log"),
        }
        config = folder / "webdis.json"
        config.write_text(json.dumps(settings))
        out = folder / "webdis.out"
        with process(["webdis", config], out) as door:
            accepting(door, out, port)
            # It takes connections before it has its own to Redis.
            running = Running(port, [store.pid, door.pid], ("PUT", "/RPUSH/bench"), "/LLEN/bench")
            until(door, out, lambda: running.request("GET", "/PING")[0] == 200)
            yield running


@contextmanager
def original(folder: Path, *flags: str):
    """The original's lists behind FastAPI; not durable."""
    log = folder / "original.log"
    port = free_port()
    command = [VENV / "bin/python", "-B", "-m", "uvicorn", "original:app", "--port", port, *flags]
    with process(command, log, cwd=HERE) as child:
        accepting(child, log, port)
        yield Running(port, [child.pid], ("POST", ITEMS), SESSION)


# What `pip install fastapi uvicorn` and `uvicorn original:app` give.
PLAIN = ("--loop", "asyncio", "--http", "h11")
# With the C parts that `uvicorn[standard]` brings, and no line in its log for each request.
TUNED = ("--loop", "uvloop", "--http", "httptools", "--no-access-log")


def missing(*commands: str) -> list[str]:
    return [command for command in commands if shutil.which(command) is None]
