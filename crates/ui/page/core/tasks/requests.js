// The requests of a session as tasks, all of them in short form, kept up to date by the session's commits.
//
// Pages are read newest first, so that the list is useful at once. A commit names the requests that it changed; those
// are read again together. Whole items stay on the server until one is opened.

import { board, get, Problem } from "../api.js";
import { batch, signal, useEffect, useMemo } from "../dom.js";
import { brief, short } from "../format.js";
import { changed, failedAttempt, ranges, stateOf } from "./tasks.js";
import { itemText } from "../timeline.js";

/** The most requests that stay in memory: the newest. */
export const REQUESTS_MAX = 20_000;

/** Entries of one page. */
const PAGE = 1000;

/** Changed requests are read again together, after so long. */
const GATHER_MS = 300;

/** More ranges of changed requests than this are read as everything. */
const RANGES_MAX = 20;

const TEXT_CHARS = 240;

class Requests {
  constructor(session, feed) {
    this.session = session;
    this.feed = feed;
    this.tasks = new Map();
    /** Changes with `tasks`. */
    this.version = signal(0);
    this.loading = signal(true);
    /** True while older pages are being read. */
    this.more = signal(false);
    /** The requests of the session, also those beyond `REQUESTS_MAX`. */
    this.count = signal(0);
    this.error = signal(undefined);
    this.changed = new Set();
  }

  open() {
    this.aborter = new AbortController();
    this.reload();
    const ends = [this.feed.listen((commits) => this.take(commits)), this.feed.loading.subscribe(() => this.catchUp())];
    return () => {
      this.aborter.abort();
      clearTimeout(this.timer);
      this.timer = undefined;
      for (const end of ends) end();
    };
  }

  /** Takes the commits between the first page and the beginning of the feed. */
  catchUp() {
    if (this.feed.loading.peek() || this.revision === undefined) return;
    const missed = this.feed.commits.filter(({ revision }) => revision > this.revision);
    if (missed.length > 0) this.take(missed);
  }

  reload() {
    this.reading?.abort();
    this.reading = new AbortController();
    const aborted = AbortSignal.any([this.reading.signal, this.aborter.signal]);
    this.load(aborted).catch((error) => aborted.aborted || this.fail(error));
  }

  fail(error) {
    batch(() => {
      this.error.value = error;
      this.loading.value = false;
      this.more.value = false;
    });
    if (!(error instanceof Problem)) throw error;
  }

  async load(aborted) {
    const found = new Map();
    let before;
    let newest;
    for (;;) {
      const { body } = await get(board(this.session, "requests"), { query: { order: "desc", limit: PAGE, before }, signal: aborted });
      for (const entry of body.entries) found.set(entry.seq, task(entry));
      if (before === undefined) {
        newest = body.entries[0]?.seq ?? Infinity;
        this.revision = body.revision;
      }
      before = body.next;
      const more = body.more && found.size < REQUESTS_MAX;
      batch(() => {
        // What changed or came meanwhile was read by itself and is newer.
        for (const [seq, kept] of this.tasks) if (seq > newest || kept.revision > found.get(seq)?.revision) found.set(seq, kept);
        if (!more || found.size >= this.tasks.size) this.tasks = new Map(found);
        this.count.value = body.count;
        this.loading.value = false;
        this.more.value = more;
        this.error.value = undefined;
        this.tell();
      });
      if (!more) return this.catchUp();
    }
  }

  tell() {
    this.version.value = this.version.peek() + 1;
  }

  take(commits) {
    const { seqs, all } = changed(commits);
    if (all) return this.reload();
    if (seqs.size === 0) return;
    for (const seq of seqs) this.changed.add(seq);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh().catch((error) => this.aborter.signal.aborted || this.fail(error));
    }, GATHER_MS);
  }

  async refresh() {
    const wanted = ranges(this.changed);
    this.changed.clear();
    if (wanted.length > RANGES_MAX) return this.reload();
    const pages = await Promise.all(wanted.map(([first, last]) => this.page(first, last)));
    const fresh = pages.flatMap(({ entries }) => entries);
    for (const entry of fresh) this.tasks.set(entry.seq, task(entry));
    this.unblock(fresh.filter((entry) => entry.done).map(({ seq }) => seq));
    if (this.tasks.size > REQUESTS_MAX) {
      const oldest = [...this.tasks.keys()].sort((a, b) => a - b).slice(0, this.tasks.size - REQUESTS_MAX);
      for (const seq of oldest) this.tasks.delete(seq);
    }
    batch(() => {
      this.count.value = pages[pages.length - 1].count;
      this.tell();
    });
  }

  async page(first, last) {
    const query = { after: first - 1, before: last + 1, limit: PAGE };
    return (await get(board(this.session, "requests"), { query, signal: this.aborter.signal })).body;
  }

  /** Takes finished requests from what others wait for: those entries did not change by themselves. */
  unblock(done) {
    if (done.length === 0) return;
    const finished = new Set(done);
    for (const [seq, one] of this.tasks) {
      if (!one.blocked_by?.some((before) => finished.has(before))) continue;
      const blocked_by = one.blocked_by.filter((before) => !finished.has(before));
      this.tasks.set(seq, { ...one, blocked_by, state: stateOf({ ...one, blocked_by }) });
    }
  }
}

/** The members of an entry that may hold a long result or reason. */
const ENDS = ["done", "in_review", "failed", "cancelled", "cancel"];

/** The short form of an entry: no item and no result, and of its past attempts the last that failed. */
function task({ item, ...entry }) {
  const last = failedAttempt(entry);
  const one = { ...entry, text: short(itemText("requests", item).replace(/\s+/g, " "), TEXT_CHARS), past_attempts: last && [shortened(last)] };
  for (const name of ENDS) one[name] &&= shortened(one[name]);
  return { ...one, state: stateOf(one) };
}

/** The end of a request or an attempt without its result, and with its reason in short. */
function shortened({ result, reason, verdict, ...end }) {
  return { ...end, reason: reason === undefined ? undefined : brief(reason, TEXT_CHARS) };
}

/** The requests of a session, by seq, as a live store. */
export function useRequests(session, feed) {
  const requests = useMemo(() => new Requests(session, feed), [session, feed]);
  useEffect(() => requests.open(), [requests]);
  return requests;
}
