// The screenshots' log as the gallery reads it: pages at one end on demand, new entries at the other live.

import { board, get } from "../../core/api.js";
import { batch, signal, useEffect, useMemo } from "../../core/dom.js";
import { joined } from "../../core/shots.js";

/** The entries of one page. */
const PAGE = 300;

/** New entries are read together, after so long. */
const GATHER_MS = 400;

export class GalleryLog {
  constructor(session, newestFirst, agent) {
    this.path = board(session, "screenshots");
    this.newestFirst = newestFirst;
    this.agent = agent || undefined;
    /** The entries read, in the order shown. */
    this.entries = signal([]);
    /** New entries that are not shown yet, since they would move what is looked at. */
    this.waiting = signal([]);
    this.loading = signal(true);
    this.more = signal(true);
    this.error = signal(undefined);
    /** The length of the log, of all agents. */
    this.count = signal(undefined);
    this.newest = 0;
    this.next = undefined;
  }

  open() {
    this.aborter = new AbortController();
    this.load();
    return () => {
      this.aborter.abort();
      clearTimeout(this.timer);
    };
  }

  async read(query) {
    const { body } = await get(this.path, { query: { limit: PAGE, agent: this.agent, ...query }, signal: this.aborter.signal });
    for (const { seq } of body.entries) this.newest = Math.max(this.newest, seq);
    this.count.value = body.count;
    return body;
  }

  /** Loads the next page in the order shown. */
  async load() {
    if (this.busy || !this.more.peek()) return;
    this.busy = true;
    this.loading.value = true;
    try {
      const query = this.newestFirst ? { order: "desc", before: this.next } : { after: this.next };
      const body = await this.read(query);
      batch(() => {
        this.entries.value = joined(this.entries.peek(), body.entries, this.newestFirst);
        this.more.value = body.more;
        this.error.value = undefined;
      });
      if (body.entries.length > 0 || body.more) this.next = body.next;
    } catch (error) {
      this.fail(error);
    } finally {
      this.busy = false;
      this.loading.value = false;
    }
  }

  fail(error) {
    if (this.aborter.signal.aborted) return;
    batch(() => {
      this.error.value = error;
      this.more.value = false;
    });
  }

  retry() {
    this.more.value = true;
    this.load();
  }

  /** Takes live commits: reads what was appended, or all again where entries changed or went away. */
  hear(commits) {
    const changes = commits.flatMap((commit) => commit.changes);
    const anew = commits.length === 0 || changes.some((change) => change.kind === "restored" || (change.log === "screenshots" && change.kind !== "appended") || (change.kind === "cleared" && !change.log));
    if (!anew && !changes.some((change) => change.log === "screenshots")) return;
    this.anew ||= anew;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const all = this.anew;
      this.anew = false;
      (all ? this.reload() : this.readNew()).catch((error) => this.fail(error));
    }, GATHER_MS);
  }

  async readNew() {
    // In ascending order the end is loaded on demand; a page that is not there yet brings the new ones itself.
    if (!this.newestFirst && this.more.peek()) return;
    for (let more = true; more; ) {
      const body = await this.read({ after: this.newest });
      this.waiting.value = joined(this.waiting.peek(), body.entries, this.newestFirst);
      if (!this.newestFirst) this.show();
      more = body.more && body.entries.length > 0;
    }
  }

  /** Shows the entries that wait. */
  show() {
    batch(() => {
      this.entries.value = joined(this.entries.peek(), this.waiting.peek(), this.newestFirst);
      this.waiting.value = [];
    });
  }

  async reload() {
    this.newest = 0;
    const body = await this.read(this.newestFirst ? { order: "desc" } : {});
    batch(() => {
      this.entries.value = body.entries;
      this.waiting.value = [];
      this.more.value = body.more;
    });
    this.next = body.next;
  }
}

/** The gallery's log in an order, of one agent or of all. */
export function useGalleryLog(session, newestFirst, agent, feed) {
  const log = useMemo(() => new GalleryLog(session, newestFirst, agent), [session, newestFirst, agent]);
  useEffect(() => log.open(), [log]);
  useEffect(() => feed.listen((commits) => log.hear(commits)), [log, feed]);
  return log;
}
