// The state's document of a session, read once and kept up to date by the commits.
//
// Commits say which paths changed; their values are read from the API, since a parsed event has lost the numbers' texts.

import { batch, signal, useEffect, useMemo } from "../dom.js";
import { board, get, statePath } from "../api.js";
import { parseJson } from "./json-tree.js";
import { changes, keysOf, replaced } from "./tree.js";

/** A document of fewer characters is read as a whole. */
const PARTS_FROM_CHARS = 40_000;

/** More changed paths at once than this are read as the whole document. */
const PATHS_MAX = 6;

/** The shortest time between two reads, and that of whole large documents. */
const READ_MS = 300;
const READ_LARGE_MS = 2000;

class StateDocument {
  constructor(session) {
    this.session = session;
    /** `{root, n, changed}`: the tree, a number that grows with it, and the places that changed at last. */
    this.tree = signal(undefined);
    this.loading = signal(true);
    this.error = signal(undefined);
    this.revision = 0;
    this.chars = 0;
    this.paths = new Set();
    this.whole = false;
  }

  begin(feed) {
    this.aborter = new AbortController();
    this.feed = feed;
    this.readWhole();
    const listening = feed.listen((commits) => this.take(commits));
    const loading = feed.loading.subscribe(() => this.catchUp());
    return () => {
      listening();
      loading();
      this.aborter.abort();
      clearTimeout(this.timer);
      this.timer = undefined;
    };
  }

  /** Takes what the feed loaded, and did not tell, after the document was read. */
  catchUp() {
    const { loading, commits, first } = this.feed;
    if (loading.peek() || this.revision === 0 || this.feed.head.peek() <= this.revision) return;
    if (first > this.revision + 1) this.whole = true;
    const newer = commits.filter((commit) => commit.revision > this.revision);
    if (newer.length > 0) this.take(newer);
    else if (this.whole) this.schedule();
  }

  take(commits) {
    if (commits.length === 0) this.whole = true;
    const removed = new Set();
    for (const commit of commits) {
      if (commit.revision <= this.revision) continue;
      for (const change of commit.changes) {
        if (change.kind === "restored" || change.kind === "adopted") this.whole = true;
        if (!change.kind.startsWith("state_")) continue;
        if (typeof change.path !== "string" || change.path === "") this.whole = true;
        // What was removed and came again has another place in the order.
        else if (removed.has(change.path)) this.whole = true;
        else this.paths.add(change.path);
        if (change.kind === "state_removed" || change.kind === "state_expired") removed.add(change.path);
      }
    }
    if (this.chars < PARTS_FROM_CHARS || this.paths.size > PATHS_MAX) this.whole ||= this.paths.size > 0;
    if (this.whole || this.paths.size > 0) this.schedule();
  }

  schedule() {
    const pause = this.whole && this.chars > PARTS_FROM_CHARS ? READ_LARGE_MS : READ_MS;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.whole) this.readWhole();
      else this.readPaths();
    }, Math.max(0, (this.readAt ?? 0) + pause - Date.now()));
  }

  async readWhole() {
    this.readAt = Date.now();
    this.whole = false;
    this.paths.clear();
    try {
      const { text, revision } = await get(board(this.session, "state"), { signal: this.aborter.signal });
      this.revision = revision ?? this.revision;
      this.chars = text.length;
      this.show(parseJson(text));
      this.catchUp();
    } catch (error) {
      this.fail(error);
    }
  }

  async readPaths() {
    this.readAt = Date.now();
    const paths = [...this.paths];
    this.paths.clear();
    try {
      const nodes = await Promise.all(paths.map((path) => this.readPath(path)));
      let root = this.tree.peek()?.root;
      paths.forEach((path, i) => {
        root = root && replaced(root, keysOf(path), nodes[i]);
      });
      if (root) return this.show(root);
      this.whole = true;
      return this.schedule();
    } catch (error) {
      return this.fail(error);
    }
  }

  async readPath(path) {
    try {
      return parseJson((await get(statePath(this.session, path), { signal: this.aborter.signal })).text);
    } catch (error) {
      if (error.code === "path-not-found") return undefined;
      throw error;
    }
  }

  show(root) {
    const before = this.tree.peek();
    const changed = before ? changes(before.root, root) : new Set();
    batch(() => {
      this.tree.value = { root, n: (before?.n ?? 0) + 1, changed };
      this.loading.value = false;
      this.error.value = undefined;
    });
  }

  fail(error) {
    if (this.aborter.signal.aborted) return;
    batch(() => {
      this.error.value = error;
      this.loading.value = false;
    });
  }
}

/** The document of a session, live while it is used. */
export function useStateDocument(session, feed) {
  const document = useMemo(() => new StateDocument(session), [session]);
  useEffect(() => document.begin(feed), [document, feed]);
  return document;
}
