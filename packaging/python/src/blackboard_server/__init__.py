"""Where the server's binary is that this package brought."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

__all__ = ["binary"]


def binary() -> Path:
    """Return the path of the command `blackboard`, wherever the package is installed."""
    recorded = [file for file in distribution("blackboard-server").files or () if file.stem == "blackboard"]
    for file in recorded:
        # `pip install --target` moves commands beside the packages, and records where they were.
        for path in (Path(str(file.locate())), Path(__file__).parents[1] / file.parent.name / file.name):
            if path.is_file():
                return path.resolve()
    raise FileNotFoundError("the package blackboard-server is installed without its command; please install it again")
