// Everything that happens in a session, oldest above: grouped, filtered, live.

import { board, curl } from "../core/api.js";
import { listed, namesIn, place, setParams } from "../core/address.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../core/dom.js";
import { COMMITS_MAX, useFeed, useFold } from "../core/feed.js";
import { count, plural } from "../core/format.js";
import { expanded } from "../core/settings.js";
import { Groups, KINDS, passes } from "../core/timeline.js";
import { Agent, Button, Chips, Command, Empty, Find, isTyping, ProblemNote, Skeleton } from "../parts/basics.js";
import { Chunk } from "../parts/chunk.js";
import { GroupCard } from "../parts/group.js";
import { Overview } from "../parts/overview.js";

/** Revisions of one chunk, which is in the document or not as a whole. */
const CHUNK_REVISIONS = 64;

/** How many frames one waits for a chunk to be rendered. */
const REVEAL_FRAMES_MAX = 120;

/** Nearer to the bottom than this, the view follows new entries. */
const BOTTOM_PX = 60;

export function Timeline({ session, scroller }) {
  const feed = useFeed(session);
  const version = feed.version.value;
  const { params } = place.value;
  const filters = useMemo(() => filtersOf(params), [params.agent, params.kind, params.status, params.text]);
  const groups = useFold(feed, () => new Groups(), (some, commits) => some.push(commits));
  const shown = useMemo(() => (isEmpty(filters) ? groups.list : groups.list.filter((group) => passes(group, filters))), [groups, version, filters]);
  const chunks = useChunks(shown, scroller);
  const fresh = useScroll({ feed, version, scroller, shown, around: params.around });
  useOlder({ feed, scroller, shown, version });
  useKeys(feed, scroller);
  const loading = feed.loading.value;
  const problem = feed.problem.value && html`<${ProblemNote} error=${feed.problem.value} retry=${() => feed.retry()} />`;
  // Nothing but the problem is shown. The list stays the same element, which `useScroll` observes.
  const isNone = problem && feed.size === 0;
  return html`<div class="view timeline">
    ${!isNone && html`<${Filters} feed=${feed} groups=${groups} filters=${filters} />`}
    <div class="timeline-body">
      <div class="timeline-list">
        ${problem}
        ${loading && html`<${Skeleton} lines=${10} />`}
        ${!loading && !isNone && html`<${Top} feed=${feed} shown=${shown} filters=${filters} />`}
        ${chunks}
        ${!loading && !isNone && shown.length === 0 && feed.atStart && html`<${Nothing} session=${session} filters=${filters} />`}
        ${fresh.value > 0 && html`<div class="pill"><${Button} kind="primary" onClick=${fresh.toEnd}>${plural(fresh.value, "new entry", "new entries")} ↓<//></div>`}
        ${!feed.attached.value && html`<div class="pill"><${Button} kind="primary" onClick=${() => { setParams({ around: null }); feed.jump("end"); fresh.toEnd(); }}>Newest entries ↓<//></div>`}
      </div>
      ${!isNone && html`<${Overview} session=${session} feed=${feed} />`}
    </div>
  </div>`;
}

function card(group) {
  return html`<${GroupCard} key=${group.key} group=${group} version=${group.version} />`;
}

/** Groups in chunks by revision, so that a chunk's boundaries stay where they are. A chunk without changes is not looked at again. */
function useChunks(shown, scroller) {
  const held = useRef(new Map());
  const chunks = [];
  let last;
  for (const group of shown) {
    const bucket = Math.floor(group.revision / CHUNK_REVISIONS);
    if (!last || last.bucket !== bucket) {
      last = { bucket, groups: [], sign: 0 };
      chunks.push(last);
    }
    last.groups.push(group);
    last.sign += group.version;
  }
  const made = new Map();
  for (const { bucket, groups, sign } of chunks) {
    const known = held.current.get(bucket);
    const whole = `${groups[0].key} ${groups.length} ${sign} ${expanded.value}`;
    const isSame = known?.whole === whole;
    made.set(bucket, isSame ? known : { whole, content: html`<${Chunk} key=${bucket} id=${bucket} items=${groups} sign=${whole} render=${card} scroller=${scroller} />` });
  }
  held.current = made;
  return [...made.values()].map((one) => one.content);
}

/** True while one writes an answer in the timeline, which then stays where it is. */
function isWriting() {
  return document.activeElement?.closest(".timeline-list .compose");
}

/** Follows the end while one is there; else counts what is new. Goes to `around` once it is loaded. */
function useScroll({ feed, version, scroller, shown, around }) {
  const [fresh, setFresh] = useState(0);
  const at = useRef({ bottom: true, count: 0 });
  const toEnd = () => {
    at.current.bottom = true;
    setFresh(0);
    requestAnimationFrame(() => scroller.current && (scroller.current.scrollTop = scroller.current.scrollHeight));
  };
  useEffect(() => {
    const element = scroller.current;
    const scrolled = () => {
      const bottom = element.scrollHeight - element.scrollTop - element.clientHeight < BOTTOM_PX;
      if (bottom && !at.current.bottom) setFresh(0);
      at.current.bottom = bottom;
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    // Chunks and images get their heights late.
    const grown = new ResizeObserver(() => {
      if (at.current.bottom && at.current.arrived !== false && !isWriting()) element.scrollTop = element.scrollHeight;
    });
    grown.observe(element.querySelector(".timeline-list"));
    return () => {
      element.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [scroller]);
  useLayoutEffect(() => {
    const added = shown.length - at.current.count;
    at.current.count = shown.length;
    if (around !== undefined && !at.current.arrived) return;
    if (version.added === "start") return;
    if (at.current.bottom && feed.attached.peek() && !isWriting()) scroller.current.scrollTop = scroller.current.scrollHeight;
    else if (version.added === "end" && added > 0 && feed.attached.peek()) setFresh((n) => n + added);
  }, [version, shown]);
  useEffect(() => {
    at.current.arrived = around === undefined;
    if (around === undefined || feed.loading.peek()) return undefined;
    let over = false;
    at.current.bottom = false;
    bring(feed, Number(around)).then(() => over || reveal(scroller.current, shown, Number(around), () => (at.current.arrived = true)));
    return () => (over = true);
  }, [around, feed, feed.loading.value]);
  useEffect(() => {
    if (around !== undefined && !at.current.arrived) reveal(scroller.current, shown, Number(around), () => (at.current.arrived = true));
  }, [shown]);
  return { value: fresh, toEnd };
}

async function bring(feed, revision) {
  const first = feed.below[0]?.revision ?? feed.first;
  if (revision < first || revision > feed.last) await feed.jump(revision);
}

/** Scrolls to the group of a revision. Its chunk is rendered some frames after it is near. */
function reveal(scroller, shown, revision, done) {
  const group = shown.find((one) => one.rows.some((row) => row.revision === revision)) ?? shown.find((one) => one.revision >= revision);
  if (!group) return;
  const chunk = () => scroller.querySelector(`[data-chunk="${Math.floor(group.revision / CHUNK_REVISIONS)}"]`);
  let frames = 0;
  const look = () => {
    const element = scroller.querySelector(`[data-group="${CSS.escape(group.key)}"]`);
    if (element) {
      element.scrollIntoView({ block: "center" });
      element.classList.add("found");
      element.querySelector("a")?.focus({ preventScroll: true });
      done();
      return;
    }
    chunk()?.scrollIntoView({ block: "center" });
    frames += 1;
    if (frames < REVEAL_FRAMES_MAX) requestAnimationFrame(look);
  };
  look();
}

/** Loads older commits while the top is near, or while a filter leaves the screen empty. */
function useOlder({ feed, scroller, shown, version }) {
  useEffect(() => {
    const element = scroller.current;
    const load = () => {
      if (feed.loading.peek()) return;
      const { scrollTop, scrollHeight, clientHeight } = element;
      if (scrollTop < 1500 && !feed.atStart && feed.size < COMMITS_MAX) {
        // The browser keeps what is seen in its place, except at the very top.
        if (scrollTop < 2) element.scrollTop = 2;
        feed.older();
      } else if (scrollHeight - scrollTop - clientHeight < 1500 && !feed.attached.peek()) {
        feed.newer();
      }
    };
    element.addEventListener("scroll", load, { passive: true });
    const timer = setTimeout(load, 60);
    return () => {
      clearTimeout(timer);
      element.removeEventListener("scroll", load);
    };
  }, [feed, scroller, shown, version]);
}

function useKeys(feed, scroller) {
  useEffect(() => {
    const scroll = (end) => scroller.current?.scrollTo(0, end === "Home" ? 0 : scroller.current.scrollHeight);
    const key = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      if (event.key === "e") expanded.value = !expanded.peek();
      else if (event.key === "j" || event.key === "k") move(scroller.current, event.key === "j" ? 1 : -1);
      else if (event.key === "Home") feed.jump("start").then((isThere) => isThere && scroll("Home"));
      else if (event.key === "End" && !feed.attached.peek()) feed.jump("end").then((isThere) => isThere && scroll("End"));
      else if (event.key === "End") scroll("End");
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [feed, scroller]);
}

/** Moves the focus to the next or previous group. */
function move(scroller, step) {
  const links = [...scroller.querySelectorAll("[data-group] a.title")];
  const at = links.indexOf(document.activeElement);
  const top = scroller.getBoundingClientRect().top + 60;
  const next = at >= 0 ? at + step : links.findIndex((link) => link.getBoundingClientRect().top >= top);
  const link = links[Math.max(0, Math.min(links.length - 1, next))];
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
}

function filtersOf({ agent, kind, status, text = "" }) {
  return { agents: namesIn(agent), kinds: namesIn(kind), statuses: namesIn(status), text };
}

function isEmpty({ agents, kinds, statuses, text }) {
  return agents.length === 0 && kinds.length === 0 && statuses.length === 0 && text === "";
}

const STATUSES = ["CONTINUE", "PENDING", "CONFIRM", "SCREENSHOT", "FINISH", "FAIL", "ERROR"];

function Filters({ feed, groups, filters }) {
  const [more, setMore] = useState(filters.agents.length + filters.kinds.length + filters.statuses.length > 0);
  const agents = more ? [...groups.agents].sort() : [];
  const active = filters.agents.length + filters.kinds.length + filters.statuses.length;
  return html`<div class="bar">
    <${Find} label="Filter by text" />
    <${Button} icon="filter" aria-expanded=${String(more)} aria-pressed=${String(active > 0)} onClick=${() => setMore(!more)}>Filter${active > 0 ? ` (${active})` : ""}<//>
    <${Button} icon="expand" aria-pressed=${String(expanded.value)} label="Show every change by itself (e)" onClick=${() => (expanded.value = !expanded.value)}>Expand<//>
    ${more && html`<div class="filters">
      <${Chips} label="Kinds" options=${Object.entries(KINDS)} value=${filters.kinds} onChange=${(kinds) => setParams({ kind: listed(kinds) })} />
      <${Chips} label="Agents" options=${agents.map((name) => [name, html`<${Agent} name=${name} />`])} value=${filters.agents} onChange=${(names) => setParams({ agent: listed(names) })} />
      <${Chips} label="Statuses" options=${STATUSES.map((name) => [name, name])} value=${filters.statuses} onChange=${(names) => setParams({ status: listed(names) })} />
      ${!isEmpty(filters) && html`<${Button} kind="quiet" icon="close" onClick=${() => setParams({ agent: null, kind: null, status: null, text: null })}>Clear filters<//>`}
    </div>`}
  </div>`;
}

function Top({ feed, shown, filters }) {
  const loaded = feed.commits.length;
  const oldest = feed.oldest.value;
  if (feed.atStart || (feed.atOldest && feed.size >= COMMITS_MAX)) {
    const entries = feed.atStart ? "the entries" : "the newest entries";
    return html`<p class="timeline-top">${oldest > 0 ? `Changes up to revision ${count(oldest)} are not kept: up to there, ${entries} that the logs still have are shown.` : shown.length > 0 && "The session begins here."}</p>`;
  }
  return html`<p class="timeline-top" role="status">${isEmpty(filters) ? "Loading older entries…" : `Looking through older entries: ${count(loaded)} of ${count(feed.head.value - feed.oldest.value)} changes…`}</p>`;
}

function Nothing({ session, filters }) {
  if (!isEmpty(filters)) return html`<${Empty} title="Nothing matches the filters"><p>Fewer filters show more.</p><//>`;
  return html`<${Empty} title="Nothing has happened yet">
    <p>Entries appear here as agents write them. To write the first:</p>
    <${Command} text=${curl(board(session, "requests"), { method: "POST", body: { request: "Open the report" } })} />
  <//>`;
}

