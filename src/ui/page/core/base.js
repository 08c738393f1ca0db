// A board's entries at a revision as commits: what its logs still have of changes of which no commit is kept, as after a fork,
// a purge or a compaction.
//
// The logs are read newest first and merged by the time of the append, a page at a time. An entry that was changed has only the
// revision of its last change; it takes its place among the others by its time.

import { board, get, logPath, rights } from "./api.js";
import { LOGS } from "./past.js";

/** The entries of one page of a log. */
const PAGE = 256;

/** The most agents whose memories are read. */
export const MEMORIES_MAX = 50;

export class Base {
  constructor(session, at) {
    this.session = session;
    this.at = at;
    /** The lowest revision that a commit got. */
    this.floor = at;
    this.done = at === 0;
    this.turn = Promise.resolve();
  }

  /** The commits of up to `most` entries before those that were read, ascending. Calls take turns. */
  older(most, aborted) {
    this.turn = this.turn.catch(() => {}).then(() => this.take(most, aborted));
    return this.turn;
  }

  async take(most, aborted) {
    this.sources ??= (await this.logs(aborted)).map((log) => ({ log, entries: [], more: true }));
    const found = [];
    while (found.length < most) {
      await Promise.all(this.sources.map((source) => this.fill(source, aborted)));
      const open = this.sources.filter(({ entries }) => entries.length > 0);
      if (open.length === 0) {
        this.done = true;
        break;
      }
      const { log, entries } = open.reduce((last, other) => (isBefore(other.entries[0], last.entries[0]) ? last : other));
      found.push(this.commits(log, entries.shift()));
    }
    return found.reverse().flat();
  }

  async logs(aborted) {
    const { body } = await get(board(this.session, "agents"), { query: { at: this.at, limit: MEMORIES_MAX }, signal: aborted });
    const { agent, mayReadMemories } = rights.peek();
    const own = body.agents.filter((one) => agent === undefined || mayReadMemories || one.agent === agent);
    return [...LOGS, ...own.map((one) => `agents/${one.agent}/memory`)];
  }

  async fill(source, aborted) {
    if (source.entries.length > 0 || !source.more) return;
    const query = { at: this.at, order: "desc", limit: PAGE, before: source.next };
    const { body } = await get(logPath(this.session, source.log), { query, signal: aborted });
    source.entries = body.entries;
    source.more = body.more;
    source.next = body.next;
  }

  commits(log, entry) {
    if (entry.updated_at === undefined) this.floor = Math.min(this.floor, entry.revision);
    const { seq, at, agent, after, attempts } = entry;
    const changes = [{ kind: "appended", log, entries: [entry] }];
    if (after || attempts) changes.push({ kind: "planned", first: seq, last: seq, after, attempts });
    const append = { revision: this.floor, at, agent, changes, isOfLog: true };
    const change = lastChange(log, entry);
    return change ? [append, { revision: entry.revision, isOfLog: true, ...change }] : [append];
  }
}

/** True if an entry was appended before another, or neither is known to be the earlier. */
function isBefore(one, other) {
  if (one.at !== other.at) return one.at < other.at;
  return one.updated_at === undefined && other.updated_at === undefined && one.revision < other.revision;
}

/** What an entry shows of its last change: the claim or the end of a request, or the answer of a question. */
function lastChange(log, { seq, item, claim, done, failed, updated_at: at, updated_by: agent }) {
  const made = (kind, by, more) => ({ at: by.at ?? at, agent: by.agent, changes: [{ kind, request: seq, ...by, ...more }] });
  if (done) return made("finished", done);
  if (failed) return made("failed", failed);
  if (claim) return made("claimed", claim);
  if (log === "questions" && at !== undefined) return { at, agent, changes: [{ kind: "updated", log, seq, item }] };
  return undefined;
}
