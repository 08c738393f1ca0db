"""Names of sessions and keys of the state, made from any text and read back.

A session's name has 1 to 256 bytes, no `/` and no control character; a key of the state is not empty, `.` or `..`.
Percent-encoding takes care of what is forbidden; a name that is still too long is a hash.
"""

from __future__ import annotations

import hashlib
import re

from ..errors import UnsupportedValue

NAME_BYTES_MAX = 256
"""The longest name of a session, in bytes of UTF-8."""
PREFIX_BYTES_MAX = 128
"""The longest prefix of an adapter's sessions, so that a hash fits behind it."""

_FORBIDDEN = re.compile("[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ENCODED = re.compile("(?:%[0-9A-F]{2})+")


def escaped(text: str) -> str:
    """Text without `/`, control characters and unpaired surrogates: these, and `%`, are percent-encoded."""
    return _FORBIDDEN.sub(lambda found: _percent(found[0]), text)


def unescaped(text: str) -> str:
    """The text of `escaped`."""
    return _ENCODED.sub(lambda found: _bytes(found[0]).decode("utf-8", "surrogatepass"), text)


def key(text: str) -> str:
    """A key of the state for any text. `:` goes before what is no key by itself: nothing, `.`, `..`, a colon."""
    plain = escaped(text)
    return f":{plain}" if plain in ("", ".", "..") or plain.startswith(":") else plain


def text_of(key: str) -> str:
    """The text of a `key`."""
    return unescaped(key.removeprefix(":"))


def hashed(text: str) -> str:
    """The name of a text that is too long to be one: `~` and its SHA-256."""
    return "~" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def thread_session(prefix: str, thread_id: str) -> str:
    """The session of a thread. Different threads have different ones."""
    plain = escaped(thread_id)
    if plain.startswith("~"):
        plain = "%7E" + plain[1:]
    name = prefix + plain
    return name if len(name.encode()) <= NAME_BYTES_MAX else prefix + hashed(thread_id)


def thread_of(prefix: str, session: str) -> str | None:
    """The thread of a session; None where the name is a hash."""
    rest = session.removeprefix(prefix)
    return None if rest.startswith("~") else unescaped(rest)


def checked_prefix(prefix: str) -> str:
    """A prefix for an adapter's sessions. Raises UnsupportedValue for one that names cannot begin with."""
    if not prefix or escaped(prefix) != prefix or len(prefix.encode()) > PREFIX_BYTES_MAX:
        raise UnsupportedValue(
            f"a prefix has 1 to {PREFIX_BYTES_MAX} bytes, no '/', '%' and control characters, not {prefix!r}"
        )
    return prefix


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _bytes(encoded: str) -> bytes:
    return bytes.fromhex(encoded.replace("%", ""))
