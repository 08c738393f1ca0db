"""Names of boards for any ids: reversible, and within the server's rules of names.

A character that no name may have, `%`, and the separator become `%XX`, byte by byte; the empty id is `%`. An id that is
too long becomes `%.` and its SHA-256, which cannot be reversed: a board keeps such ids itself.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

NAME_BYTES_MAX: Final = 256
"""Bytes of a session's name on the server."""
SEPARATOR: Final = ":"
DIGEST: Final = "%."
"""Begin of a name that is a digest; no escape begins so."""
SEGMENT_BYTES_MAX: Final = 80
"""Bytes of an id that is a part of a name; a prefix of 13 bytes and three parts fit a name."""
_RESERVED = re.compile("[\x00-\x1f\x7f-\x9f/%\ud800-\udfff]")
_RESERVED_IN_SEGMENT = re.compile("[\x00-\x1f\x7f-\x9f/%:\ud800-\udfff]")
_ESCAPE = re.compile("(?:%[0-9A-F]{2})+")


def name_of(text: str) -> str:
    """The name for one id; an id that is a name already stays as it is, unless it has a `%`."""
    return _encoded(text, _RESERVED, NAME_BYTES_MAX)


def joined(prefix: str, *ids: str) -> str:
    """The name for ids under a prefix, with `:` between the parts."""
    return SEPARATOR.join([prefix, *(_encoded(text, _RESERVED_IN_SEGMENT, SEGMENT_BYTES_MAX) for text in ids)])


def key_of(text: str) -> str:
    """A key of the state for any text: keys cannot be empty, `.` or `..`."""
    return _encoded(text, _RESERVED, None)


def text_of(name: str) -> str:
    """The text that a name, a part of one or a key was made of. A digest stays as it is."""
    return "" if name == "%" else _ESCAPE.sub(_unescaped, name)


def _encoded(text: str, reserved: re.Pattern[str], most: int | None) -> str:
    if text in ("", ".", ".."):
        return text.replace(".", "%2E") or "%"
    name = reserved.sub(_escaped, text)
    if most is not None and len(name.encode()) > most:
        return DIGEST + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return name


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _unescaped(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return match[0]  # Somebody else's key.
