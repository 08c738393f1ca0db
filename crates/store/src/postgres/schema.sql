-- The schema of a store, format 1. Every table leads with the session, so that rows can be spread by it.

CREATE TABLE meta (
    id int PRIMARY KEY CHECK (id = 1),
    format int NOT NULL,
    epoch bytea NOT NULL,
    signing_key bytea NOT NULL,
    -- Counts the changes of tokens.
    tokens bigint NOT NULL DEFAULT 0
);

-- A history, and the session as of its head: what lists, the inbox and the leader need.
CREATE TABLE session (
    id uuid PRIMARY KEY,
    -- NULL while the history is staged.
    name bytea,
    head bigint NOT NULL,
    -- The begin of the frame at the head, which distinguishes it from another commit of that revision; NULL while the history
    -- is staged, or if a base alone has the head.
    seal bytea,
    -- The base in force, and the one that was put last.
    base bigint,
    base_content uuid,
    put_base bigint,
    put_content uuid,
    -- The bytes of the frames after the base.
    bytes bigint NOT NULL DEFAULT 0,
    -- NULL once it has a name; milliseconds since 1970, as all times.
    staged_at bigint,
    -- When it was deleted.
    ended_at bigint,
    is_live boolean NOT NULL DEFAULT false,
    next_due bigint,
    labels text[] NOT NULL DEFAULT '{}',
    asks boolean NOT NULL DEFAULT false,
    requests boolean NOT NULL DEFAULT false,
    over_budget boolean NOT NULL DEFAULT false,
    -- True if a setting limits its history.
    is_limited boolean NOT NULL DEFAULT false,
    -- The images that the history names, and whether there are blobs.
    image_bytes bigint NOT NULL DEFAULT 0,
    has_blobs boolean NOT NULL DEFAULT false,
    summary bytea
) WITH (fillfactor = 50);

-- No column of these changes with every commit, so that most appends change no index.
CREATE INDEX session_live ON session (name) WHERE is_live;
CREATE INDEX session_asks ON session (name) WHERE asks;
CREATE INDEX session_requests ON session (name) WHERE requests;
CREATE INDEX session_over_budget ON session (name) WHERE over_budget;
CREATE INDEX session_limited ON session (name) WHERE is_limited;
CREATE INDEX session_labels ON session USING gin (labels) WHERE is_live;
CREATE INDEX session_due ON session (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX session_staged ON session (staged_at) WHERE staged_at IS NOT NULL;

-- The session that a name belongs to; a deleted one has it until it is forgotten.
CREATE TABLE session_name (
    name bytea PRIMARY KEY,
    session uuid NOT NULL
);

CREATE TABLE history_commit (
    session uuid NOT NULL,
    revision bigint NOT NULL,
    frame bytea NOT NULL,
    PRIMARY KEY (session, revision)
);

CREATE TABLE history_base (
    session uuid NOT NULL,
    content uuid NOT NULL,
    part bigint NOT NULL,
    frame bytea NOT NULL,
    PRIMARY KEY (session, content, part)
);

CREATE TABLE blob (
    session uuid NOT NULL,
    digest bytea NOT NULL,
    content uuid NOT NULL,
    bytes bigint NOT NULL,
    -- When it was put last: a younger one may be named by a commit that is on its way.
    touched_at bigint NOT NULL,
    PRIMARY KEY (session, digest)
);

CREATE TABLE blob_chunk (
    session uuid NOT NULL,
    content uuid NOT NULL,
    chunk bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (session, content, chunk)
);
-- Images are compressed already.
ALTER TABLE blob_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The words of entries, each behind a mark of its session and log: a search reads the marks in its reach alone.
CREATE TABLE text_entry (
    session uuid NOT NULL,
    log text NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    agent text,
    words tsvector NOT NULL,
    PRIMARY KEY (session, log, seq)
);
-- Without a list of pending entries, which every search would read, whosever they are.
CREATE INDEX text_words ON text_entry USING gin (words) WITH (fastupdate = off);

-- The logs that have, or had, such entries.
CREATE TABLE text_log (
    session uuid NOT NULL,
    log text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, log)
);

-- The revision to which the leader has followed each session, and from the bit of 2^48 on the version of the words.
CREATE TABLE text_position (
    session uuid PRIMARY KEY,
    revision bigint NOT NULL
);

-- Logins of browsers that ended before their time. A row without a login ends all of the token that began until then.
CREATE TABLE logout (
    token uuid NOT NULL,
    -- The hash of its id.
    login bytea NOT NULL,
    made_at bigint NOT NULL,
    -- Grows in the order of the commits, so that each server reads what is new.
    change bigserial NOT NULL,
    PRIMARY KEY (token, login)
);
CREATE UNIQUE INDEX logout_change ON logout (change);

CREATE TABLE token (
    id uuid PRIMARY KEY,
    crc bigint NOT NULL,
    body bytea NOT NULL
);
