#!/usr/bin/env bash
# SQLite 3.54.1: FTS5's tokenizer unicode61 takes signs that are newer than its tables for letters.
#
# unicode61 separates words at every character that is neither a letter nor a digit. Its tables are those of an old Unicode:
# the robot and the green circle, the sign of the rouble and the turned face are not in them, and count as letters. So a word
# that such a sign touches is another word, and a sign between spaces stands between the words of a phrase. The sign of the
# euro, the rocket and the grinning face separate words.
#
# Seen: for each sign, whether the word is found in "SIGNdone", and the phrase "all ready" in "all SIGN ready".
#   € 🚀 😀 True True
#   🤖 🟢 ₽ 🙃 False False
# Expected: all as the first.
#
# Put a space for each character that your own tables have as a sign before a text is indexed or searched. Needs python3 with
# venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check apsw==3.54.1.0
cat >"$at/signs.py" <<'PYTHON'
from itertools import groupby

import apsw


def found(sign):
    """Whether a word that the sign touches is found, and a phrase with the sign in it."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'unicode61')")
    texts, queries = (f"{sign}done", f"all {sign} ready"), ("done", '"all ready"')
    for text in texts:
        connection.execute("INSERT INTO texts VALUES (?)", (text,))
    return tuple(
        connection.execute("SELECT count(*) FROM texts WHERE text = ? AND texts MATCH ?", pair).fetchone()[0] == 1
        for pair in zip(texts, queries)
    )


for (word, phrase), signs in groupby("€🚀😀🤖🟢₽🙃", key=found):
    print(" ".join(signs), word, phrase)
PYTHON
"$at/venv/bin/python" "$at/signs.py" >"$at/seen"
diff - "$at/seen" <<'SEEN'
€ 🚀 😀 True True
🤖 🟢 ₽ 🙃 False False
SEEN
echo "as described"
