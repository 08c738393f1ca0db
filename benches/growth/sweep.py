"""Sweeps: the varied quantity, the figures measured at each step, and the results."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from server import Cost, Server

# Work behind the requests may go on for so long; then the step is measured all the same, and marked.
REST_SECONDS_MAX = 180
CONNECTIONS = 16


@dataclass
class Column:
    """A figure of each step."""

    key: str
    title: str
    unit: str
    # Where the figure grows with the things, as bytes in all do, what one more of them adds is what should stay. It is
    # told in `part_unit`, which is so much of the unit.
    part_unit: str = ""
    part: float = 1
    # A smaller step says nothing of it.
    least: int = 1
    # Told, but not judged: where other work runs beside it, a clock on the wall shows that too.
    by_wall_clock: bool = False

    @property
    def is_sum(self) -> bool:
        return bool(self.part_unit)


@dataclass
class Operation:
    """Three figures: processor time, p50 and p99. The first is the one that is judged."""

    key: str
    title: str
    least: int = 1

    def cpu(self) -> Column:
        return Column(f"{self.key}_cpu_us", self.title, "µs", least=self.least)


@dataclass
class Sweep:
    """One thing that grows."""

    name: str
    title: str
    steps: list[int]
    full: list[int]
    columns: list[Operation | Column]
    # The figures of each step, in turn.
    measured: Callable[[Path, list[int]], Iterator[dict]]
    about: str

    def judged(self) -> list[Column]:
        all_columns = (column.cpu() if isinstance(column, Operation) else column for column in self.columns)
        return [column for column in all_columns if not column.by_wall_clock]


@dataclass
class Result:
    """What a run of one sweep found, and where."""

    name: str
    date: str
    commit: str
    # Of processes that wanted to run, when it began and when it ended.
    load: list[float]
    machine: list[tuple[str, str]]
    rows: list[dict] = field(default_factory=list)


RESIDENT = Column("resident_mib", "resident", "MiB", "bytes", 2**-20)
RESTARTED = Column("restarted_mib", "resident after a start", "MiB", "bytes", 2**-20)
DISK = Column("disk_mib", "on disk", "MiB", "bytes", 2**-20)
START = Column("start_s", "start", "s", by_wall_clock=True)
START_CPU = Column("start_cpu_s", "start, processor time", "s", "µs", 1e-6)
COLD = Column("cold_s", "first read after the start", "s", by_wall_clock=True)
COLD_CPU = Column("cold_cpu_s", "first read, processor time", "s", "µs", 1e-6)


def of(key: str, cost: Cost) -> dict:
    return {f"{key}_cpu_us": cost.cpu_us, f"{key}_p50_ms": cost.p50_ms, f"{key}_p99_ms": cost.p99_ms}


def at_rest(server: Server) -> dict:
    """What it holds once nothing is left to do."""
    rested = server.rest(REST_SECONDS_MAX)
    return {"rested": rested, "resident_mib": server.resident_mib(), "disk_mib": server.disk_mib()}


def restarted(server: Server, cold: bytes = b"") -> dict:
    """What a start costs after a kill, and the first read after it."""
    start = server.killed()
    row = {"start_s": start.seconds, "start_cpu_s": start.cpu_seconds}
    if cold:
        before = server.cpu_us()
        row["cold_s"] = server.first(cold)
        row["cold_cpu_s"] = (server.cpu_us() - before) / 1e6
    return row | {"restarted_mib": server.resident_mib()}


def seeded() -> random.Random:
    """The same choices in each run."""
    return random.Random(0)
