"""Headers of answers, read into values."""

from __future__ import annotations

from collections.abc import Mapping

DIGITS_MAX = 19


def tag(headers: Mapping[str, str]) -> str | None:
    """The tag of the resource shown or made, as `If-Match` takes it.

    Proxies that compress make `ETag` weak, extend it or remove it, and leave its copy `Blackboard-ETag` alone. The
    server's tags are strong, so a weak one is the server's tag behind `W/`.
    """
    text = headers.get("blackboard-etag") or headers.get("etag")
    return text.removeprefix("W/") if text else None


def revision(headers: Mapping[str, str]) -> int | None:
    """The session's revision that the answer shows."""
    return _number(headers, "blackboard-revision")


def retry_after(headers: Mapping[str, str]) -> int | None:
    """The pause that the server asks for, in seconds."""
    return _number(headers, "retry-after")


def _number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else None
