"""Runner of a page's Python snippets, from top to bottom in one namespace."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from types import CodeType
from typing import Any

PAGES = Path(__file__).parents[3] / "docs" / "guide"
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(
    name: str, *, instead: tuple[str, str] | None = None, only: tuple[str, ...] = (), **names: Any
) -> dict[str, Any]:
    """Run every fenced `python` block of a page, with `await` allowed at its top level; returns the namespace.

    `instead` is a text of the page, such as the default address, and what stands for it in the run. `only` are the
    titles of sections that are run, besides what comes before the first one; the blocks of the others are compiled.
    """
    text = (PAGES / name).read_text("utf-8")
    if instead is not None:
        assert instead[0] in text, f"{name} does not mention {instead[0]}"
        text = text.replace(*instead)
    blocks = list(_FENCE.finditer(text))
    assert blocks, f"{name} has no python snippet"
    assert all(f"\n## {title}" in text for title in only), f"{name} has no section {only}"
    namespace: dict[str, Any] = {"__name__": "__main__", **names}

    def compiled(block: re.Match[str], flags: int) -> CodeType:
        source = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        return compile(source, name, "exec", flags, dont_inherit=True)

    def is_run(block: re.Match[str]) -> bool:
        title = text.rfind("\n## ", 0, block.start())
        return not only or title < 0 or text.startswith(only, title + len("\n## "))

    for block in blocks:
        compiled(block, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    blocks = [block for block in blocks if is_run(block)]

    async def run() -> None:
        for block in blocks:
            result = eval(compiled(block, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), namespace)
            if inspect.iscoroutine(result):
                await result

    try:
        codes = [compiled(block, 0) for block in blocks]
    except SyntaxError:
        asyncio.run(run())
    else:
        for code in codes:
            exec(code, namespace)
    return namespace
