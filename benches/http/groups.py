"""Groups of instructions: which part of the server a function, a line's file or a thread belongs to.

Code of the standard library, of libc and of small crates of data structures counts for whoever calls it, in
proportion to the instructions of the calls.
"""

import re
from collections import Counter
from functools import cache

from callgrind import Function, Thread

OTHER = "other"
# How many functions without a group may call each other in a row.
DEPTH = 20
# It has no group of its own, so it belongs to its callers.
CALLERS = None
HTTP_TYPES, HYPER, HEADERS = "types of HTTP", "hyper", "headers"

# The first that matches `crate:path within its sources`. The crates of this workspace go by the names of their folders,
# which an older layout had as folders of one crate.
GROUPS = [
    (r"http:$", HTTP_TYPES),
    (r"(hyper|hyper-util|httparse|httpdate|h2|http-body|http-body-util)$", HYPER),
    (
        r"(axum|axum-core|matchit|tower|tower-layer|tower-service|tower-http|sync_wrapper|percent-encoding|mime)$",
        "routing",
    ),
    (r"(tokio|mio|socket2|tokio-stream|tokio-util|rt)$", "runtime"),
    (r"(tikv-jemalloc-sys|tikv-jemallocator)$", "allocator"),
    (r"(libsqlite3-sys|rusqlite|fallible-iterator|fallible-streaming-iterator|hashlink)$", "SQLite"),
    (r"(exact-json|serde_json|serde|serde_core|itoa|ryu|zmij)$", "JSON"),
    (r"(tracing|tracing-core|tracing-subscriber|metrics|prometheus-client)$", "edge"),
    (r"(unicode-segmentation|unicode-normalization|caseless|finl_unicode|icu_\w+)$", "segmentation"),
    (r"(sha2|digest|block-buffer|crypto-common|cpufeatures)$", "SHA-256"),
    (r"(zstd|zstd-safe|zstd-sys)$", "compression"),
    # The door.
    (r"our-http:(edge|connection)/", "edge"),
    (r"our-http:(lib|mod|routes|doors)\.rs", "routing"),
    (r"our-http:access/", "guard"),
    (r"our-(auth|ui|mcp|telemetry|error-chain):", "guard"),
    (r"our-http:request/", "extractors"),
    (r"our-api:(intake|params|offload)", "extractors"),
    (r"our-http:|our-(api|prompt|address|accept|printable):", "answer"),
    # The way to the writer and back.
    (r"our-fairness:(queue|client|cancellation)", "queue"),
    (r"our-fairness:", "guard"),
    (r"our-service:(lib|job|handle|work_turns|deps|error|writer/(entrance|desk|mod|links|patch\w*))(\.rs|/)?", "queue"),
    (r"our-service:(watch|inbox|claims|list|heads)", "publication"),
    (r"our-service:(sessions|writer|deadlines|history|image)", "staging"),
    (r"our-(clock):|our-service:clock", "staging"),
    (r"our-board:(stored|packed|values/json)", "encode"),
    (r"our-board:", "decide and apply"),
    (r"our-store:sqlite/(segments|deletion|pins|rows)", "compaction"),
    (r"our-store:", "store"),
    # What follows the writes.
    (r"our-service:(maintenance|threads)", "compaction"),
    (r"our-search:(fold|words|text)", "segmentation"),
    (r"our-(search|service:search)", "index"),
    (r"our-", "other of ours"),
]

# What callgrind cannot name a file of: by the function's name.
NAMES = [
    (r"_?rjem_|je_|(malloc|calloc|realloc|free)$|\w*allocx$|__rustc::__rust_", "allocator"),
    (r"fts5|sqlite3Fts5", "FTS5"),
    (r"sqlite3|unixWrite|unixRead|pager|wal[A-Z]|btree|vdbe|pcache1?[A-Z]", "SQLite"),
    (r"ZSTD|HUF_|FSE_|HIST_", "compression"),
]

# Threads by what they alone call: the one with most instructions in such calls gives its name.
THREADS = {
    "indexer": r"search::indexer::Indexer>?::",
    "compaction": r"maintenance::compaction::Compaction>?::",
    "writer": r"service::writer::Writer>?::|writer::desk::Desk>?::start",
    "waker": r"watch::waker::",
    "tokio workers": r"tokio::runtime::(scheduler|task|blocking)::",
}

