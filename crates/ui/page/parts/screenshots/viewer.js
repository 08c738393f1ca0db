// One screenshot large, or two side by side, with what is known of it.

import { board, get, Problem } from "../../core/api.js";
import { href, place, setParams } from "../../core/address.js";
import { cx, html, useEffect, useRef, useState } from "../../core/dom.js";
import { short } from "../../core/format.js";
import { useRead } from "../../core/resource.js";
import { held, zoomed } from "../../core/shots.js";
import { Button, ButtonLink, isTyping, ProblemNote, Skeleton } from "../basics.js";
import { ShotFacts } from "./facts.js";
import { Pane } from "./pane.js";

/** The zoom of a button or key, and how far Shift and an arrow move the image, in pixels. */
const ZOOM_STEP = 1.25;
const PAN_PX = 80;

export function Viewer({ session, feed, onClose }) {
  const { shot, with: other, diff, agent } = place.value.params;
  const first = useShot(session, shot, agent, feed.head.value);
  const second = useShot(session, other, agent, feed.head.value);
  const [view, setView] = useState();
  const root = useRef();
  useEffect(() => root.current.focus({ preventScroll: true }), []);
  const move = (step) => {
    const to = step < 0 ? first.earlier : first.later;
    if (to !== undefined) setParams({ shot: to });
  };
  const zoom = (factor) => setView(held(zoomed(viewOf(root.current, view), factor), { width: 1e5, height: 1e5 }, { width: 0, height: 0 }));
  const pan = (x, y) => setView(((now) => ({ ...now, x: now.x + x, y: now.y + y }))(viewOf(root.current, view)));
  const actual = () => setView({ scale: 1 / devicePixelRatio, x: 0, y: 0 });
  const compare = () => setParams({ with: first.earlier ?? first.later, diff: null });
  useViewerKeys({ move, zoom, pan, fit: () => setView(undefined), onClose, other, toggle: () => other && setParams({ diff: diff ? null : 1 }) });
  const both = other !== undefined;
  return html`<div class=${cx("viewer", both && "viewer-both")} ref=${root} tabindex="-1" aria-label=${`Screenshot ${short(shot, 20)}`}>
    <div class="bar viewer-bar">
      <${Button} icon="left" onClick=${onClose} label="Back to all screenshots (Esc)">All<//>
      <span class="row viewer-steps"><${Button} icon="left" label="Earlier screenshot (←)" disabled=${first.earlier === undefined} onClick=${() => move(-1)} />
      <strong class="num">#${short(shot, 20)}</strong>
      <${Button} icon="right" label="Later screenshot (→)" disabled=${first.later === undefined} onClick=${() => move(1)} /></span>
      ${both && html`<span class="row viewer-steps"><span class="muted">with</span><${Button} icon="left" label="Compare with an earlier screenshot" disabled=${second.earlier === undefined} onClick=${() => setParams({ with: second.earlier })} />
        <strong class="num">#${short(other, 20)}</strong>
        <${Button} icon="right" label="Compare with a later screenshot" disabled=${second.later === undefined} onClick=${() => setParams({ with: second.later })} /></span>`}
      <span class="grow"></span>
      <span class="row">${view && html`<span class="muted small num">${Math.round(view.scale * 100)} %</span>`}<${Button} aria-pressed=${String(!view)} label="Fit (0)" onClick=${() => setView(undefined)}>Fit<//>
        <${Button} label="One image pixel on one screen pixel" onClick=${actual}>100 %<//>
        <${Button} class="zoom-step" label="Zoom out (−)" onClick=${() => zoom(1 / ZOOM_STEP)}>−<//><${Button} icon="plus" label="Zoom in (+)" onClick=${() => zoom(ZOOM_STEP)} /></span>
      ${both
        ? html`<${Button} aria-pressed=${String(Boolean(diff))} label="Show where both differ (d)" onClick=${() => setParams({ diff: diff ? null : 1 })}>Difference<//><${Button} icon="close" onClick=${() => setParams({ with: null, diff: null })}>One<//>`
        : html`<${Button} icon="columns" disabled=${first.earlier === undefined && first.later === undefined} label="Show two side by side" onClick=${compare}>Compare<//>`}
    </div>
    <div class="viewer-body">
      <div class="panes">
        ${first.error && html`<${Missing} error=${first.error} session=${session} shot=${shot} />`}
        ${second.error && html`<${Missing} error=${second.error} session=${session} shot=${other} />`}
        ${!first.entry && !first.error && html`<${Skeleton} />`}
        ${first.entry && html`<${Pane} entry=${first.entry} over=${diff ? second.entry : undefined} view=${view} onView=${setView} label=${`Screenshot ${first.entry.seq}${diff && other ? ` and ${other}: difference` : ""}`} />`}
        ${!diff && second.entry && html`<${Pane} entry=${second.entry} view=${view} onView=${setView} label=${`Screenshot ${second.entry.seq}`} />`}
      </div>
      <aside class="viewer-side" aria-label="About this screenshot">
        ${first.entry && html`<${ShotFacts} key=${first.entry.seq} session=${session} entry=${first.entry} around=${!both} />`}
        ${both && second.entry && html`<${ShotFacts} key=${`with ${second.entry.seq}`} session=${session} entry=${second.entry} around=${false} />`}
      </aside>
    </div>
  </div>`;
}

function Missing({ error, session, shot }) {
  if (error.status !== 404) return html`<${ProblemNote} error=${error} />`;
  return html`<div class="stack pane-note"><p>Screenshot ${short(shot, 40)} does not exist now. It may have been deleted; the history still has it.</p>
    <div class="row"><${ButtonLink} icon="past" href=${href("past", session)}>Past<//></div></div>`;
}

