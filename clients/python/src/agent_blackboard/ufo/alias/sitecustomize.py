"""Alias of UFO's memory modules, loaded by every Python process that has this directory on its PYTHONPATH.

`ufo.agents.memory.blackboard` and `ufo.agents.memory.memory` become the drop-in's modules. `question_asker` of
`ufo.module.interactor` asks on the board where the setting `ask` says so. Nothing is imported before UFO does.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

ALIASES = {
    "ufo.agents.memory.blackboard": "agent_blackboard.ufo.blackboard",
    "ufo.agents.memory.memory": "agent_blackboard.ufo.memory",
}
INTERACTOR = "ufo.module.interactor"


class AliasLoader(Loader):
    """Loader that puts another module in the place of the one that is imported."""

    def exec_module(self, module: ModuleType) -> None:
        """Raises ImportError where this interpreter does not have the package."""
        name = ALIASES[module.__name__]
        try:
            sys.modules[module.__name__] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            text = f"{sys.executable} has no {error.name}: install agent-blackboard there to run UFO with it"
            raise ImportError(text, name=module.__name__) from error


class AskerLoader(Loader):
    """Loader of UFO's own interactor, whose `question_asker` is then wrapped."""

    def __init__(self, original: Loader) -> None:
        self._original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The original's module."""
        return self._original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the original, then wrap."""
        self._original.exec_module(module)
        module.question_asker = choosing(module.question_asker)  # type: ignore[attr-defined]


class AliasFinder(MetaPathFinder):
    """Finder of the aliased modules."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of an aliased module; None for any other."""
        if name in ALIASES:
            return ModuleSpec(name, AliasLoader())
        if name != INTERACTOR:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = AskerLoader(spec.loader)
        return spec


def choosing(original: Callable[..., str]) -> Callable[..., str]:
    """An asker that asks on the board or as UFO does, by the setting `ask` at the time of the question."""

    def question_asker(*args: Any, **kwargs: Any) -> str:
        from agent_blackboard.ufo import asker, settings

        on_board = settings.settings().ask == "board"
        return (asker.question_asker if on_board else original)(*args, **kwargs)

    return question_asker


def run_next() -> None:
    """Run the sitecustomize that this one hides, if there is another."""
    here = Path(__file__).resolve().parent
    others = [entry for entry in sys.path if Path(entry).resolve() != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, AliasFinder())
    run_next()
