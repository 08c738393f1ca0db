"""What a host is to the harness. Each module beside this one with a list `HOSTS` adds its own."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from conversation import Call, Conversation

FOLDER = Path(__file__).parent
TARGET = FOLDER.parents[1] / "target" / "hosts"


@dataclass
class Place:
    """Where a host runs, and the addresses it gets."""

    home: Path
    work: Path
    board: str  # the URL of the server's /mcp, with session and agent
    model: str  # the URL of the scripted model, without a path
    token: str = ""  # for the header Authorization: Bearer, where the server has tokens


class Host:
    """A host of MCP servers that runs without a person.

    A new one needs `name`, `npm` or `pypi`, `write`, `command` and `environment`; the others where it differs.
    """

    name: ClassVar[str]
    npm: ClassVar[tuple[str, ...]] = ()
    pypi: ClassVar[tuple[str, ...]] = ()
    limit_s: ClassVar[int] = 400
    terminal: ClassVar[bool] = False
    # More of the board's URL, as the guide has it for the host.
    query: ClassVar[str] = ""
    # How long the model thinks before its first answer: some hosts connect to servers meanwhile.
    think_s: ClassVar[float] = 0.0

    def packages(self) -> tuple[str, ...]:
        return self.npm + self.pypi

    @property
    def folder(self) -> Path:
        """Where its packages are: one folder for each set of them."""
        name = "+".join(package.strip("@").replace("/", "-") for package in self.packages())
        return TARGET / "packages" / name

    def install(self) -> None:
        """Installs its packages, unless that was done."""
        mark = self.folder / "installed"
        if mark.exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.npm:
            command = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix", self.folder]
            subprocess.run([*command, *self.npm], check=True, stdout=subprocess.DEVNULL)
        if self.pypi:
            venv.create(self.folder, with_pip=True)
            subprocess.run([self.program("pip"), "install", "--quiet", *self.pypi], check=True)
        self.finish_install()
        mark.write_text("\n".join(self.packages()))

    def finish_install(self) -> None:
        """What is to be done after the packages are there."""

    def program(self, name: str) -> str:
        """The path of an installed program."""
        return str(self.folder / ("node_modules/.bin" if self.npm else "bin") / name)

    def write(self, place: Place) -> None:
        """Writes the host's files of configuration below `place.home` and `place.work`."""

    def command(self, place: Place, prompt: str) -> list[str]:
        """The command that does the prompt's work and ends. It runs in `place.work`."""
        raise NotImplementedError

    def environment(self, place: Place) -> dict[str, str]:
        """Variables besides PATH, HOME and LANG."""
        return {}

    def keys(self, screen: str) -> tuple[str, ...]:
        """What a person types, a pause before each, where the host has a terminal. The screen comes without spaces."""
        return ()

    def models(self) -> Any:
        """The answer to GET, whatever the path: a list of models."""
        return {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []}

    def main(self, seen: Conversation) -> bool:
        """Whether a request is of the job; titles, summaries and checks of safety are not."""
        return bool(seen.tools) and not seen.formed

    def call(self, tool: str, arguments: str, seen: Conversation) -> Call | None:
        """How the model calls a tool of the board. None: it cannot, or does not know it."""
        found = seen.tool(tool)
        if found:
            return Call(found.name, arguments, namespace=found.namespace)
        return self.search(tool, seen)

    def search(self, tool: str, seen: Conversation) -> Call | None:
        """The call that looks for a tool, in hosts that defer them (with `search=True`)."""
        return None


def every() -> dict[str, Host]:
    """All hosts by name."""
    found = {}
    for file in sorted(FOLDER.glob("*.py")):
        if "\nHOSTS" in file.read_text():
            found |= {host.name: host for host in importlib.import_module(file.stem).HOSTS}
    return found


def variables(host: Host, place: Place) -> dict[str, str]:
    """The whole environment of a host: nothing of whoever runs the harness but PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    fixed = {"PATH": path, "HOME": str(place.home), "LANG": "C.UTF-8", "TERM": "dumb", "NO_PROXY": "127.0.0.1"}
    return fixed | host.environment(place)


def save(path: Path, value: Any) -> None:
    """Writes a file, with its folder; what is not text as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
