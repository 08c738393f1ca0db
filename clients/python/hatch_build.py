"""Build hook that makes the package's `_sync` modules from `_async`, and a command that does the same in place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from unasync import Rule, unasync_files

PACKAGE = Path(__file__).parent / "src" / "agent_blackboard"
CALLS = {
    "aclose": "close",
    "aconnect_sse": "connect_sse",
    "aiter_bytes": "iter_bytes",
    "aiter_sse": "iter_sse",
    "aread": "read",
    "async_body": "sync_body",
    "async_sleep": "sync_sleep",
}
HEADER = "# Made from `_async` by hatch_build.py; edit it there.\n"


def generate() -> None:
    """Write `_sync` anew. Every name that begins with `Async` loses that prefix."""
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    names = {name for source in sources for name in re.findall(r"\bAsync[A-Z]\w*", source.read_text("utf-8"))}
    replacements = {name: name.removeprefix("Async") for name in names}
    rule = Rule("/_async/", "/_sync/", CALLS | replacements)
    unasync_files([str(source) for source in sources], [rule])
    made = PACKAGE / "_sync"
    wanted = {source.name for source in sources}
    for path in made.glob("*.py"):
        if path.name in wanted:
            path.write_text(HEADER + path.read_text("utf-8"), "utf-8")
        else:
            path.unlink()


class CustomBuildHook(BuildHookInterface[Any]):
    """Generates `_sync` before a wheel, an sdist or an editable install is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate; an sdist has both, so that it builds without a checkout."""
        generate()


if __name__ == "__main__":
    generate()
