// The history of one path: each commit that wrote it, with its author, its time and the value after it.

import { board, get } from "../../core/api.js";
import { href, setParams } from "../../core/address.js";
import { html, useEffect, useRef, useState } from "../../core/dom.js";
import { count, fullTime, plural } from "../../core/format.js";
import { entryAt, historyOf } from "../../core/past.js";
import { usePages, useRead } from "../../core/resource.js";
import { Agent, Ago, Button, Empty } from "../basics.js";
import { pathOf } from "../entry.js";
import { PastProblem } from "./problem.js";
import { ValueDiff } from "./values.js";

/** The commits that one search finds before it stops, and the pages of events that it reads. */
const FOUND = 30;
const PAGES_MAX = 40;

export function PathHistory({ session, path, oldest, head, suggestions }) {
  const [text, setText] = useState(path);
  useEffect(() => setText(path), [path]);
  const submit = (event) => {
    event.preventDefault();
    setParams({ path: text.trim() || "state" }, { replace: false });
  };
  return html`<section class="stack" aria-label="History of a path">
    <form class="row wrap" onSubmit=${submit}>
      <input class="field mono grow path-field" aria-label="Path" list="past-paths" placeholder="state/plan/x, requests/3, agents/NAME" value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
      <datalist id="past-paths">${suggestions.map((one) => html`<option value=${one} />`)}</datalist>
      <${Button} type="submit" kind="primary">Show its history<//>
    </form>
    ${historyOf(path) ? html`<${Found} key=${path} session=${session} path=${path} oldest=${oldest} head=${head} />` : html`<${Empty} title="Not a path"><p>A path is <code>state/…</code>, an entry such as <code>requests/3</code> or <code>agents/NAME/memory/2</code>, or <code>agents/NAME</code>.</p><//>`}
  </section>`;
}

function Found({ session, path, oldest, head }) {
  const pages = usePages((from = oldest, ...rest) => searched(session, path, from, ...rest), [session, path, oldest]);
  const { items: commits, loading, error, more = true, next = oldest, read } = pages;
  // New commits are looked for once the search has reached the end.
  useEffect(() => {
    if (!more && !loading && head > next) read();
  }, [head]);
  return html`<p class="muted small" role="status">${loading ? `Searching: revision ${count(next)} of ${count(head)}…` : `${plural(commits.length, "change")}${more ? ` up to revision ${count(next)}` : ""}`}</p>
    <ol class="path-history">${commits.map((commit, i) => html`<${Change} key=${commit.revision} session=${session} path=${path} commit=${commit} before=${commits[i - 1]?.revision ?? oldest} />`)}</ol>
    <${PastProblem} error=${error} oldest=${oldest} />
    ${!loading && commits.length === 0 && !error && html`<${Empty} title="No change of this path is kept"><p>${oldest > 0 ? `Revisions up to ${count(oldest)} are compacted.` : "Nobody wrote it."}</p><//>`}
    ${more && !loading && html`<div><${Button} onClick=${read}>${commits.length > 0 ? "More changes" : "Search on"}<//></div>`}`;
}

async function searched(session, path, from, signal, tell) {
  const { on, matches } = historyOf(path);
  const commits = [];
  let next = from;
  for (let page = 0; page < PAGES_MAX && commits.length < FOUND; page += 1) {
    const { body } = await get(board(session, "events"), { query: { on, after: next }, signal });
    if (body.resync) {
      const oldest = (await get(board(session), { signal })).body.oldest_revision;
      if (oldest <= next) return { items: commits, next, more: false };
      next = oldest;
      continue;
    }
    for (const commit of body.events) {
      if (!commit.changes.some(matches)) continue;
      // What a page has beyond the limit is found again by the next search.
      if (commits.length >= FOUND) return { items: commits, next: commits.at(-1).revision, more: true };
      commits.push(commit);
    }
    next = body.next;
    if (!body.more) return { items: commits, next, more: false };
    tell(next);
  }
  return { items: commits, next, more: true };
}

/** A commit of the history; the values are read when the row comes near the screen. */
function Change({ session, path, commit, before }) {
  const ref = useRef();
  const [near, setNear] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry.isIntersecting && setNear(true), { rootMargin: "300px" });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  const read = async (signal) => near && Promise.all([before, commit.revision].map((revision) => valueAt(session, path, revision, signal)));
  const { value, error } = useRead(read, [near, before]);
  return html`<li class="path-change" ref=${ref}>
    <div class="row wrap small"><a class="num" href=${href("past", session, { at: commit.revision })}>Revision ${count(commit.revision)}</a><${Agent} name=${commit.agent} /><span class="muted">${fullTime(commit.at)} (<${Ago} at=${commit.at} />)</span>
      <span class="badge">${[...new Set(commit.changes.map((change) => change.kind.replaceAll("_", " ")))].join(", ")}</span></div>
    ${error ? html`<${PastProblem} error=${error} />` : value ? html`<${Values} old=${value[0]} now=${value[1]} />` : html`<span class="skeleton" aria-hidden="true"></span>`}
  </li>`;
}

function Values({ old, now }) {
  if (now === undefined && old === undefined) return html`<p class="muted small">The path is absent.</p>`;
  if (JSON.stringify(old) === JSON.stringify(now)) return html`<p class="muted small">The value stayed the same.</p>`;
  return html`<${ValueDiff} before=${old} after=${now} />`;
}

/** The value or entry at a revision, or undefined where it was absent. */
async function valueAt(session, path, revision, signal) {
  // Before the first commit the board is empty.
  if (revision === 0) return undefined;
  try {
    const { body } = await get(pathOf(session, path), { query: { at: revision }, signal });
    if (path.startsWith("state")) return body;
    // The envelope's own numbers change with each write.
    const { revision: changed, seq, updated_at, updated_by, at, agent, image, ...rest } = body;
    return path.startsWith("agents/") && !entryAt(path) ? { agent, ...rest } : rest;
  } catch (error) {
    if (error.status === 404) return undefined;
    throw error;
  }
}
