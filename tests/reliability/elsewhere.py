"""Tests from other folders, run as pieces: each exits with 0, or a promise is broken."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import load

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT_LINES_MAX = 30


class Elsewhere:
    """A command; it is what its docstring says."""

    short, long = 1, 1
    environment = {}
    counted = "runs"

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        self.number = number
        command = [str(word) for word in self.command()]
        environment = os.environ | self.environment
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            Path(self.place.path("output")).write_text(done.stdout)
            raise load.Broken("\n".join([" ".join(command), *done.stdout.splitlines()[-OUTPUT_LINES_MAX:]]))
        return Counter({self.counted: self.each()})

    def each(self):
        return 1

    def seed(self):
        return self.place.chance(self.name, self.number).getrandbits(32)


class FullDisk(Elsewhere):
    """Small disks filled by each writer there is."""

    name = "full-disk"

    def command(self):
        disks = [] if self.place.is_long else ["--disks", "tmpfs:24"]
        return ["python3", "tests/full_disk.py", "--server", self.place.binary, *disks]


class Linear(Elsewhere):
    """A history of concurrent clients through kills, against a linearizability checker."""

    name, counted = "linear", "operations"
    long = 50

    @property
    def environment(self):
        return {"BLACKBOARD_LINEAR_OPS": str(self.each()), "BLACKBOARD_LINEAR_SEED": str(self.seed())}

    def each(self):
        return 20_000 if self.place.is_long else 2_000

    def command(self):
        return ["cargo", "test", "--test", "http", "linear::calls_through_kills"]


class LinearOfThree(Linear):
    """The same by three servers over one PostgreSQL."""

    name = "linear-of-three"

    @property
    def environment(self):
        return super().environment | {"BLACKBOARD_TEST_REPLICAS": "3"}

    def command(self):
        return ["python3", "tests/postgres.py", *super().command()]


class PostgresFaults(Elsewhere):
    """Kills of servers and of PostgreSQL, a pause, a promotion."""

    name, counted = "postgres-faults", "rounds"

    def each(self):
        return 100 if self.place.is_long else 3

    def command(self):
        return ["python3", "tests/postgres_faults.py", "--server", self.place.binary, "--rounds", self.each()]


class Simulation(Elsewhere):
    """The service on one thread, with an engine, a clock and a scheduler that are drawn from a seed."""

    name, counted = "simulation", "seeds"
    long = 20

    @property
    def environment(self):
        first, count = self.number * self.each(), self.each()
        return {"BLACKBOARD_SIMULATION_SEED": str(first), "BLACKBOARD_SIMULATION_SEEDS": str(count)}

    def each(self):
        return 5_000 if self.place.is_long else 500

    def command(self):
        return ["cargo", "test", "--lib", "simulation::no_order"]


class OpenApiFuzz(Elsewhere):
    """Requests at random within and outside the OpenAPI document, alone and in sequences."""

    name, counted = "openapi-fuzz", "minutes"

    def each(self):
        return 30 if self.place.is_long else 1

    def command(self):
        python = "target/venv-tools/bin/python"
        return [python, "tests/openapi_fuzz.py", "--server", self.place.binary, "--minutes", self.each(), "--seed", self.seed()]


TESTS = (Simulation, FullDisk, Linear, LinearOfThree, PostgresFaults, OpenApiFuzz)
