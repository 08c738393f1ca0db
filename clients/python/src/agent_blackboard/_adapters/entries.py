"""Entries of a log as of one revision, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from .. import AsyncLog, AsyncSession, Entry

PAGE_MAX: Final = 1000
"""Entries of one page."""


async def newest_first(
    session: AsyncSession, log: AsyncLog, size: int = PAGE_MAX, at: int | None = None
) -> AsyncIterator[Entry]:
    """All entries, the newest first, read page by page at the revision of the first page.

    `size` is a guess of how many are wanted. Raises SessionNotFound.
    """
    query: dict[str, Any] = {"order": "desc", "limit": min(size, PAGE_MAX)}
    while True:
        answer = await session.read(log.path, query, at=at)
        page = answer.json()
        for raw in page["entries"]:
            yield Entry(raw["seq"], raw["revision"], raw["at"], raw.get("agent"), raw["item"])
        if not page["more"]:
            return
        at = answer.revision if at is None else at
        query = {"order": "desc", "limit": PAGE_MAX, "before": page["next"]}
