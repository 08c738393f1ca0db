-- The schema of a store, format 1.

-- Commits in the order of appends, without another index: they are written at one end and read from the other. Keyed by session
-- the same writes cost five times as much.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    revision INTEGER NOT NULL,
    frame BLOB NOT NULL
) STRICT;

-- One row. `journal_mark` is the highest id ever deleted from the journal, since SQLite reuses the ids of deleted rows.
-- `opened_with` is the sync level of a running store, NULL after a clean stop. `signing_key` is made at the first start.
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch BLOB NOT NULL,
    journal_mark INTEGER NOT NULL,
    opened_with TEXT CHECK (opened_with IN ('full', 'normal')),
    signing_key BLOB
) STRICT;
INSERT INTO meta VALUES (1, randomblob(16), 0, NULL, NULL);

-- A row for each session with a base or a staged history. `base` is the revision of the base in force, NULL without one; `parts` is
-- its number of rows in `base`, negative for a deleted session, whose parts are in `ending`. Rows of the session up to the journal
-- id `forgotten` are obsolete, and so are all rows of a `staged` session at the next start. `sum` covers the other columns: a
-- changed bit would move the beginning of a history.
CREATE TABLE history (
    session BLOB PRIMARY KEY,
    base INTEGER,
    parts INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    staged INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The parts of bases.
CREATE TABLE base (
    session BLOB NOT NULL,
    revision INTEGER NOT NULL,
    part INTEGER NOT NULL,
    frame BLOB NOT NULL,
    UNIQUE (session, revision, part)
) STRICT;

-- The parts of the bases with which the histories of deleted sessions begin.
CREATE TABLE ending (
    session BLOB NOT NULL,
    revision INTEGER NOT NULL,
    part INTEGER NOT NULL,
    frame BLOB NOT NULL,
    UNIQUE (session, revision, part)
) STRICT;

-- Compacted commits, many to a row: those of `session` from revision `first` to `last`, their number, their unpacked bytes, and a
-- checksum over these columns and `body`. The index has everything that a start needs, so a start reads no body. It is not unique:
-- a changed bit must not block other writes.
CREATE TABLE segment (
    session BLOB NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    commits INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX segment_range ON segment (session, last, first);

-- The sessions' summaries, and the parts of boards: both are caches.
CREATE TABLE session (
    session BLOB NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    frame BLOB NOT NULL
) STRICT;
CREATE TABLE snapshot (
    session BLOB NOT NULL,
    revision INTEGER NOT NULL,
    part INTEGER NOT NULL,
    frame BLOB NOT NULL,
    UNIQUE (session, revision, part)
) STRICT;

-- `body` has a token's rights and the data to verify it; `crc` covers the id and the body.
CREATE TABLE token (
    id BLOB PRIMARY KEY,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The sessions' names, written by the run that creates or adopts each, so that a damaged history does not hide its name. `crc`
-- covers the id and the name.
CREATE TABLE name (
    session BLOB PRIMARY KEY,
    crc INTEGER NOT NULL,
    name BLOB NOT NULL
) STRICT, WITHOUT ROWID;
