"""Names of boards from any ids, as the adapters make them."""

from __future__ import annotations

import random
import sys

import pytest

from agent_blackboard._adapters.names import joined, key_of, name_of, text_of
from agent_blackboard._adapters.strings import STRING_MAX, packed

ALPHABET = ["", ".", "/", "%", ":", "a", "2", "F", "é", "\x00", "\x85", "\ud800", "\udfff", "🙂", "%2F"]


def texts() -> list[str]:
    generator = random.Random(21)
    made = ["".join(generator.choices(ALPHABET, k=generator.randrange(8))) for _ in range(5000)]
    return list(dict.fromkeys([*made, *map(chr, range(0, sys.maxunicode, 97))]))


def test_names_are_reversible_and_legal() -> None:
    names = {name_of(text): text for text in texts()}
    assert len(names) == len(texts())
    for name, text in names.items():
        assert text_of(name) == text_of(key_of(text)) == text
        assert name not in ("", ".", "..")
        assert 1 <= len(name.encode()) <= 256
        assert not any(character == "/" or ord(character) < 32 or 127 <= ord(character) < 160 for character in name)


def test_parts_are_joined_without_mixing_them_up() -> None:
    parts = texts()[:60]
    names = {joined("p", one, other): (one, other) for one in parts for other in parts}
    assert len(names) == len(parts) ** 2
    for name, pair in names.items():
        assert tuple(map(text_of, name.split(":")[1:])) == pair


def test_long_ids_become_digests_that_differ() -> None:
    names = {name_of("x" * 300 + str(number)) for number in range(100)}
    assert len(names) == 100
    assert all(name.startswith("%.") and text_of(name) == name for name in names)
    assert len(joined("p" * 13, "x" * 99, "é" * 41, "y" * 80).encode()) <= 256


@pytest.mark.parametrize("key", ["%FF", "%zz", "100%", "%.%C3"])
def test_a_key_that_was_not_made_here_stays_as_it_is(key: str) -> None:
    assert text_of(key) == key


def test_only_long_strings_become_blobs() -> None:
    blobs: dict[str, bytes] = {}
    item = {"short": "x" * STRING_MAX, "long": ["y" * (STRING_MAX + 1)] * 2, "tuple": (1, None, 2.5, True)}
    small = packed(item, blobs)
    assert small["short"] == item["short"]
    assert small["long"][0] == small["long"][1]
    assert small["tuple"] == [1, None, 2.5, True]
    assert list(blobs.values()) == [b"y" * (STRING_MAX + 1)]
