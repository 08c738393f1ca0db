"""Place of a trial: a directory for its files, the server's binary, the recorder, and a seed."""

import copy
import os
import random
import subprocess
from pathlib import Path

from board_server import Server

from disk import steps
from load import Broken

RECORDER = Path(__file__).resolve().parent / "recorder.c"


class Place:
    """A directory of one piece of a test."""

    def __init__(self, home, given, library, seed):
        self.home, self.binary, self.library, self.seed = home, os.path.abspath(given.server), library, seed
        self.is_long = given.long

    def of(self, binary):
        """This place with another binary."""
        other = copy.copy(self)
        other.binary = os.path.abspath(binary)
        return other

    def chance(self, *what):
        return random.Random("/".join(map(str, (self.seed, *what))))

    def path(self, name):
        return os.path.join(self.home, name)

    def server(self, data, arguments=(), preloaded=None, log="warn"):
        """A server on this directory, with the recorder where one is given."""
        environment = preloaded.environment if preloaded else None
        return Server(self.binary, data, ["--token-rate", "0", *arguments], log, environment=environment)

    def sound(self, data):
        """Raises unless `check` finds a store sound."""
        checked = self.command("check", "--data", data)
        if checked.returncode != 0:
            raise Broken(f"check finds damage in {data}: {checked.stdout}{checked.stderr}")

    def command(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, check=False)


class Record:
    """The recorder's record of what a server does to a directory."""

    def __init__(self, place, name, root):
        self.path = place.path(name)
        self.environment = {"LD_PRELOAD": place.library, "RECORD_ROOT": root, "RECORD_LOG": self.path}
        open(self.path, "wb").close()

    def place(self):
        """The end of the record now: all before it was done."""
        return os.stat(self.path).st_size

    def steps(self):
        with open(self.path, "rb") as log:
            return list(steps(log.read()))


def recorder(home):
    """The compiled recorder."""
    library = os.path.join(home, "recorder.so")
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, RECORDER, "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library
