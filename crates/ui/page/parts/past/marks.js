// The marks of a session's slider: checkpoints, failures and restores, read in a bounded number of pages.

import { board, get } from "../../core/api.js";
import { batch, signal, useEffect, useMemo } from "../../core/dom.js";
import { marksOf } from "../../core/past.js";

/** The most pages of the audit or the events that are read for one kind of mark; a page of the audit examines 4,096 commits. */
const PAGES_MAX = 64;

/** The search begins so late, since a browser has few connections and the board comes first. */
const DELAY_MS = 600;

/** The most marks that are kept. */
const MARKS_MAX = 5000;

/** Longer logs of steps are not searched for failed ones. */
const STEPS_SEARCHED_MAX = 20_000;

class Marks {
  constructor(session) {
    this.session = session;
    /** Failures and restores, ascending by revision. */
    this.list = signal([]);
    /** True if not all of the history was searched. */
    this.cut = signal(false);
    this.loading = signal(true);
  }

  open() {
    this.aborter = new AbortController();
    const begin = () => this.load(this.aborter.signal).catch(() => {
      if (this.aborter.signal.aborted) return;
      // The slider works without marks.
      batch(() => {
        this.cut.value = true;
        this.loading.value = false;
      });
    });
    const timer = setTimeout(begin, DELAY_MS);
    return () => {
      clearTimeout(timer);
      this.aborter.abort();
    };
  }

  add(marks) {
    if (marks.length === 0) return;
    const known = new Set(this.list.peek().map((mark) => `${mark.revision} ${mark.text}`));
    const all = [...this.list.peek(), ...marks.filter((mark) => !known.has(`${mark.revision} ${mark.text}`))];
    all.sort((a, b) => a.revision - b.revision);
    if (all.length > MARKS_MAX) this.cut.value = true;
    this.list.value = all.slice(-MARKS_MAX);
  }

  async load(aborted) {
    const { body } = await get(board(this.session), { signal: aborted });
    // By the time that they take: the audit examines all commits of a long history for each kind.
    await this.steps(body.counts.trajectories, aborted);
    await this.pages((after = body.oldest_revision) => ["events", { on: "agents", after }], aborted);
    for (const kind of ["failed", "restored", "claim_expired", "deadline_passed"]) {
      await this.pages((before) => ["audit", { kind, order: "desc", limit: 1000, before }], aborted);
    }
    this.loading.value = false;
  }

  async pages(pathOf, aborted) {
    let next;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const [path, query] = pathOf(next);
      const { body } = await get(board(this.session, path), { query, signal: aborted });
      this.add((body.commits ?? body.events ?? []).flatMap(marksOf));
      if (!body.more || body.next === next) return;
      next = body.next;
    }
    this.cut.value = true;
  }

  /** Steps that failed; their commits have no kind of their own. */
  async steps(count, aborted) {
    if (count > STEPS_SEARCHED_MAX) {
      this.cut.value = true;
      return;
    }
    for (const status of ["FAIL", "ERROR"]) {
      const { body } = await get(board(this.session, "trajectories"), { query: { status, keys: "[]", limit: 1000 }, signal: aborted });
      this.add(body.entries.map(({ seq, revision, at, agent }) => ({ revision, at, agent, kind: "failure", text: `step ${seq}: ${status}` })));
    }
  }
}

/** The marks of a session, kept up to date by its feed. */
export function useMarks(session, feed) {
  const marks = useMemo(() => new Marks(session), [session]);
  useEffect(() => marks.open(), [marks]);
  useEffect(() => feed.listen((commits) => marks.add(commits.flatMap(marksOf))), [marks, feed]);
  return marks;
}
