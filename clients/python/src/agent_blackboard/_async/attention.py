"""Attention: all that waits for an agent, read once, waited for, or followed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._backend import async_sleep
from .._wire import WAIT_PIECE, Seconds, seconds, segment
from ..errors import ConditionNotMet, SessionNotFound
from ..values import Attention, attention

if TYPE_CHECKING:
    from .session import AsyncSession

AGAIN_SECONDS = 1.0
"""The pause before a read that a proxy leaves no tag to wait by."""
NOT_MODIFIED = 304


async def read_attention(
    session: AsyncSession,
    name: str,
    after: int,
    match: Mapping[str, Any] | None,
    include: Iterable[str] | None,
    wait: Seconds | None,
    timeout: float | None,
) -> Attention:
    """What waits for an agent, or what comes within `wait`."""
    params = {"after": after, **_wanted(match, include)}
    deadline = time.monotonic() + (0.0 if wait is None else seconds(wait))
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            answer = await session.request("GET", _path(name), params=params, wait=left or None, timeout=timeout)
        except SessionNotFound:
            if left == 0:
                return Attention(next=after)
            with suppress(ConditionNotMet):
                await session.until("", "exists", left)
        else:
            return attention(answer)


async def follow_attention(
    session: AsyncSession,
    name: str,
    after: int,
    match: Mapping[str, Any] | None,
    include: Iterable[str] | None,
) -> AsyncIterator[Attention]:
    """What waits for an agent, each time something new does.

    After each result the cursor moves on, so that answers and claimable requests come once. What is left is looked at,
    and only a change of its tag ends the wait that follows.
    """
    wanted = _wanted(match, include)
    seen: frozenset[tuple[str, int, Any]] = frozenset()
    paused, tag, wait = False, None, 0.0
    while True:
        params = {"after": after, **wanted}
        try:
            answer = await session.request("GET", _path(name), params=params, wait=wait, if_none_match=tag)
        except SessionNotFound:
            with suppress(ConditionNotMet):
                await session.until("", "exists", WAIT_PIECE)
            continue
        if answer.status == NOT_MODIFIED:
            continue
        found = attention(answer)
        standing = _standing(found)
        is_new = not standing <= seen or found.paused != paused or found.claimable.count or found.answers.count
        seen, paused, wait = standing, found.paused, WAIT_PIECE
        if is_new:
            yield found
            after, tag, wait = found.next, None, 0.0
        elif found.etag in (None, tag):
            # A proxy removes tags, or changes them so that none matches.
            await async_sleep(AGAIN_SECONDS)
        else:
            tag = found.etag


def _wanted(match: Mapping[str, Any] | None, include: Iterable[str] | None) -> dict[str, Any]:
    return {"match": match, "include": None if include is None else list(include)}


def _standing(found: Attention) -> frozenset[tuple[str, int, Any]]:
    """What stays until it is acknowledged or ended. A request cancelled or judged again has another fence."""
    messages = {("message", entry.seq, None) for entry in found.messages.newest}
    cancels = {("cancel", entry.seq, (entry.claim or {}).get("fence")) for entry in found.cancels.newest}
    reviews = {("review", entry.seq, (entry.in_review or {}).get("fence")) for entry in found.reviews.newest}
    return frozenset(messages | cancels | reviews)


def _path(name: str) -> str:
    return f"agents/{segment(name)}/attention"
