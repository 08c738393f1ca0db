"""Values of channels and writes: serialized, and then part of the state or a blob of the session.

A short value stands in the state as `{"type", "base64"}`. A longer one is a blob, and the state refers to it by
`{"type", "$blob", "bytes"}`: stored once in a session however many checkpoints name it, and kept while one does.
A serializer of the caller's sees every value; the skeleton of a checkpoint and its metadata are plain JSON where they
can be.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from .._wire import segment
from .caches import Cache
from .errors import ValueTooLarge
from .exchange import Exchange, Request
from .sessions import place

INLINE_MAX = 1024
"""The longest value that stands in the state, in bytes."""
BLOB_MAX = 32 << 20
"""The longest value, in bytes: the server's limit of a blob."""
CACHE_BYTES_MAX = 64 << 20
"""The bytes of blobs that are kept in memory, by one adapter."""
KNOWN_MAX = 100_000
"""The number of blobs that are known to be stored."""
INTEGER_BITS_MAX = 14_000
"""The longest integer that stands in the state as it is, in bits; the server's limit is 4,300 digits."""
LEVELS_MAX = 64
"""The levels of JSON that stand in the state as they are; the server's limit is 128, the path included."""

SURROGATE = re.compile("[\ud800-\udfff]")

Reference = dict[str, Any]


@dataclass(frozen=True)
class Blob:
    """A value to be stored as a blob."""

    sha256: str
    content: bytes


@dataclass(frozen=True)
class Packed:
    """A serialized value: its reference in the state, and its blob unless it is short."""

    reference: Reference
    blob: Blob | None


class Values:
    """The values of an adapter's sessions."""

    def __init__(self) -> None:
        self._content: Cache[str, bytes] = Cache(CACHE_BYTES_MAX, len)
        self._known: Cache[tuple[str, str], bool] = Cache(KNOWN_MAX)

    def store(self, session: str, packed: Iterable[Packed], *, every: bool = False) -> Exchange[None]:
        """Upload the blobs that the session is not known to have, or all of them."""
        for blob in {part.blob.sha256: part.blob for part in packed if part.blob is not None}.values():
            known = (session, blob.sha256)
            if every or self._known.get(known) is None:
                address = f"{place(session)}/blobs/{blob.sha256}"
                media_type = "application/octet-stream"
                yield Request("PUT", address, content=blob.content, media_type=media_type, keyed=False)
                self._known.put(known, True)
            self._content.put(blob.sha256, blob.content)

    def load(self, session: str, serde: SerializerProtocol, reference: Reference) -> Exchange[Any]:
        """The value of a reference, made anew each time."""
        if "$blob" not in reference:
            return serde.loads_typed((reference["type"], base64.b64decode(reference["base64"])))
        sha256 = str(reference["$blob"])
        content = self._content.get(sha256)
        if content is None:
            answer = yield Request("GET", f"{place(session)}/blobs/{segment(sha256)}")
            content = answer.content
            self._content.put(sha256, content)
        self._known.put((session, sha256), True)
        return serde.loads_typed((reference["type"], content))

    def forget(self, session: str) -> None:
        """Forget which blobs a session has."""
        self._known.drop_where(lambda known: known[0] == session)


def pack(serde: SerializerProtocol, value: Any, name: str) -> Packed:
    """Serialize a value. `name` says in an error which one it is. Raises ValueTooLarge."""
    kind, data = serde.dumps_typed(value)
    content = bytes(data)
    if len(content) > BLOB_MAX:
        raise ValueTooLarge(f"{name} has {len(content)} bytes serialized; the limit is {BLOB_MAX} (32 MiB)")
    delta = {"delta": True} if isinstance(value, _DeltaSnapshot) else {}
    if len(content) <= INLINE_MAX:
        return Packed({"type": kind, "base64": base64.b64encode(content).decode(), **delta}, None)
    sha256 = hashlib.sha256(content).hexdigest()
    return Packed({"type": kind, "$blob": sha256, "bytes": len(content), **delta}, Blob(sha256, content))


def is_plain(value: Any, levels: int = LEVELS_MAX) -> bool:
    """Whether a value is the same after a way through the state: JSON of few levels, without references to blobs.

    A tuple comes back as a list.
    """
    kind: Any = type(value)
    if kind is str:
        return bool(value.isascii() or SURROGATE.search(value) is None)
    if kind is int:
        return bool(value.bit_length() <= INTEGER_BITS_MAX)
    if kind is float:
        return math.isfinite(value)
    if kind in (list, tuple):
        return levels > 0 and all(is_plain(part, levels - 1) for part in value)
    if kind is dict:
        pairs = value.items()
        return (
            levels > 0
            and "$blob" not in value
            and all(type(key) is str and is_plain(key) and is_plain(part, levels - 1) for key, part in pairs)
        )
    return value is None or isinstance(value, bool)
