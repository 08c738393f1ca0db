"""Runner of a page's Python snippets, from top to bottom in one namespace."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parents[3] / "docs" / "guide"
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(name: str, **names: Any) -> dict[str, Any]:
    """Run every fenced `python` block of a page, with `await` allowed at its top level; returns the namespace."""
    text = (PAGES / name).read_text("utf-8")
    blocks = list(_FENCE.finditer(text))
    assert blocks, f"{name} has no python snippet"
    namespace: dict[str, Any] = {"__name__": "__main__", **names}

    async def run() -> None:
        for block in blocks:
            line = text.count("\n", 0, block.start(1))
            code = compile("\n" * line + block[1], name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, namespace)
            if inspect.iscoroutine(result):
                await result

    if any(re.search(r"\bawait\b|\basync (with|for)\b", block[1]) for block in blocks):
        asyncio.run(run())
    else:
        for block in blocks:
            line = text.count("\n", 0, block.start(1))
            exec(compile("\n" * line + block[1], name, "exec"), namespace)
    return namespace
