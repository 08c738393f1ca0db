// A resource of the API that is read again when a commit touches it.

import { signal, useEffect, useMemo, useRef, useState } from "./dom.js";
import { get } from "./api.js";

/** The shortest time between two reads of one resource. */
const REFRESH_MS = 400;

/**
 * Reads a path, and again when `on(commit)` is true for a live commit of `feed`, or each `every` milliseconds.
 * Returns `{data, text, etag, error, loading, refresh}`. The browser's cache revalidates by tag. A path of undefined reads nothing.
 */
export function useResource(path, { feed, on, every, accept, cache } = {}) {
  const resource = useMemo(() => new Resource(path, { accept, cache }), [path, accept, cache]);
  useEffect(() => resource.begin(), [resource]);
  useEffect(() => {
    if (!feed || !on) return undefined;
    const listening = feed.listen((commits) => {
      if (commits.length === 0 || commits.some(on)) resource.touch();
    });
    const loading = feed.loading.subscribe((isLoading) => isLoading || resource.reach(feed.head.peek()));
    return () => {
      listening();
      loading();
    };
  }, [feed, resource]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.hidden || resource.touch(), every);
    return () => clearInterval(timer);
  }, [every, resource]);
  const now = resource.state.value;
  return { ...now, refresh: () => resource.touch(0) };
}

/** What `read(signal)` returns as `{value, error}`, read again when `deps` change; meanwhile what was there stays if one `keeps` it. */
export function useRead(read, deps, keeps) {
  const [state, setState] = useState({});
  useEffect(() => {
    const aborter = new AbortController();
    const { signal: aborted } = aborter;
    if (!keeps) setState({});
    read(aborted).then((value) => aborted.aborted || setState({ value }), (error) => aborted.aborted || setState({ error }));
    return () => aborter.abort();
  }, deps);
  return state;
}

/**
 * A list that is read page by page, on demand. `page(after, signal)` returns `{items, next, more}`, perhaps with other members; `after` is
 * the `next` of the page before. Returns the last page's members with the `items` of all, `loading`, `error`, and `read`, which reads the
 * next page. Begins anew when `deps` change; meanwhile what was there stays if one `keeps` it.
 */
export function usePages(page, deps, keeps) {
  const [state, setState] = useState({ items: [], loading: true });
  const aborter = useRef();
  const read = async (before, shown = before) => {
    const { signal: aborted } = aborter.current;
    const tell = (next) => aborted.aborted || setState(next);
    tell({ ...shown, loading: true, error: undefined });
    try {
      const { items, ...rest } = await page(before.next, aborted, (next) => tell({ ...before, next, loading: true }));
      tell({ items: [...before.items, ...items], ...rest });
    } catch (error) {
      tell({ ...before, loading: false, error });
    }
  };
  useEffect(() => {
    aborter.current = new AbortController();
    read({ items: [] }, keeps ? state : undefined);
    return () => aborter.current.abort();
  }, deps);
  return { ...state, read: () => read(state) };
}

class Resource {
  constructor(path, options) {
    this.path = path;
    this.options = options;
    this.state = signal({ loading: path !== undefined });
    this.readAt = 0;
    /** The revision that the first read has to show. */
    this.needed = 0;
  }

  begin() {
    this.aborter = new AbortController();
    if (this.path !== undefined) this.read();
    return () => {
      this.aborter.abort();
      clearTimeout(this.timer);
      this.timer = undefined;
    };
  }

  /** Reads once more if commits came between the first read and the beginning of the feed, which does not tell them. */
  reach(revision) {
    this.needed = revision;
    if (this.state.peek().revision < revision) this.touchOnce();
  }

  touchOnce() {
    this.needed = 0;
    this.touch();
  }

  touch(after = REFRESH_MS) {
    if (this.path === undefined) return;
    if (after === 0) {
      clearTimeout(this.timer);
      this.timer = undefined;
      return this.read();
    }
    const wait = Math.max(0, this.readAt + after - Date.now());
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.read();
    }, wait);
  }

  async read() {
    this.readAt = Date.now();
    const aborted = this.aborter.signal;
    try {
      const { body, text, etag, revision, headers } = await get(this.path, { signal: aborted, ...this.options });
      if (aborted.aborted) return;
      const before = this.state.peek();
      if (before.text === text && before.etag === etag && !before.error) return;
      this.state.value = { data: body, text, etag, revision, headers, loading: false };
      if (revision < this.needed) this.touchOnce();
    } catch (error) {
      if (aborted.aborted) return;
      // Data that was read stays shown beside the problem.
      this.state.value = { ...this.state.peek(), error, loading: false };
    }
  }
}

/** Returns a test of commits: true if a change is of one of these kinds or logs. */
export function touches({ kinds = [], logs = [], agents = false, state = false } = {}) {
  return (commit) =>
    commit.changes.some(
      (change) =>
        kinds.includes(change.kind) ||
        logs.includes(change.request || change.requests ? "requests" : change.log) ||
        change.kind === "restored" ||
        (agents && (change.kind.startsWith("agent_") || String(change.log ?? "").startsWith("agents/"))) ||
        (state && change.kind.startsWith("state_")),
    );
}
