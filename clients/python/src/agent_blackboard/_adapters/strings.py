"""Long strings of items, kept as blobs: an item has at most 1 MiB, an image in base64 often more.

`{"$blob": digest, "string": length}` stands for a string of more than 64 Ki characters. Equal strings are stored once a
session.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Iterable
from typing import Any, Final, TypeVar

from .. import AsyncSession, UnsupportedValue

T = TypeVar("T")
STRING_MAX: Final = 64 * 1024
"""Characters of a string that stays in its item."""
DEPTH_MAX: Final = 128
"""Levels of an item on the server."""
AT_ONCE: Final = 8
"""Requests that one call makes at the same time."""
TEXT: Final = "text/plain; charset=utf-8"


def packed(value: Any, blobs: dict[str, bytes], depth: int = 1) -> Any:
    """A value without its long strings, which are put into `blobs` by their digests.

    Raises UnsupportedValue for a value that no item can have.
    """
    if depth > DEPTH_MAX:
        raise UnsupportedValue(f"the value has more than {DEPTH_MAX} levels")
    if isinstance(value, str) and len(value) > STRING_MAX:
        return _reference(value, blobs)
    if isinstance(value, dict):
        if _is_reference(value):
            raise UnsupportedValue("an object with the members '$blob' and 'string' stands for a blob")
        return {key: packed(part, blobs, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [packed(part, blobs, depth + 1) for part in value]
    return value


async def store(session: AsyncSession, blobs: dict[str, bytes]) -> None:
    """Upload blobs. Those that no commit names within an hour are deleted by the server."""
    await gathered(session.blobs.put(content, TEXT) for content in blobs.values())


async def unpacked(session: AsyncSession, items: list[Any]) -> list[Any]:
    """The values that were packed, their strings read from the session."""
    digests = list(dict.fromkeys(digest for item in items for digest in references(item)))
    if not digests:
        return items
    contents = await gathered(session.blobs.get(digest) for digest in digests)
    strings = {digest: content.decode() for digest, content in zip(digests, contents, strict=True)}
    return [filled(item, strings) for item in items]


def references(value: Any) -> Iterable[str]:
    """The digests of the blobs that stand in a packed value."""
    if isinstance(value, dict):
        if _is_reference(value):
            yield value["$blob"]
            return
        value = value.values()
    elif not isinstance(value, list):
        return
    for part in value:
        yield from references(part)


def filled(value: Any, strings: dict[str, str]) -> Any:
    """A packed value with its strings, given by their digests."""
    if isinstance(value, dict):
        return strings[value["$blob"]] if _is_reference(value) else {k: filled(v, strings) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(part, strings) for part in value]
    return value


async def gathered(calls: Iterable[Awaitable[T]]) -> list[T]:
    """The results of calls in their order, a few calls at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def turn(call: Awaitable[T]) -> T:
        async with turns:
            return await call

    return await asyncio.gather(*[turn(call) for call in calls])


def _reference(text: str, blobs: dict[str, bytes]) -> dict[str, Any]:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedValue(f"the value is not JSON: {error.reason}") from error
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"$blob": digest, "string": len(text)}


def _is_reference(value: dict[str, Any]) -> bool:
    return value.keys() == {"$blob", "string"} and isinstance(value["$blob"], str)
