"""Server under test over one data directory: started, killed, restarted, and its costs."""

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import contenders
from clients import Clients, ask, request
from contenders import NotStarted, Running

START_SECONDS_MAX = 900
# The server is at rest when it used at most that part of a core for so long.
REST_SECONDS = 0.5
REST_LOAD_MAX = 0.03
ROUNDS = 7
REQUESTS_A_ROUND = 1_000


@dataclass
class Cost:
    """An operation: processor time of the server's process, and what a client waits."""

    cpu_us: float
    p50_ms: float
    p99_ms: float


@dataclass
class Start:
    """From the start of the process to the first 200 of /readyz."""

    seconds: float
    cpu_seconds: float


class Server:
    """The binary with its defaults but for `flags`; every answered write is synced."""

    def __init__(self, folder: Path, flags: list[str]):
        self.folder, self.flags, self.port = folder, flags, contenders.free_port()
        self.processes, self.running = ExitStack(), None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.processes.close()

    def start(self) -> Start:
        command = [contenders.BINARY, "serve", "--listen", f"127.0.0.1:{self.port}", "--log", "warn"]
        command += ["--data", self.folder / "data", *self.flags]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        log = self.folder / "blackboard.log"
        begun = time.perf_counter()
        child = self.processes.enter_context(contenders.process(command, log, env=clean))
        self.running = Running(self.port, [child.pid], ("POST", contenders.ITEMS))
        while True:
            try:
                ask(self.port, request("GET", "/readyz"))
                return Start(time.perf_counter() - begun, self.cpu_us() / 1e6)
            except OSError:
                time.sleep(0.002)
            if child.poll() is not None or time.perf_counter() - begun > START_SECONDS_MAX:
                raise NotStarted(f"{contenders.BINARY} did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def killed(self) -> Start:
        """Kills it, and starts it again."""
        os.kill(self.running.pids[0], signal.SIGKILL)
        self.processes.close()
        return self.start()

    def cpu_us(self) -> float:
        """User and system time so far: the two fields of /proc/PID/stat, to the nanosecond, as the kernel's clock of
        the process tells them. Those fields count in steps of 10 ms."""
        return time.clock_gettime_ns((~self.running.pids[0] << 3) | 2) / 1000

    def resident_mib(self) -> float:
        return self.running.resident_mib()

    def disk_mib(self) -> float:
        """The data directory as it lies on the disk."""
        files = (path.stat() for path in self.folder.joinpath("data").rglob("*") if path.is_file())
        return sum(file.st_blocks for file in files) * 512 / 2**20

    def uncompacted_mib(self) -> float:
        metrics = ask(self.port, request("GET", "/metrics")).decode()
        return int(re.search(r"^blackboard_journal_uncompacted\w* (\d+)", metrics, re.MULTILINE)[1]) / 2**20

    def rest(self, seconds_max: float) -> bool:
        """Waits until indexing, compaction and eviction are done with what came; false where they are not in time."""
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            before = self.cpu_us()
            time.sleep(REST_SECONDS)
            if self.cpu_us() - before < REST_LOAD_MAX * REST_SECONDS * 1e6:
                return True
        return False

    def cost(
        self,
        clients: Clients,
        requests: Callable[[int], list[bytes]],
        wanted: int = 200,
        count: int = REQUESTS_A_ROUND,
        rounds: int = ROUNDS,
    ) -> Cost:
        """The cost of one of `count` requests: after a round that does not count, the lower quartile of the rounds, since
        work beside it only ever adds to it. `requests` makes those of a round."""
        clients.run(requests(count), wanted)
        used, times = [], []
        for _ in range(rounds):
            some = requests(count)
            before = self.cpu_us()
            times += clients.run(some, wanted)
            used.append((self.cpu_us() - before) / count)
        times.sort()
        used.sort()
        return Cost(used[rounds // 4], times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000)

    def first(self, sent: bytes) -> float:
        """Seconds that one request takes on a new connection."""
        begun = time.perf_counter()
        ask(self.port, sent)
        return time.perf_counter() - begun
