"""Stubs of the packages that UFO imports and the harness never reaches: model clients, retrieval, spreadsheets.

A package that is installed wins, since the finder is asked last; any other name stays missing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

STUBBED = frozenset(
    {
        "fastapi",
        "fastmcp",
        "gradio_client",
        "langchain",
        "langchain_community",
        "mcp",
        "openai",
        "pandas",
        "pywinauto",
        "uiautomation",
        "win32com",
    }
)


class Absent:
    """Stand-in for any class or function of a stubbed package: callable, subscriptable, a base class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Absent:
        return Absent()

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (object,)


class StubModule(ModuleType):
    """Module whose every public name is an `Absent`."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()


class StubLoader(Loader):
    """Loader of stub modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


class StubFinder(MetaPathFinder):
    """Finder of the stubbed packages and their submodules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in STUBBED:
            return ModuleSpec(fullname, StubLoader(), is_package=True)
        return None


def install() -> None:
    """Appends the finder to the import system."""
    sys.meta_path.append(StubFinder())
