// The list of all sessions, kept up to date by the server's notices.

import { board, get, Problem } from "./api.js";
import { batch, signal, useEffect, useMemo } from "./dom.js";
import { events } from "./stream.js";

/** The most sessions that the page lists; beyond, one narrows them by the beginning of a name or by a label. */
export const SESSIONS_MAX = 5000;

/** Changed sessions are read again together, after so long. */
const GATHER_MS = 700;

/** More changed sessions than this are read as the whole list. */
const SINGLE_READS_MAX = 20;

class Sessions {
  constructor(query) {
    this.query = query;
    this.byName = signal(new Map());
    this.loading = signal(true);
    this.cut = signal(false);
    this.error = signal(undefined);
    this.state = signal("connecting");
    this.changed = new Set();
  }

  open() {
    this.aborter = new AbortController();
    const aborted = this.aborter.signal;
    this.load(aborted).catch((error) => this.fail(error));
    events("/v1/events", {
      signal: aborted,
      onState: (state) => {
        if (state === "live" && this.state.peek() === "retrying") this.reload();
        this.state.value = state;
      },
      onEvent: (name, data) => (name === "resync" ? this.reload() : this.touch(data.session)),
    }).catch((error) => this.fail(error));
    return () => {
      this.aborter.abort();
      clearTimeout(this.timer);
    };
  }

  fail(error) {
    if (this.aborter.signal.aborted) return;
    batch(() => {
      this.error.value = error;
      this.loading.value = false;
    });
    if (!(error instanceof Problem)) throw error;
  }

  reload() {
    this.load(this.aborter.signal).catch((error) => this.fail(error));
  }

  async load(aborted) {
    const found = new Map();
    let after;
    let more = true;
    while (more && found.size < SESSIONS_MAX) {
      const { body } = await get("/v1/sessions", { query: { limit: 1000, after, ...this.query }, signal: aborted });
      for (const session of body.sessions) found.set(session.session, session);
      after = body.next;
      more = body.more;
      if (aborted.aborted) return;
      batch(() => {
        if (found.size <= 1000 || !more) this.byName.value = new Map(found);
        this.loading.value = false;
      });
    }
    batch(() => {
      this.byName.value = found;
      this.cut.value = more;
      this.error.value = undefined;
    });
  }

  touch(name) {
    this.changed.add(name);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh().catch((error) => this.fail(error));
    }, GATHER_MS);
  }

  async refresh() {
    const names = [...this.changed];
    this.changed.clear();
    if (names.length > SINGLE_READS_MAX || (this.query.label && names.some((name) => !this.byName.peek().has(name)))) {
      return this.load(this.aborter.signal);
    }
    const read = await Promise.all(names.map((name) => this.describe(name)));
    const sessions = new Map(this.byName.peek());
    names.forEach((name, i) => {
      if (this.query.prefix && !name.startsWith(this.query.prefix)) return;
      if (read[i]) sessions.set(name, read[i]);
      else sessions.delete(name);
    });
    this.byName.value = sessions;
  }

  async describe(name) {
    try {
      return (await get(board(name), { signal: this.aborter.signal })).body;
    } catch (error) {
      if (error.status === 404) return undefined;
      throw error;
    }
  }
}

/** The sessions whose names begin with `prefix` and that have a label `name:value`. */
export function useSessions({ prefix, label }) {
  const sessions = useMemo(() => new Sessions({ prefix: prefix || undefined, label: label || undefined }), [prefix, label]);
  useEffect(() => sessions.open(), [sessions]);
  return sessions;
}
