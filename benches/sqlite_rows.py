#!/usr/bin/env python3
"""Writes commits into plain SQLite with pages and rows of several sizes.

    benches/sqlite_rows.py [--commits N] [--data DIR]

Shows what larger pages, or one row for all commits of a batch, would change in the journal: calls of `write`, bytes
and processor time for a commit of 900 bytes, in batches of 1 and of 14, each durable. Processor time includes what
Python takes for a statement, so that it says most between pages. docs/decisions/one-row-a-commit.md has the figures.
"""

import argparse
import os
import pathlib
import sqlite3
import tempfile
import time

BYTES, PAGES, BATCHES = 900, (4096, 8192, 16384), (1, 14)
LOG_BYTES = 4 << 20


def written() -> tuple[int, int]:
    """Calls of `write` and their bytes, of this process."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    values = dict(line.split(": ") for line in lines)
    return int(values["syscw"]), int(values["wchar"])


def journal(folder: str, page: int) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{folder}/journal.db", isolation_level=None)
    pragmas = [f"page_size={page}", "auto_vacuum=2", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"]
    for pragma in [*pragmas, "wal_autocheckpoint=0"]:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE journal(id INTEGER PRIMARY KEY, session BLOB, revision INTEGER, frame BLOB)")
    return connection


def measure(folder: str, page: int, batch: int, packed: bool, commits: int):
    connection, session, number = journal(folder, page), os.urandom(16), 0
    rows, frame = (1, os.urandom(BYTES * batch)) if packed else (batch, os.urandom(BYTES))

    def write(count):
        nonlocal number
        for _ in range(count):
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(rows):
                number += 1
                row = (number, session, number, frame)
                connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            if number * len(frame) // LOG_BYTES > (number - rows) * len(frame) // LOG_BYTES:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    # Once through the log, whose bytes are then overwritten.
    write(2 * LOG_BYTES // BYTES // batch)
    calls, size = written()
    begun, count = time.process_time(), commits // batch
    write(count)
    took = (time.process_time() - begun) / count / batch
    more_calls, more_size = written()
    connection.close()
    calls, size = ((more - less) / count / batch for more, less in ((more_calls, calls), (more_size, size)))
    kind = "one row" if packed else "a row each"
    print(f"| {batch}, {kind} | {page:,} | {calls:.2f} | {size:,.0f} | {took * 1e6:.1f} µs |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=14_000, help="commits measured of each kind (14000)")
    parser.add_argument("--data", type=pathlib.Path, help="where data goes: a folder on a real disk")
    given = parser.parse_args()
    print(f"SQLite {sqlite3.sqlite_version}\n")
    print("| commits in a batch | page | writes | bytes | processor time |\n| --- | --: | --: | --: | --: |")
    for batch in BATCHES:
        for packed in (False, True)[: 1 + (batch > 1)]:
            for page in PAGES:
                with tempfile.TemporaryDirectory(dir=given.data) as folder:
                    measure(folder, page, batch, packed, given.commits)


main()
