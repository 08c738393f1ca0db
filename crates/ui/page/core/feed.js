// The commits of a session as a window over its revisions: the last ones at first, older ones on demand, new ones live. Below the
// oldest commit that is kept stand those that are made from the logs.
//
// Commits come exactly once and in order. A stream that breaks is opened again from the last revision read, so nothing
// is missed or doubled. One stream a tab: browsers open at most six connections to a host over HTTP/1.1.

import { batch, signal, useEffect, useMemo, useRef } from "./dom.js";
import { board, get, logPath, needsLogin, Problem, rights } from "./api.js";
import { LOGS } from "./past.js";
import { events } from "./stream.js";

/** The commits of one page of the events' JSON form, and of the first window. */
export const CHUNK = 256;

/** The most commits that stay in memory; beyond, the far end is dropped. */
export const COMMITS_MAX = 20_000;

/** So many live commits beyond these are dropped at once, since the views begin anew then. */
const COMMITS_SPARE = 1000;

/** How long live commits are gathered before views are told, so that a burst costs one rendering. */
const GATHER_MS = 100;

/** How long a hidden tab keeps its stream. It goes on from the last revision when it is shown. */
const HIDDEN_MS = 60_000;

/** The entries of one page of a log. */
const LOG_PAGE = 256;

/** The most agents whose memories and messages are read. */
const MEMORIES_MAX = 50;

const feeds = new Map();

export class Feed {
  constructor(session) {
    this.session = session;
    /** The loaded commits, ascending by revision, without a gap. */
    this.commits = [];
    /** What the logs have of the time before the first commit, once the window reaches the oldest one that is kept. */
    this.below = [];
    /** Changes whenever `commits` does: `{n, added: "end" | "start" | "all"}`. */
    this.version = signal({ n: 0, added: "all" });
    /** "connecting", "live", "retrying", "paused" or "ended". */
    this.state = signal("connecting");
    /** When the next attempt begins, while "retrying". */
    this.retryAt = signal(0);
    /** The newest revision known. */
    this.head = signal(0);
    /** The oldest revision that the server keeps a commit after. */
    this.oldest = signal(0);
    /** True if the window reaches the newest commit. */
    this.attached = signal(true);
    /** The problem that ended the feed. */
    this.problem = signal(undefined);
    /** True until the first window is there. */
    this.loading = signal(true);
    this.listeners = new Set();
    this.gathered = [];
    this.users = 0;
    this.cursor = 0;
  }

