"""Working directory from which UFO runs: copies of its configuration, links to its packages, nothing else.

The checkout itself is never written to.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

OVERRIDES = {"SLEEP_TIME": 0, "MAX_ROUND": 5, "MAX_STEP": 1000, "ASK_QUESTION": False, "ENABLED_THIRD_PARTY_AGENTS": []}


def prepare(checkout: Path, directory: Path, qa_pairs: list[dict[str, str]] | None = None) -> Path:
    """Makes `directory` a place where UFO can run, with `qa_pairs` as its customization, and returns it."""
    for module in ("ufo", "galaxy"):
        target = directory / "config" / module
        target.mkdir(parents=True)
        for source in (checkout / "config" / module).glob("*.yaml*"):
            shutil.copyfile(source, target / source.name.removesuffix(".template"))
    overrides = {**OVERRIDES, "USE_CUSTOMIZATION": qa_pairs is not None}
    (directory / "config" / "ufo" / "system_test.yaml").write_text(json.dumps(overrides), encoding="utf-8")
    (directory / "customization").mkdir()
    lines = "".join(json.dumps(pair) + "\n" for pair in qa_pairs or [])
    (directory / "customization" / "global_memory.jsonl").write_text(lines, encoding="utf-8")
    (directory / "ufo").symlink_to(checkout / "ufo", target_is_directory=True)
    return directory


def environment(checkout: Path, base: dict[str, str]) -> dict[str, str]:
    """Environment of a process that imports UFO from `checkout`, on top of `base`."""
    return {**base, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "UFO_ENV": "test"}
