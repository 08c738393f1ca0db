"""Build hook that makes `_sync` from `_async` and `_problems` from the table of errors; as a command, in place."""

from __future__ import annotations

import json
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

ERRORS = Path(__file__).parent / "../../docs/reference/errors.md"
"""The server's table of errors, which its tests keep equal to the code. An sdist has what was made of it."""
PROBLEMS_MODULE = PACKAGE / "_problems.py"
GROUPS = {
    "BadRequest": (400,),
    "AccessDenied": (401, 403),
    "NotFound": (404,),
    "UnsupportedRequest": (405, 415, 416, 421),
    "Conflict": (409,),
    "Gone": (410,),
    "ConditionRefused": (412,),
    "TooLarge": (413,),
    "Unprocessable": (422,),
    "Unavailable": (408, 429, 500, 503, 507),
}
OTHER_NAMES = {"unsupported-value": "ValueRefused"}
OTHER_BASES = {
    "path-not-found": "LookupError",
    "condition-not-met": "TimeoutError",
    "revision-not-reached": "TimeoutError",
}
PROBLEMS = """# Made from docs/reference/errors.md by hatch_build.py.
\"""Exceptions named after the codes of the server's problems.\"""

from ._problem import {groups}

__all__ = {names}
"""
PROBLEM = '''

class {name}({bases}):
    """{meaning}"""

    code_name = "{code}"
'''


def generate() -> None:
    """Write `_sync` anew, and `_problems` where the table is."""
    generate_sync()
    if ERRORS.exists():
        generate_problems()
    elif not PROBLEMS_MODULE.exists():
        raise FileNotFoundError(f"{ERRORS}: the codes that the classes are made from")


def generate_problems() -> None:
    """Write the class of each code, under that of its kind of status."""
    groups = {str(status): group for group, statuses in GROUPS.items() for status in statuses}
    classes, names = [], []
    for row in re.finditer(r"^\| (\d+) \| `([\w-]+)` \| (.+) \|$", ERRORS.read_text("utf-8"), re.MULTILINE):
        status, code, meaning = row.groups()
        name = OTHER_NAMES.get(code) or "".join(word.capitalize() for word in code.split("-"))
        bases = [groups[status], OTHER_BASES.get(code)]
        classes.append(PROBLEM.format(name=name, bases=", ".join(filter(None, bases)), meaning=meaning, code=code))
        names.append(name)
    header = PROBLEMS.format(groups=", ".join(GROUPS), names=json.dumps(names, indent=4))
    PROBLEMS_MODULE.write_text(header + "".join(classes), "utf-8")


def generate_sync() -> None:
    """Write `_sync`. Every name that begins with `Async` loses that prefix."""
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
    """Generates `_sync` and `_problems` before a wheel, an sdist or an editable install is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate; an sdist has both, so that it builds without a checkout."""
        generate()


if __name__ == "__main__":
    generate()