  /** Calls `fn(commits)` for live commits, gathered. Returns the function that ends it. */
  listen(fn) {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  /** The first revision in the window; one more than the head if it is empty. */
  get first() {
    return this.commits.length > 0 ? this.commits[0].revision : this.cursor + 1;
  }

  get last() {
    return this.commits.length > 0 ? this.commits[this.commits.length - 1].revision : this.cursor;
  }

  /** True if the window reaches the oldest commit that is kept. */
  get atOldest() {
    return this.first <= this.oldest.peek() + 1;
  }

  /** True if nothing is older than what is loaded. */
  get atStart() {
    return this.atOldest && (this.oldest.peek() === 0 || this.base?.done === true);
  }

  /** The number of loaded commits. */
  get size() {
    return this.below.length + this.commits.length;
  }

  open() {
    if (this.aborter) return;
    this.aborter = new AbortController();
    this.whenHidden = () => this.visibilityChanged();
    document.addEventListener("visibilitychange", this.whenHidden);
    this.run(this.aborter.signal).catch((error) => this.fail(error));
  }

  close() {
    this.aborter?.abort();
    this.aborter = undefined;
    clearTimeout(this.gatherTimer);
    clearTimeout(this.hiddenTimer);
    document.removeEventListener("visibilitychange", this.whenHidden);
  }

  async run(aborted) {
    await this.loadEnd(aborted);
    await this.follow(aborted);
  }

  follow(aborted) {
    return events(board(this.session, "events"), {
      cursor: () => this.cursor,
      signal: aborted,
      onState: (state, retryAt) => batch(() => {
        this.state.value = state;
        this.retryAt.value = retryAt ?? 0;
      }),
      onCursor: (id) => this.advance(id),
      onEvent: (name, data) => (name === "resync" ? this.resync(aborted) : this.gather(data)),
    });
  }

  /** Ends the feed with a problem. What a closed feed no longer waits for is none. */
  fail(error) {
    if (error.name === "AbortError") return false;
    batch(() => {
      this.loading.value = false;
      this.problem.value = error;
      this.state.value = "ended";
    });
    if (!(error instanceof Problem)) throw error;
    return false;
  }

  /** Opens the feed again after it ended. */
  retry() {
    this.close();
    batch(() => {
      this.problem.value = undefined;
      this.state.value = "connecting";
      this.loading.value = true;
    });
    this.open();
  }

  async describe(aborted) {
    const { body } = await get(board(this.session), { signal: aborted });
    this.oldest.value = body.oldest_revision;
    return body;
  }

  /** Loads the newest chunk. The stream goes on from there. */
  async loadEnd(aborted) {
    const session = await this.describe(aborted);
    const after = Math.max(session.oldest_revision, session.revision - CHUNK);
    const commits = await this.range(after, session.revision, aborted);
    batch(() => {
      this.cursor = Math.max(session.revision, this.cursor);
      this.head.value = this.cursor;
      this.attached.value = true;
      this.loading.value = false;
      this.replace(commits);
    });
  }

  /** The commits after one revision and up to another. */
  async range(after, to, aborted) {
    const found = [];
    let next = after;
    while (next < to) {
      const { body } = await get(board(this.session, "events"), { query: { after: next }, signal: aborted });
      if (body.resync) {
        const oldest = (await this.describe(aborted)).oldest_revision;
        if (oldest <= next) break;
        next = oldest;
        found.length = 0;
        continue;
      }
      for (const commit of body.events) if (commit.revision <= to) found.push(commit);
      if (body.next <= next || !body.more) break;
      next = body.next;
    }
    return found;
  }

  /** Loads a chunk of older commits. Returns false at the start, or if that failed. */
  async older() {
    if (this.atStart || this.busy) return false;
    this.busy = true;
    try {
      if (this.atOldest) return await this.lower();
      const first = this.first;
      const commits = await this.range(Math.max(this.oldest.peek(), first - 1 - CHUNK), first - 1, this.aborter?.signal);
      if (this.first !== first) return false;
      if (commits.length === 0) return false;
      this.commits = [...commits, ...this.commits];
      if (this.commits.length > COMMITS_MAX) {
        this.commits.length = COMMITS_MAX;
        this.attached.value = false;
      }
      this.tell("start");
      return true;
    } catch (error) {
      return this.fail(error);
    } finally {
      this.busy = false;
    }
  }

  /** Loads a chunk of what the logs have of the time before the first commit. */
  async lower() {
    const base = (this.base ??= new Base(this.session, this.first - 1));
    const commits = await base.older(CHUNK, this.aborter?.signal).catch((error) => {
      if (error.code !== "history-compacted") throw error;
      // The base moved on; a page that is loaded again begins at the new one.
      base.done = true;
      return [];
    });
    if (this.base !== base) return false;
    this.below = [...commits, ...this.below];
    this.tell("start");
    return commits.length > 0;
  }

  /** Loads a chunk of newer commits while the window does not reach the head. */
  async newer() {
    if (this.attached.peek() || this.busy) return false;
    this.busy = true;
    try {
      const last = this.last;
      const head = this.head.peek();
      const commits = await this.range(last, Math.min(last + CHUNK, head), this.aborter?.signal);
      if (this.last !== last) return false;
      this.commits = [...this.commits, ...commits];
      if (this.commits.length > COMMITS_MAX) this.keepNewest();
      batch(() => {
        this.attached.value = this.last >= this.head.peek();
        this.tell("end");
      });
      return true;
    } catch (error) {
      return this.fail(error);
    } finally {
      this.busy = false;
    }
  }

  /** Moves the window so that it begins near a revision: a number, "start" or "end". Returns false if that failed. */
  jump(to) {
    return this.move(to).then(() => true, (error) => this.fail(error));
  }

  async move(to) {
    if (to === "end") return this.loadEnd(this.aborter?.signal);
    const oldest = (await this.describe(this.aborter?.signal)).oldest_revision;
    const after = to === "start" ? oldest : Math.max(oldest, to - CHUNK / 2);
    const end = Math.min(after + CHUNK, this.head.peek());
    const commits = await this.range(after, end, this.aborter?.signal);
    batch(() => {
      this.attached.value = end >= this.head.peek();
      this.replace(commits);
    });
    const isAbove = () => to === "start" || to < (this.base?.floor ?? oldest + 1);
    while (isAbove() && this.atOldest && !this.atStart && this.size < COMMITS_MAX && (await this.lower()));
  }

  replace(commits) {
    this.commits = commits;
    this.forgetBelow();
    this.tell("all");
  }

  keepNewest() {
    this.commits = this.commits.slice(-COMMITS_MAX);
    this.forgetBelow();
  }

  /** Without the commits between there is no place for what is older. */
  forgetBelow() {
    this.below = [];
    this.base = undefined;
  }

  tell(added) {
    this.version.value = { n: this.version.peek().n + 1, added };
  }

  gather(commit) {
    if (commit.revision <= this.cursor) return;
    this.cursor = commit.revision;
    this.gathered.push(commit);
    this.gatherTimer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  flush() {
    this.gatherTimer = undefined;
    const commits = this.gathered;
    this.gathered = [];
    if (commits.length === 0) return;
    batch(() => {
      this.head.value = this.cursor;
      if (this.attached.peek()) {
        // `jump` may have read some of them already.
        const last = this.last;
        const fresh = this.commits.length > 0 ? commits.filter((commit) => commit.revision > last) : commits;
        this.commits = this.commits.concat(fresh);
        if (this.commits.length > COMMITS_MAX + COMMITS_SPARE) this.keepNewest();
        this.tell("end");
      }
      for (const fn of this.listeners) fn(commits);
    });
  }

  advance(id) {
    this.cursor = Math.max(this.cursor, id);
    if (this.gathered.length === 0) this.head.value = Math.max(this.head.peek(), this.cursor);
  }

  /** Starts over: the session was deleted and made again, or its history was compacted past the cursor. */
  async resync(aborted) {
    this.cursor = 0;
    await this.loadEnd(aborted);
    for (const fn of this.listeners) fn([]);
  }

  /** Ends the stream of a tab that stays hidden, and goes on when it is shown. */
  visibilityChanged() {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = setTimeout(() => {
        this.aborter?.abort();
        this.state.value = "paused";
      }, HIDDEN_MS);
    } else if (this.state.peek() === "paused") {
      this.aborter = new AbortController();
      this.follow(this.aborter.signal).catch((error) => this.fail(error));
    }
  }
}

/** The feed of a session, shared by the views that use it, and closed a moment after the last. */
export function useFeed(session) {
  const feed = useMemo(() => feedOf(session), [session]);
  useEffect(() => {
    feed.users += 1;
    clearTimeout(feed.closing);
    feed.open();
    return () => {
      feed.users -= 1;
      feed.closing = setTimeout(() => {
        if (feed.users > 0) return;
        feed.close();
        feeds.delete(session);
      }, 1000);
    };
  }, [feed]);
  return feed;
}

/**
 * What `take(value, commits)` makes of the loaded commits: extended at the end, made anew from `make()` where others came. Views are
 * told by the feed's version, since the value stays the same.
 */
export function useFold(feed, make, take) {
  const version = feed.version.value;
  const held = useRef({});
  return useMemo(() => {
    const { below, commits, first, last } = feed;
    const before = held.current;
    const isNext = before.feed === feed && version.added === "end" && before.first === first && before.last !== undefined;
    let at = isNext ? commits.length : 0;
    while (isNext && at > 0 && commits[at - 1].revision > before.last) at -= 1;
    const value = isNext ? before.value : make();
    take(value, isNext ? commits.slice(at) : [...below, ...commits]);
    held.current = { feed, first, last, value };
    return value;
  }, [feed, version]);
}

function feedOf(session) {
  let feed = feeds.get(session);
  if (!feed) {
    feed = new Feed(session);
    feeds.set(session, feed);
  }
  return feed;
}

/** Opens ended feeds again, as after a login. */
export function reopenFeeds() {
  for (const feed of feeds.values()) if (feed.state.peek() === "ended") feed.retry();
}

needsLogin.subscribe((needed) => {
  if (!needed) reopenFeeds();
});

/**
 * A board's entries at a revision as commits: what its logs still have of changes of which no commit is kept, as after a fork, a purge
 * or a compaction.
 *
 * The logs are read newest first and merged by the time of the append, a page at a time. An entry that was changed has only the
 * revision of its last change; it takes its place among the others by its time.
 */
class Base {
  constructor(session, at) {
    this.session = session;
    this.at = at;
    /** The lowest revision that a commit got. */
    this.floor = at;
    this.done = at === 0;
    /** The commits of entries that were read and not returned yet, the newest first. A read that fails leaves them here. */
    this.found = [];
    this.turn = Promise.resolve();
  }