REGISTRY = re.compile(r"/registry/src/[^/]+/(?P<crate>.+?)-\d+\.\d+[^/]*/(?:src/)?(?P<path>.*)$|/git/checkouts/")
OURS = re.compile(r"(?:^|/)crates/(?P<crate>[a-z-]+)/src/(?P<path>.*)$")
ONE_CRATE = re.compile(
    r"(?:^|/)src/(?P<crate>http|api|service|store|search|auth|board|fairness|metrics|mcp|ui|prompt|telemetry)/(?P<path>.*)$"
)
BARE = re.compile(r"(?:^|/)benches/http/bare-axum/src/")
C_SOURCES = [
    (re.compile(r"jemalloc"), "allocator"),
    (re.compile(r"sqlite3\.c$"), "SQLite"),
    (re.compile(r"zstd"), "compression"),
]


@cache
def of_file(file: str) -> str | None:
    """The group of a source file, or `CALLERS`."""
    if BARE.search(file):
        return "answer"
    for pattern, group in C_SOURCES:
        if pattern.search(file):
            return group
    place = REGISTRY.search(file)
    if place and place["crate"]:
        return listed(f"{place['crate']}:")
    place = OURS.search(file) or ONE_CRATE.search(file)
    if place is None:
        return CALLERS
    if place["crate"] in ("exact-json", "metrics"):
        return listed(f"{place['crate']}:")
    return listed(f"our-{place['crate']}:{place['path']}")


def listed(key: str) -> str | None:
    for pattern, group in GROUPS:
        if re.match(pattern, key) or re.match(pattern, key.removesuffix(":")):
            return group
    return CALLERS


@cache
def of_name(name: str) -> str | None:
    for pattern, group in NAMES:
        if re.match(pattern, name):
            return group
    return CALLERS


def role(thread: Thread) -> str:
    """The name of a thread."""
    called = Counter()
    for (_, _, callee), instructions in thread.calls.items():
        for name, pattern in THREADS.items():
            if re.search(pattern, callee.name):
                called[name] = max(called[name], instructions)
    # A thread of the service is one by its own calls, however much it has to do with the runtime.
    for name in THREADS:
        if called[name] * 2 >= max(called.values(), default=0) > 0:
            return name
    return OTHER


def sums(thread: Thread) -> dict[str, Counter]:
    """Instructions of each group, by function and file of the line."""
    shares = shares_of_callers(thread)
    found: dict[str, Counter] = {}
    for (function, file), instructions in thread.own.items():
        for group, share in of_site(function, file, shares).items():
            found.setdefault(group, Counter())[function, file] += instructions * share
    return found


def of_site(function: Function, file: str, shares: dict[Function, dict[str, float]]) -> dict[str, float]:
    """The groups of a line of a function, each with its share; `shares` has those of called functions."""
    home = of_file(function.file) or of_name(function.name)
    group = of_file(file) or home
    if group not in (CALLERS, HTTP_TYPES):
        return {group: 1.0}
    whose = shares.get(function, {}) if home in (CALLERS, HTTP_TYPES) else {home: 1.0}
    if group is CALLERS:
        return whose
    hyper = whose.get(HYPER, 0.0)
    return {HYPER: hyper, HEADERS: sum(whose.values()) - hyper}


def shares_of_callers(thread: Thread) -> dict[Function, dict[str, float]]:
    """For each called function the groups of those who call it, in proportion to the instructions of their calls."""
    callers: dict[Function, list] = {}
    for (caller, file, callee), instructions in thread.calls.items():
        if caller != callee and instructions > 0:
            callers.setdefault(callee, []).append((caller, file, instructions))
    shares: dict[Function, dict[str, float]] = {}
    # Callers may belong to callers of their own, so it goes on until it has gone up all of them. What is lost in
    # circles of calls is made up for by the division.
    for _ in range(DEPTH):
        for callee, sites in callers.items():
            parts = Counter()
            for caller, file, instructions in sites:
                for group, share in of_site(caller, file, shares).items():
                    parts[group] += share * instructions
            whole = sum(parts.values())
            if whole:
                shares[callee] = {group: part / whole for group, part in parts.items()}
    for function in callers.keys() | {function for function, _ in thread.own}:
        shares.setdefault(function, {OTHER: 1.0})
    return shares
