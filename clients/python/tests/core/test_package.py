"""Package as it is published: built, installed, and its public names."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
WHEEL_SCRIPT = """
import agent_blackboard, inspect, sys
from agent_blackboard import AsyncClient, Client
assert agent_blackboard.__file__.startswith(sys.argv[1]), agent_blackboard.__file__
assert not inspect.iscoroutinefunction(Client.request) and inspect.iscoroutinefunction(AsyncClient.request)
with Client(sys.argv[2], agent="A") as client:
    print(client.session(sys.argv[3]).trajectories.append({"step": 1}).seq)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    made = subprocess.run(command, cwd=cwd, env=os.environ | environment, text=True, capture_output=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_sdist_and_wheel_are_built_installed_and_used(tmp_path: Path, url: str, session_name: str) -> None:
    """The sdist comes from the checkout, the wheel from the sdist, and the installed wheel writes to a server."""
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", tmp_path, ".", cwd=PACKAGE)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ".", cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for name in ("py.typed", "_problems.py", "_sync/client.py", "_async/client.py", "ufo/__init__.py", "galaxy.py"):
        assert f"agent_blackboard/{name}" in names
    assert not [name for name in names if name.startswith("tests")]
    installed = tmp_path / "installed"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", installed, wheel, cwd=tmp_path)
    arguments = ["-c", WHEEL_SCRIPT, str(installed), url, session_name]
    assert run(sys.executable, *arguments, cwd=tmp_path, PYTHONPATH=str(installed)) == "1\n"


def test_every_public_name_is_exported() -> None:
    import agent_blackboard

    for name in agent_blackboard.__all__:
        assert getattr(agent_blackboard, name) is not None