  /** The commits of up to `most` entries before those that were read, ascending. Calls take turns. */
  older(most, aborted) {
    this.turn = this.turn.catch(() => {}).then(() => this.take(most, aborted));
    return this.turn;
  }

  async take(most, aborted) {
    this.sources ??= (await this.logs(aborted)).map((log) => ({ log, entries: [], more: true }));
    while (this.found.length < most) {
      await Promise.all(this.sources.map((source) => this.fill(source, aborted)));
      const open = this.sources.filter(({ entries }) => entries.length > 0);
      if (open.length === 0) {
        this.done = true;
        break;
      }
      const { log, entries } = open.reduce((last, other) => (isBefore(other.entries[0], last.entries[0]) ? last : other));
      this.found.push(this.commits(log, entries.shift()));
    }
    return this.found.splice(0).reverse().flat();
  }

  async logs(aborted) {
    const { body } = await get(board(this.session, "agents"), { query: { at: this.at, limit: MEMORIES_MAX }, signal: aborted });
    const { agent, mayReadMemories } = rights.peek();
    const own = body.agents.filter((one) => agent === undefined || mayReadMemories || one.agent === agent);
    return [...LOGS, ...own.flatMap((one) => ["memory", "messages"].map((name) => `agents/${one.agent}/${name}`))];
  }

