// Which request waits for which: layers from left to right, with the keyboard from node to node. Requests without links stand
// in rows below.

import { href, place } from "../../core/address.js";
import { cx, html, useEffect, useId, useMemo, useRef } from "../../core/dom.js";
import { plural, short } from "../../core/format.js";
import { details, GRAPH_MAX, layers, parted, STATES } from "../../core/tasks/tasks.js";
import { agentOfWork } from "./state.js";

const WIDTH = 196;
const HEIGHT = 46;
const GAP_X = 52;
const GAP_Y = 12;
const MARGIN = 12;
const TEXT_CHARS = 24;

/** Columns of the requests without links, if those with links have fewer. */
const COLUMNS = 4;

/** A graph of these requests. */
export function Graph({ tasks, seqs, cut, selected, version }) {
  const id = useId();
  const ref = useRef();
  const layout = useMemo(() => placed(seqs, tasks), [seqs, tasks, version]);
  const edges = useMemo(() => edgesOf(layout, tasks), [layout]);
  const { session, params } = place.value;
  useEffect(() => {
    const place = layout.at.get(selected);
    const box = ref.current;
    if (!place) return;
    // `scrollIntoView` would move what is around the box too.
    box.scrollLeft = place[0] - (box.clientWidth - WIDTH) / 2;
    if (place[1] < box.scrollTop || place[1] + HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = place[1] - MARGIN;
  }, [selected]);
  useDrag(ref);
  const key = (event) => {
    const to = next(layout, tasks, Number(event.target.closest?.("[data-seq]")?.dataset.seq), event.key);
    if (to === undefined) return;
    event.preventDefault();
    const node = ref.current.querySelector(`[data-seq="${to}"]`);
    node?.focus();
    node?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const first = selected !== undefined && layout.at.has(selected) ? selected : layout.order[0];
  return html`<div class="graph-box">
    ${cut && html`<p class="note">${plural(GRAPH_MAX, "request")} are drawn: the nearest to the selected one, or the newest, first of those with links.</p>`}
    <div class="graph" ref=${ref} role="group" aria-label="Requests and what they wait for; arrow keys move" onKeyDown=${key}>
      <svg width=${layout.width} height=${layout.height}>
        <defs><clipPath id=${`${id}-text`}><rect width=${WIDTH - 6} height=${HEIGHT} /></clipPath><marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5 8 4 0 7.5z" /></marker></defs>
        <g aria-hidden="true">${edges.map(({ from, to, d }) => html`<path key=${`${from} ${to}`} class=${cx("edge", tasks.get(from).state === "done" && "met", (from === selected || to === selected) && "near")} d=${d} marker-end=${`url(#${id})`} />`)}</g>
        ${layout.order.map((seq) => html`<${Node} key=${seq} task=${tasks.get(seq)} said=${details(tasks.get(seq), tasks).join("; ")} at=${layout.at.get(seq)} href=${href("tasks", session, { ...params, request: seq, open: null })} isSelected=${seq === selected} isFirst=${seq === first} clip=${`url(#${id}-text)`} />`)}
      </svg>
    </div>
  </div>`;
}

function Node({ task, said, at: [x, y], href: address, isSelected, isFirst, clip }) {
  const { seq, text, state } = task;
  const name = short(text || "(no text)", TEXT_CHARS);
  const agent = state === "done" ? undefined : agentOfWork(task);
  const sub = `#${seq} · ${STATES[state]}${agent ? ` · ${short(agent, 14)}` : ""}`;
  const label = `${name} ${sub}${said && `; ${said}`}`;
  return html`<a class=${cx("node", `task-${state}`, isSelected && "selected")} href=${address} data-seq=${seq} aria-label=${label} aria-current=${isSelected ? "true" : undefined} tabindex=${isFirst ? 0 : -1} transform=${`translate(${x} ${y})`}>
    <title>${`#${seq} ${short(text, 240)}${said && `\n${said}`}`}</title>
    <rect width=${WIDTH} height=${HEIGHT} rx="6" />
    <rect class="edge-of" width="4" height=${HEIGHT} rx="2" />
    <text x="14" y="18" class="name" clip-path=${clip}>${name}</text>
    <text x="14" y="35" class="sub" clip-path=${clip}>${sub}</text>
  </a>`;
}

/** Places of requests: `{at: Map of seq to [x, y], layers, order, width, height}`. The layers are the columns from top to bottom. */
function placed(seqs, tasks) {
  const { linked, alone } = parted(seqs, tasks);
  const found = layers(linked, tasks);
  const tallest = Math.max(0, ...found.map((layer) => layer.length));
  const at = new Map();
  const put = (seq, column, row) => at.set(seq, [MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)]);
  found.forEach((layer, column) => layer.forEach((seq, row) => put(seq, column, (tallest - layer.length) / 2 + row)));
  const columns = Math.max(found.length, Math.min(COLUMNS, alone.length));
  alone.forEach((seq, i) => {
    put(seq, i % columns, tallest + Math.floor(i / columns));
    (found[i % columns] ??= []).push(seq);
  });
  const rows = tallest + Math.ceil(alone.length / columns);
  return { at, layers: found, order: found.flat(), height: rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN, width: columns * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN };
}

function edgesOf({ at, layers: found }, tasks) {
  const column = new Map(found.flatMap((layer, i) => layer.map((seq) => [seq, i])));
  const edges = [];
  for (const [to, [tx, ty]] of at) {
    for (const from of tasks.get(to)?.after ?? []) {
      if (!at.has(from)) continue;
      const [fx, fy] = at.get(from);
      let point = [fx + WIDTH, fy + HEIGHT / 2];
      let d = `M${point.join(" ")}`;
      // An edge over several layers goes between the nodes of those.
      for (let i = column.get(from) + 1; i < column.get(to); i += 1) {
        const wanted = point[1] + (ty + HEIGHT / 2 - point[1]) / (column.get(to) - i + 1);
        const y = gap(found[i].map((seq) => at.get(seq)[1]), wanted);
        const x = MARGIN + i * (WIDTH + GAP_X);
        d += `${curve(point, [x, y])}H${x + WIDTH}`;
        point = [x + WIDTH, y];
      }
      edges.push({ from, to, d: d + curve(point, [tx - 2, ty + HEIGHT / 2]) });
    }
  }
  return edges;
}

function curve([x1, y1], [x2, y2]) {
  const bend = (x2 - x1) / 2;
  return `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** The free height nearest to the wanted one in a column whose nodes begin at `tops`. */
function gap(tops, wanted) {
  const free = [tops[0] - GAP_Y / 2, ...tops.map((top) => top + HEIGHT + GAP_Y / 2)];
  if (wanted < free[0] || wanted > free[free.length - 1]) return wanted;
  return free.reduce((best, y) => (Math.abs(y - wanted) < Math.abs(best - wanted) ? y : best));
}

/** The node that an arrow key leads to. */
function next({ layers: found, at }, tasks, seq, key) {
  const column = found.findIndex((layer) => layer.includes(seq));
  if (column < 0) return undefined;
  const layer = found[column];
  const row = layer.indexOf(seq);
  if (key === "ArrowDown") return layer[row + 1];
  if (key === "ArrowUp") return layer[row - 1];
  if (key === "ArrowLeft") return (tasks.get(seq)?.after ?? []).find((before) => at.has(before)) ?? nearest(found[column - 1], at, seq);
  if (key === "ArrowRight") return found.slice(column + 1).flat().find((other) => tasks.get(other)?.after?.includes(seq)) ?? nearest(found[column + 1], at, seq);
  return undefined;
}

function nearest(layer = [], at, seq) {
  const y = at.get(seq)[1];
  return [...layer].sort((a, b) => Math.abs(at.get(a)[1] - y) - Math.abs(at.get(b)[1] - y))[0];
}

/** Lets one drag the graph by its background. */
function useDrag(ref) {
  useEffect(() => {
    const box = ref.current;
    const down = (event) => {
      if (event.button !== 0 || event.pointerType !== "mouse" || event.target.closest("a")) return;
      const from = { x: event.clientX + box.scrollLeft, y: event.clientY + box.scrollTop };
      box.setPointerCapture(event.pointerId);
      const move = (moved) => {
        box.scrollLeft = from.x - moved.clientX;
        box.scrollTop = from.y - moved.clientY;
      };
      const up = () => {
        box.removeEventListener("pointermove", move);
        box.removeEventListener("pointerup", up);
      };
      box.addEventListener("pointermove", move);
      box.addEventListener("pointerup", up);
    };
    box.addEventListener("pointerdown", down);
    return () => box.removeEventListener("pointerdown", down);
  }, []);
}