/** The view that a pane shows now; to fit, it is the pane that computed it. */
function viewOf(root, view) {
  const fitted = Number(root.querySelector(".pane")?.dataset.scale ?? 1);
  return view ?? { scale: fitted, x: 0, y: 0 };
}

/** An entry with the seqs of its neighbours: `{entry, earlier, later, error}`. */
function useShot(session, seq, agent, head) {
  // The image before stays until the next one is there.
  const { value: entry, error } = useRead(async (signal) => seq && load(session, seq, signal), [session, seq], true);
  const last = useRef();
  const { value: [earlier, later] = [] } = useRead(async (signal) => {
    if (!/^\d+$/.test(seq ?? "")) return [];
    const next = async (query) => (await get(board(session, "screenshots"), { query: { limit: 1, agent, keys: "[]", ...query }, signal })).body.entries[0]?.seq;
    return Promise.all([next({ before: seq, order: "desc" }), next({ after: seq })]);
  }, [session, seq, agent, last.current === undefined ? head : 0]);
  last.current = later;
  return { entry: seq && !error ? entry : undefined, error: seq && error, earlier, later };
}

async function load(session, seq, signal) {
  if (!/^\d+$/.test(seq)) throw new Problem(404, { detail: "a screenshot's address has its number", code: "entry-not-found" });
  return (await get(board(session, "screenshots", seq), { signal })).body;
}

function useViewerKeys(actions) {
  const latest = useRef();
  latest.current = actions;
  useEffect(() => {
    const key = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector("dialog[open], .drawer:focus-within")) return;
      const { move, zoom, pan, fit, onClose, toggle } = latest.current;
      const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (arrows && event.shiftKey) pan(-arrows[0] * PAN_PX, -arrows[1] * PAN_PX);
      else if (arrows && arrows[0] !== 0) move(arrows[0]);
      else if (event.key === "+" || event.key === "=") zoom(ZOOM_STEP);
      else if (event.key === "-") zoom(1 / ZOOM_STEP);
      else if (event.key === "0") fit();
      else if (event.key === "d") toggle();
      else if (event.key === "Escape") onClose();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}
