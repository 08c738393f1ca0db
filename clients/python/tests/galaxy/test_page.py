"""Snippets of the guide to Galaxy, run with the tests' event bus in place of Galaxy's."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from ..snippets import run_page
from .bus import Constellation, EventBus, Galaxy, Task

BUS = EventBus()


class GalaxyClient:
    """A run of one task, in the place of Galaxy's own client."""

    async def initialize(self) -> None:
        await Galaxy(BUS).device("connected", "linux", "idle", {"linux": "idle"})

    async def process_request(self, request: str) -> None:
        task = Task("t1", "linux")
        constellation = Constellation("c1", task)
        await Galaxy(BUS).constellation("started", constellation, "executing")
        await Galaxy(BUS).task("started", constellation, task)
        await Galaxy(BUS).task("completed", constellation, task, result="12 pages")

    async def shutdown(self) -> None:
        """Nothing to end."""


def module(name: str, **names: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    return made


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    events = module("galaxy.core.events", get_event_bus=lambda: BUS)
    for each in (module("galaxy", GalaxyClient=GalaxyClient), module("galaxy.core"), events):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    monkeypatch.setenv("BLACKBOARD_URL", url)
    run_page("galaxy.md")
    result, first, second = capsys.readouterr().out.splitlines()
    assert result == "12 pages"
    assert (first.split()[0], second.split()[0]) == ("task_started", "task_completed")
