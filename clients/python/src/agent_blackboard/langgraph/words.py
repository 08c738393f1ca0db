"""Words of the store: the text by which the server's index finds an item, and the terms of a query."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import get_text_at_path, tokenize_path

SCOPES_MAX = 32
"""The labels of a namespace that a search by words tells apart in the index."""
TEXT_BYTES_MAX = 256 * 1024
"""The text of one item that is searched by words, in bytes: the server's limit."""
TERMS_MAX = 12
"""The terms of a query that are searched, and as many that exclude."""
TERM_BYTES_MAX = 64
"""The longest term, in bytes."""

_TERM = re.compile(r'(?:(?<!\S)(?P<minus>-)(?=[^\W\d_]|"))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
"""A minus excludes if nothing or a space is before it, and a letter or a quotation mark behind it, as on the server."""


@dataclass(frozen=True)
class Query:
    """A search by words: terms of which an item has one at least, and terms, with their `-`, of which it has none."""

    terms: tuple[str, ...]
    without: tuple[str, ...]


def query(text: str) -> Query:
    """The terms of a query: words, "phrases", beginnings*, and -words that an item must not have.

    Further terms than TERMS_MAX of each kind are left out, and those longer than TERM_BYTES_MAX.
    """
    wanted: dict[str, None] = {}
    without: dict[str, None] = {}
    for found in _TERM.finditer(text.encode("utf-8", "replace").decode()):
        body = found["phrase"] or found["word"] or ""
        if not any(character.isalnum() for character in body) or len(body.encode()) > TERM_BYTES_MAX:
            continue
        begins = found["word"] is not None and body.endswith("*") and body[:-1].isalnum() and len(body) > 2
        term = body if begins else f'"{body}"'
        if found["minus"]:
            without["-" + term] = None
        else:
            wanted[term] = None
    return Query(tuple(wanted)[:TERMS_MAX], tuple(without)[:TERMS_MAX])


def entry(id: int, namespace: tuple[str, ...], value: dict[str, Any], index: Any) -> dict[str, Any] | None:
    """The entry by which a search finds an item: its id, the words of its namespaces, and its texts."""
    if index is None:
        parts = list(_leaves(value))
    else:
        parts = []
        for field in index:
            parts += _leaves(value) if field == "$" else get_text_at_path(value, tokenize_path(field))
    if not parts:
        return None
    scopes = " ".join(scope(namespace[:levels]) for levels in range(2, min(len(namespace), SCOPES_MAX) + 1))
    texts = "\n".join(parts).encode()[:TEXT_BYTES_MAX].decode(errors="ignore")
    return {"step": id, "scopes": scopes, "text": texts}


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)


def scope(prefix: tuple[str, ...]) -> str:
    """A word that the texts of all items below a namespace have, and no others."""
    return "ns" + hashlib.sha256(".".join(prefix).encode("utf-8", "surrogatepass")).hexdigest()[:24]
