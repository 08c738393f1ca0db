"""Runner of a UFO program and its child processes, with the modules aliased and no line changed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import Client, ufo
from agent_blackboard.ufo import __main__ as runner
from agent_blackboard.ufo import blackboard as drop_in_module

RUNNER = (sys.executable, "-m", "agent_blackboard.ufo", "--")
PROGRAM = """
import subprocess, sys
from ufo.agents.memory.blackboard import Blackboard, ImageMemoryItem, MemoryItem
from ufo.agents.memory.memory import Memory
from ufo.module.interactor import question_asker

board = Blackboard()
board.add_requests(" ".join(sys.argv[1:]) or "parent")
if len(sys.argv) == 1:
    print(Blackboard.__module__, Memory.__module__, question_asker("q", 1))
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A package that looks like UFO's, whose own memory modules must not be loaded."""
    for name in ("ufo", "ufo/agents", "ufo/agents/memory", "ufo/module"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    for name in ("blackboard", "memory"):
        (tmp_path / f"ufo/agents/memory/{name}.py").write_text("raise RuntimeError('the original was loaded')\n")
    (tmp_path / "ufo/module/interactor.py").write_text(
        "def question_asker(question: str, index: int) -> str:\n    return 'from the terminal'\n"
    )
    yield tmp_path
    for name in [name for name in sys.modules if name == "ufo" or name.startswith("ufo.")]:
        del sys.modules[name]


def test_a_program_and_its_children_run_with_the_alias(
    checkout: Path, run_python: Any, url: str, session_name: str, client: Client
) -> None:
    done = run_python(PROGRAM, *RUNNER, url=url, session=session_name)
    assert done.stdout.split() == [
        "agent_blackboard.ufo.blackboard",
        "agent_blackboard.ufo.memory",
        "from",
        "the",
        "terminal",
    ]
    assert list(client.session(session_name).requests.items()) == [{"text": "parent"}, {"text": "child"}]


def test_a_program_asks_on_the_board_where_it_is_set(
    checkout: Path, run_python: Any, url: str, session_name: str, client: Client
) -> None:
    settings = {"ask": "board", "ask_wait": "0.3", "ask_default": "default"}
    done = run_python(PROGRAM, *RUNNER, url=url, session=session_name, **settings)
    assert done.stdout.split()[-1] == "default"
    assert next(client.session(session_name).questions.items())["question"] == "q"


def test_another_sitecustomize_still_runs(
    checkout: Path, run_python: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "site").mkdir()
    (checkout / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = 'yes'\n")
    monkeypatch.setenv("PYTHONPATH", str(checkout / "site"))
    assert run_python("print(customized)", *RUNNER, url=url).stdout == "yes\n"


def test_an_interpreter_without_the_package_is_told(
    checkout: Path, run_python: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = Path(runner.ALIAS)
    monkeypatch.setenv("PYTHONPATH", str(alias))
    hide = "import sys\nsys.modules['agent_blackboard.ufo'] = None\n"
    done = run_python(hide + "import ufo.agents.memory.memory", check=False)
    assert done.returncode == 1
    assert "install agent-blackboard there to run UFO with it" in done.stderr


def test_the_finder_aliases_in_this_process(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, url: str, outbox: Path
) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(checkout)
    monkeypatch.syspath_prepend(runner.ALIAS)
    monkeypatch.setenv("BLACKBOARD_URL", url)
    loaded = sys.modules.pop("sitecustomize", None)
    try:
        alias = importlib.import_module("sitecustomize")
        assert importlib.import_module("ufo.agents.memory.blackboard") is drop_in_module
        asker = importlib.import_module("ufo.module.interactor").question_asker
        assert asker("q", 1) == "from the terminal"
        ufo.configure(ask="board", ask_wait=0.2, outbox=outbox)
        assert asker("q", index=1) == ""
        monkeypatch.setitem(sys.modules, "agent_blackboard.ufo.memory", None)
        with pytest.raises(ImportError, match="install agent-blackboard there"):
            importlib.import_module("ufo.agents.memory.memory")
        assert alias.AliasFinder().find_spec("json", None) is None
    finally:
        del sys.modules["sitecustomize"]
        if loaded is not None:
            sys.modules["sitecustomize"] = loaded


def test_the_command_says_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: python -m agent_blackboard.ufo -- command")
    assert runner.main([]) == runner.main(["--"]) == runner.main(["--url", "x"]) == 2
    assert "usage" in capsys.readouterr().err
    assert runner.main(["--", "no-such-program-anywhere"]) == 127
    assert "no-such-program-anywhere cannot be run: No such file" in capsys.readouterr().err


def test_the_status_of_a_program_is_the_commands(run_python: Any) -> None:
    assert run_python("raise SystemExit(3)", *RUNNER, check=False).returncode == 3


def test_the_alias_is_the_first_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert runner.environment()["PYTHONPATH"] == str(runner.ALIAS)
    monkeypatch.setenv("PYTHONPATH", "a")
    assert runner.environment()["PYTHONPATH"] == os.pathsep.join([str(runner.ALIAS), "a"])
