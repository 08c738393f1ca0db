// The gallery: tiles of which only the visible ones are in the document.

import { board, curl } from "../../core/api.js";
import { href, place, setParams } from "../../core/address.js";
import { cx, html, useEffect, useLayoutEffect, useRef, useState } from "../../core/dom.js";
import { bytes, count, fullTime, hue, plural, short, time } from "../../core/format.js";
import { gridOf, imageSource, labelText, metadataText, visible } from "../../core/shots.js";
import { Agent, Button, Command, Empty, NameFilter, ProblemNote, Select } from "../basics.js";
import { Icon } from "../icon.js";
import { Picture } from "../picture.js";

/** Nearer to the top than this, new screenshots are shown at once. */
const TOP_PX = 40;

/** The longest side of a thumbnail, in pixels. */
const THUMB_PX = 480;

/** The longest text of a tile. */
const TILE_CHARS = 200;

export function Gallery({ session, log, scroller, agents, focus, scrollTop }) {
  const { order = "newest", agent = "", pick } = place.value.params;
  const ref = useRef();
  const [grid, setGrid] = useState();
  const [range, setRange] = useState([0, 24]);
  const entries = log.entries.value;
  const waiting = log.waiting.value.length;
  const measure = () => measured(ref.current, scroller.current, entries.length, setGrid, setRange);
  useLayoutEffect(measure, [entries.length]);
  useEffect(() => watched(ref.current, scroller.current, measure, scrollTop), [entries.length]);
  useLayoutEffect(() => {
    if (!grid || entries.length === 0) return;
    if (scrollTop.current > 0) scroller.current.scrollTop = scrollTop.current;
    if (focus.current !== undefined) ref.current?.querySelector(`[data-seq="${focus.current}"] a`)?.focus();
    focus.current = undefined;
  }, [grid !== undefined && entries.length > 0]);
  useEffect(() => {
    if (waiting > 0 && scroller.current.scrollTop < TOP_PX) log.show();
  }, [waiting]);
  useEffect(() => {
    if (grid && range[1] >= entries.length - grid.columns * 4 && log.more.value && !log.loading.value) log.load();
  }, [range, entries.length, grid, log.loading.value]);
  const showWaiting = () => {
    log.show();
    scroller.current.scrollTop = 0;
  };
  return html`<${Head} log=${log} agents=${agents} order=${order} agent=${agent} pick=${pick} />
    ${waiting > 0 && scrollTop.current >= TOP_PX && html`<div class="pill shots-new"><${Button} kind="primary" onClick=${showWaiting}>${plural(waiting, "new screenshot")} ↑<//></div>`}
    <${ProblemNote} error=${log.error.value} retry=${() => log.retry()} />
    ${entries.length === 0 && !log.loading.value && !log.error.value && html`<${Nothing} session=${session} agent=${agent} />`}
    <ol class="gallery" ref=${ref} aria-label="Screenshots" aria-busy=${String(log.loading.value)} style=${grid && { height: `${Math.ceil(entries.length / grid.columns) * grid.row}px` }}>
      ${grid && entries.slice(range[0], range[1]).map((entry, i) => html`<${Tile} key=${entry.seq} session=${session} entry=${entry} index=${range[0] + i} total=${entries.length} grid=${grid} pick=${pick} />`)}
    </ol>
    ${log.loading.value && html`<p class="muted small gallery-more" role="status">Loading…</p>`}`;
}

function measured(element, scroller, total, setGrid, setRange) {
  if (!element) return;
  const grid = gridOf(element.clientWidth);
  setGrid((before) => (before && before.columns === grid.columns && before.tile === grid.tile ? before : grid));
  const top = scroller.getBoundingClientRect().top - element.getBoundingClientRect().top;
  const [first, last] = visible(grid, total, top, scroller.clientHeight);
  setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
}

function watched(element, scroller, measure, scrollTop) {
  const scrolled = () => {
    scrollTop.current = scroller.scrollTop;
    measure();
  };
  scroller.addEventListener("scroll", scrolled, { passive: true });
  const observer = new ResizeObserver(measure);
  observer.observe(element);
  return () => {
    scroller.removeEventListener("scroll", scrolled);
    observer.disconnect();
  };
}

function Head({ log, agents, order, agent, pick }) {
  const total = log.count.value;
  return html`<div class="bar">
    <${Select} label="Order" hideLabel options=${[["newest", "Newest first"], ["oldest", "Oldest first"]]} value=${order} onChange=${(value) => setParams({ order: value === "newest" ? null : value })} />
    <${NameFilter} label="Agent" all="All agents" names=${[...agents]} name="agent" value=${agent} />
    <span class="grow"></span>
    ${pick !== undefined && html`<span class="small" role="status">Screenshot ${short(pick, 20)} is chosen; choose another to compare.</span><${Button} kind="quiet" icon="close" label="Choose none" onClick=${() => setParams({ pick: null })} />`}
    ${total !== undefined && pick === undefined && html`<span class="muted small num">${agent ? `${plural(log.entries.value.length, "screenshot")}${log.more.value ? " so far" : ""} of ${count(total)}` : plural(total, "screenshot")}</span>`}
  </div>`;
}

function Tile({ session, entry, index, total, grid, pick }) {
  const { params } = place.peek();
  const { seq, image, item, agent, at } = entry;
  const style = { width: `${grid.tile}px`, top: `${Math.floor(index / grid.columns) * grid.row}px`, left: `${(index % grid.columns) * (grid.tile + 12)}px` };
  const text = metadataText(item);
  const chosen = pick === String(seq);
  const choose = () => {
    if (chosen) return setParams({ pick: null });
    if (pick === undefined) return setParams({ pick: seq });
    return setParams({ pick: null, shot: pick, with: seq }, { replace: false });
  };
  const source = imageSource(entry);
  const facts = image ? [image.width && `${image.width} × ${image.height}`, bytes(image.bytes)].filter(Boolean).join(" · ") : source ? "kept as text" : "no image";
  return html`<li class=${cx("tile", chosen && "chosen", agent && `hue-${hue(agent)}`)} style=${style} data-seq=${seq} aria-posinset=${index + 1} aria-setsize=${total}>
    <a class="tile-image" href=${href("screenshots", session, { ...params, shot: seq, pick: null })} style=${{ height: `${Math.round(grid.tile * 0.625)}px` }} aria-label=${source && `Screenshot ${seq}${text ? `: ${short(text, 80)}` : ""}`}>
      ${source
        ? html`<${Picture} entry=${entry} px=${THUMB_PX} loading="lazy" />`
        : html`<span class="tile-label"><span class="sr-only">Screenshot ${seq}: </span><${Icon} name="screenshot" /><bdi>${short(labelText(item) || "No image is stored", TILE_CHARS)}</bdi></span>`}
    </a>
    <button type="button" class="tile-pick" aria-pressed=${String(chosen)} aria-label=${`Choose screenshot ${seq} to compare`} title="Choose to compare" onClick=${choose}><${Icon} name=${chosen ? "check" : "columns"} /></button>
    <div class="tile-line"><${Agent} name=${agent} /><span class="grow"></span><time class="num muted nowrap" datetime=${at} title=${fullTime(at)}>${time(at)}</time></div>
    <div class="tile-text truncate" title=${short(text, 500)}><bdi>${short(text || labelText(item), TILE_CHARS) || html`<span class="muted">no metadata</span>`}</bdi></div>
    <div class="tile-facts muted num truncate">#${seq} · ${facts}</div>
  </li>`;
}

function Nothing({ session, agent }) {
  if (agent) return html`<${Empty} title="No screenshot of this agent"><p>All agents' screenshots are shown without the filter.</p><//>`;
  return html`<${Empty} title="No screenshots yet">
    <p>They appear here as agents post them. To post one:</p>
    <${Command} text=${curl(board(session, "screenshots"), { method: "POST", image: "window.png" })} />
  <//>`;
}
