// Words over all sessions or within one, as one types.

import { curl, get, logPath, withQuery } from "../core/api.js";
import { href, place, setParams } from "../core/address.js";
import { html, useEffect, useMemo, useRef, useState } from "../core/dom.js";
import { count, plural, short } from "../core/format.js";
import { entryOf, grouped, highlighted, logOf, pieces, plain, searchQuery, SINCE, textKeys } from "../core/search.js";
import { usePages } from "../core/resource.js";
import { itemText } from "../core/timeline.js";
import { Agent, Ago, Button, Copy, Empty, Find, ProblemNote, Select, Skeleton } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";

/** How long typing rests before the server is asked. */
const TYPED_MS = 180;

const PAGE = 25;

/** How long a hit is near the screen before its entry is read. */
const READ_MS = 250;

/** The characters of an entry's text, and the sessions of one hit that are named. */
const TEXT_CHARS = 300;
const SESSIONS_SHOWN = 3;

/** The most hits that are listed; beyond, one narrows the query. */
const HITS_MAX = 1000;

const LOGS = [["", "All logs"], ["requests", "Requests"], ["trajectories", "Trajectories"], ["questions", "Questions"], ["screenshots", "Screenshots"], ["memory", "Memories"], ["messages", "Messages"]];
const TIMES = [["", "Any time"], ["1h", "Last hour"], ["1d", "Last day"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];

export function Search() {
  const { params } = place.value;
  const query = useMemo(() => searchQuery(params), [params.q, params.in, params.log, params.agent, params.since]);
  const search = useHits(query);
  useEffect(() => document.querySelector("[data-search]").focus(), []);
  return html`<div class="view search">
    <div class="bar" role="search">
      <${Find} label="Search entries" name="q" />
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
  const page = async (after, signal) => {
    if (!query) return { items: [] };
    if (after === undefined) await new Promise((done) => setTimeout(done, TYPED_MS));
    const { body } = await get("/v1/search", { query: { ...query, limit: PAGE, after }, signal });
    return { items: body.hits, next: body.next, query };
  };
  const pages = usePages(page, [query], true);
  // Entries that moved between two pages stand once.
  const known = new Map(pages.items.map((hit) => [`${hit.session}/${entryOf(hit)}`, hit]));
  return { ...pages, hits: [...known.values()] };
}

function Found({ search, query, params }) {
  const { hits, next, error, loading, read } = search;
  if (!query) return html`<${Syntax} />`;
  if (error?.status === 404 && error.code === "route-not-found") return html`<${Off} />`;
  const entries = grouped(hits);
  const path = withQuery("/v1/search", query);
  return html`
    <${Refusal} error=${error} retry=${read} />
    ${loading && hits.length === 0 && html`<${Skeleton} lines=${8} />`}
    ${!loading && !error && search.query === query && hits.length === 0 && html`<${Nothing} params=${params} />`}
    ${hits.length > 0 && html`
      <div class="row search-sum"><span class="grow muted small" role="status">${next === null || next === undefined ? plural(entries.length, "hit") : `The first ${plural(entries.length, "hit")}`}, best first</span><${Copy} icon="terminal" label="Copy as curl" text=${() => curl(path)} /></div>
      <ol class=${`search-hits${loading ? " is-stale" : ""}`} aria-busy=${String(Boolean(loading))}>${entries.map((all) => html`<${Hit} key=${`${all[0].session}/${entryOf(all[0])}`} all=${all} />`)}</ol>
      ${next && hits.length < HITS_MAX && html`<div class="row"><${Button} disabled=${loading} onClick=${read}>More hits<//></div>`}
      ${next && hits.length >= HITS_MAX && html`<p class="muted">${count(HITS_MAX)} hits are listed. More words find fewer.</p>`}`}`;
}

/** A refusal: a query that is not complete yet is no failure. */
function Refusal({ error, retry }) {
  if (!error) return null;
  if (error.status === 400) return html`<p class="muted" role="status">${error.message}</p>`;
  if (error.status === 503) return html`<p class="search-wait" role="status">The index is being built, or the server is busy: ${error.message} <${Button} onClick=${retry}>Search again<//></p>`;
  return html`<${ProblemNote} error=${error} retry=${retry} />`;
}

const ICONS = { requests: "request", trajectories: "step", questions: "question", screenshots: "screenshot", memory: "memory", messages: "message" };

/** The text of a hit's entry, read when the hit comes near the screen; undefined until then. */
function useText(hit, ref) {
  const [text, setText] = useState();
  useEffect(() => {
    const aborter = new AbortController();
    const log = logOf(hit);
    const query = { after: hit.seq - 1, before: hit.seq + 1, keys: textKeys(hit.log) };
    // Without it, what the hit quotes is enough. The entry may be gone since.
    const read = () => get(logPath(hit.session, log), { query, signal: aborter.signal }).then(({ body }) => setText(itemText(log, body.entries[0]?.item)), () => {});
    const observer = new IntersectionObserver(([entry]) => {
      clearTimeout(observer.timer);
      if (entry.isIntersecting) observer.timer = setTimeout(() => (observer.disconnect(), read()), READ_MS);
    }, { rootMargin: "200px" });
    observer.observe(ref.current);
    return () => {
      clearTimeout(observer.timer);
      observer.disconnect();
      aborter.abort();
    };
  }, [hit.session, entryOf(hit)]);
  return text;
}

/** An entry that was found, and the sessions that have it. */
function Hit({ all }) {
  const [hit] = all;
  const ref = useRef();
  const what = entryOf(hit);
  const text = useText(hit, ref);
  const found = pieces(hit.snippet);
  const hasText = text && text !== "{}";
  const quoted = plain(found);
  const quote = hasText && quoted.startsWith(text) ? highlighted(quoted.slice(text.length), found) : found;
  return html`<li class="search-hit" ref=${ref}>
    <${Icon} name=${ICONS[hit.log]} />
    <div class="grow">
      <a class="search-snippet" href=${href("timeline", hit.session, { open: what })}><bdi><${Pieces} of=${hasText ? highlighted(short(text, TEXT_CHARS), found) : found} /></bdi></a>
      ${hasText && quote.some(({ marked }) => marked) && html`<p class="search-quote small muted"><bdi><${Pieces} of=${quote} /></bdi></p>`}
      <div class="row wrap small muted">
        ${all.slice(0, SESSIONS_SHOWN).map(({ session }) => html`<a class="truncate" key=${session} href=${href("search", undefined, { ...place.peek().params, in: session })} title=${`Only in ${session}`}>${session}</a>`)}
        ${all.length > SESSIONS_SHOWN && html`<span>+${all.length - SESSIONS_SHOWN}</span>`}
        <span class="mono nowrap">${what}</span>
        ${hit.agent && html`<${Agent} name=${hit.agent} />`}
        <${Ago} at=${hit.at} />
      </div>
    </div>
  </li>`;
}

function Pieces({ of }) {
  return of.map(({ text, marked }) => (marked ? html`<mark>${text}</mark>` : text));
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
  ['tar "-xzf"', "a flag, in quotation marks so that its minus excludes nothing"],
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
