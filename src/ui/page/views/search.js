// Words over all sessions or within one, as one types.

import { curl, get, withQuery } from "../core/api.js";
import { href, place, setParams } from "../core/address.js";
import { html, useEffect, useMemo, useRef, useState } from "../core/dom.js";
import { count, plural } from "../core/format.js";
import { entryOf, pieces, searchQuery, SINCE } from "../core/search.js";
import { Agent, Ago, Button, Copy, Empty, ProblemNote, Select, Skeleton } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";

/** How long typing rests before the server is asked. */
const TYPED_MS = 180;

const PAGE = 25;

/** The most hits that are listed; beyond, one narrows the query. */
const HITS_MAX = 1000;

const LOGS = [["", "All logs"], ["requests", "Requests"], ["trajectories", "Trajectories"], ["questions", "Questions"], ["screenshots", "Screenshots"], ["memory", "Memories"]];
const TIMES = [["", "Any time"], ["1h", "Last hour"], ["1d", "Last day"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];

export function Search() {
  const { params } = place.value;
  const field = useRef();
  const query = useMemo(() => searchQuery(params), [params.q, params.in, params.log, params.agent, params.since]);
  const search = useHits(query);
  useEffect(() => field.current.focus(), []);
  return html`<div class="view search">
    <div class="bar" role="search">
      <input class="field grow" type="search" data-search ref=${field} placeholder="Search entries ( / )" aria-label="Search entries" value=${params.q ?? ""} onInput=${(event) => setParams({ q: event.currentTarget.value })} />
      <${Filters} params=${params} />
    </div>
    <div class="view padded search-body">
      <${Found} search=${search} query=${query} params=${params} />
    </div>
  </div>`;
}

function Filters({ params }) {
  const times = params.since && !SINCE[params.since] ? [...TIMES, [params.since, `Since ${params.since}`]] : TIMES;
  const active = ["in", "log", "agent", "since"].some((name) => params[name]);
  const input = (name, label) => html`<input class="field search-name" aria-label=${label} placeholder=${label} value=${params[name] ?? ""} onInput=${(event) => setParams({ [name]: event.currentTarget.value })} />`;
  return html`<div class="row wrap search-filters">
    ${input("in", "Session")}
    <${Select} label="Log" hideLabel options=${LOGS} value=${params.log ?? ""} onChange=${(log) => setParams({ log })} />
    ${input("agent", "Agent")}
    <${Select} label="Time" hideLabel options=${times} value=${params.since ?? ""} onChange=${(since) => setParams({ since })} />
    ${active && html`<${Button} kind="quiet" icon="close" onClick=${() => setParams({ in: null, log: null, agent: null, since: null })}>Clear filters<//>`}
  </div>`;
}

/** The hits of a query: asked when typing rests, an older question given up; more pages on demand. */
function useHits(query) {
  const [state, setState] = useState({ hits: [] });
  const aborter = useRef();
  const ask = async (after, before) => {
    aborter.current?.abort();
    const mine = (aborter.current = new AbortController());
    setState((last) => ({ ...last, loading: true, error: undefined }));
    try {
      const { body } = await get("/v1/search", { query: { ...query, limit: PAGE, after }, signal: mine.signal });
      if (!mine.signal.aborted) setState({ hits: merged(before, body.hits), next: body.next, query });
    } catch (error) {
      if (!mine.signal.aborted) setState({ hits: error.status === 400 ? [] : before, error, query });
    }
  };
  useEffect(() => {
    if (!query) {
      aborter.current?.abort();
      setState({ hits: [] });
      return undefined;
    }
    const timer = setTimeout(() => ask(undefined, []), TYPED_MS);
    return () => clearTimeout(timer);
  }, [query]);
  useEffect(() => () => aborter.current?.abort(), []);
  return { ...state, more: () => ask(state.next, state.hits), retry: () => ask(undefined, []) };
}

/** Hits of two pages; entries that moved between them stand once. */
function merged(before, hits) {
  const id = (hit) => `${hit.session}/${entryOf(hit)}`;
  const known = new Set(before.map(id));
  return [...before, ...hits.filter((hit) => !known.has(id(hit)))];
}

function Found({ search, query, params }) {
  const { hits, next, error, loading, more, retry } = search;
  if (!query) return html`<${Syntax} />`;
  if (error?.status === 404 && error.code === "route-not-found") return html`<${Off} />`;
  const path = withQuery("/v1/search", query);
  return html`
    <${Refusal} error=${error} retry=${retry} />
    ${loading && hits.length === 0 && html`<${Skeleton} lines=${8} />`}
    ${!loading && !error && search.query === query && hits.length === 0 && html`<${Nothing} params=${params} />`}
    ${hits.length > 0 && html`
      <div class="row search-sum"><span class="grow muted small" role="status">${next === null || next === undefined ? plural(hits.length, "hit") : `The first ${plural(hits.length, "hit")}`}, best first</span><${Copy} icon="terminal" label="Copy as curl" text=${() => curl(path)} /></div>
      <ol class=${`search-hits${loading ? " is-stale" : ""}`} aria-busy=${String(Boolean(loading))}>${hits.map((hit) => html`<${Hit} key=${`${hit.session}/${entryOf(hit)}`} hit=${hit} />`)}</ol>
      ${next && hits.length < HITS_MAX && html`<div class="row"><${Button} disabled=${loading} onClick=${more}>More hits<//></div>`}
      ${next && hits.length >= HITS_MAX && html`<p class="muted">${count(HITS_MAX)} hits are listed. More words find fewer.</p>`}`}`;
}

/** A refusal: a query that is not complete yet is no failure. */
function Refusal({ error, retry }) {
  if (!error) return null;
  if (error.status === 400) return html`<p class="muted" role="status">${error.message}</p>`;
  if (error.status === 503) return html`<p class="search-wait" role="status">The index is being made, or the server is busy: ${error.message} <${Button} onClick=${retry}>Search again<//></p>`;
  return html`<${ProblemNote} error=${error} retry=${retry} />`;
}

const ICONS = { requests: "request", trajectories: "step", questions: "question", screenshots: "screenshot", memory: "memory" };

function Hit({ hit }) {
  const what = entryOf(hit);
  return html`<li class="search-hit">
    <${Icon} name=${ICONS[hit.log]} />
    <div class="grow">
      <a class="search-snippet" href=${href("timeline", hit.session, { open: what })}><bdi>${pieces(hit.snippet).map(({ text, marked }) => (marked ? html`<mark>${text}</mark>` : text))}</bdi></a>
      <div class="row wrap small muted">
        <a class="truncate" href=${href("search", undefined, { ...place.peek().params, in: hit.session })} title=${`Only in ${hit.session}`}>${hit.session}</a>
        <span class="mono nowrap">${what}</span>
        ${hit.agent && html`<${Agent} name=${hit.agent} />`}
        <${Ago} at=${hit.at} />
      </div>
    </div>
  </li>`;
}

function Nothing({ params }) {
  const filters = ["in", "log", "agent", "since"].some((name) => params[name]);
  return html`<${Empty} title="Nothing found">
    <p>All words must be in one entry. <code>print*</code> finds every word that begins so.</p>
    ${filters && html`<p><${Button} onClick=${() => setParams({ in: null, log: null, agent: null, since: null })}>Search without filters<//></p>`}
  <//>`;
}

function Off() {
  return html`<${Empty} title="Search is switched off on this server">
    <p>It runs with <code>--search off</code>. Started with <code>--search on</code> it makes the index anew from what is stored.</p>
  <//>`;
}

const EXAMPLES = [
  ["disk full", "both words, in any order, without regard to case and accents"],
  ['"disk is full"', "the words in this order"],
  ["print*", "words that begin so; at least two letters before the star"],
  ["report -draft", "without the word; also -\"a phrase\" and -pre*"],
];

function Syntax() {
  return html`<section class="search-syntax stack">
    <h2>Search requests, steps, questions, screenshots' metadata and memories</h2>
    <table class="table"><thead><tr><th>Query</th><th>Finds</th></tr></thead><tbody>
      ${EXAMPLES.map(([query, meaning]) => html`<tr><td><a class="mono nowrap" href=${href("search", undefined, { q: query })}>${query}</a></td><td>${meaning}</td></tr>`)}
    </tbody></table>
    <p class="muted small">In Chinese, Japanese, Thai, Lao, Khmer and Burmese each character is a word. The state, blobs and images are not searched.</p>
  </section>`;
}