  async fill(source, aborted) {
    if (source.entries.length > 0 || !source.more) return;
    const query = { at: this.at, order: "desc", limit: LOG_PAGE, before: source.next };
    const { body } = await get(logPath(this.session, source.log), { query, signal: aborted });
    source.entries = body.entries;
    source.more = body.more;
    source.next = body.next;
  }

  commits(log, entry) {
    if (entry.updated_at === undefined) this.floor = Math.min(this.floor, entry.revision);
    const { seq, at, agent, after, attempts, priority, not_before, deadline, review, expires_at } = entry;
    const changes = [{ kind: "appended", log, entries: [entry] }];
    const plan = { after, attempts, priority, not_before, deadline, review };
    if (Object.values(plan).some(Boolean)) changes.push({ kind: "planned", first: seq, last: seq, ...plan });
    if (log === "questions" && expires_at) changes.push({ kind: "awaited", first: seq, last: seq, expires_at });
    // Several entries may have one revision, so a commit is known by its entry.
    const id = `${log}/${seq}`;
    const append = { id, revision: this.floor, at, agent, changes, isOfLog: true };
    const change = lastChange(log, entry);
    return change ? [append, { id: `${id}/change`, revision: entry.revision, isOfLog: true, ...change }] : [append];
  }
}

/** True if an entry was appended before another, or neither is known to be the earlier. */
function isBefore(one, other) {
  if (one.at !== other.at) return one.at < other.at;
  return one.updated_at === undefined && other.updated_at === undefined && one.revision < other.revision;
}

/** What an entry shows of its last change: the claim or the end of a request, a message acknowledged, or the answer of a question. */
function lastChange(log, { seq, item, claim, done, in_review: review, failed, cancelled, acked_at: acked, updated_at: at, updated_by: agent }) {
  const made = (kind, by, more) => ({ at: by.at ?? at, agent: by.agent, changes: [{ kind, request: seq, ...by, ...more }] });
  if (done) return made("finished", done);
  if (review) return made("finished", review);
  if (failed) return made("failed", failed);
  if (cancelled) return made("cancelled", cancelled);
  if (claim) return made("claimed", claim);
  if (acked) return { at: acked, agent, changes: [{ kind: "acked", log, seq }] };
  if (log === "questions" && at !== undefined) return { at, agent, changes: [{ kind: "updated", log, seq, item }] };
  return undefined;
}
