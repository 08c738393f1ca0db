// An agent's statuses as a diagram: legal moves as arrows, the present one lit, the way before it marked.

import { cx, html, useId, useMemo } from "../../core/dom.js";
import { arrow, moves, nextOf, placed, statuses } from "../../core/statuses.js";

/** The most statuses that are drawn; beyond, those next to the present one. */
const DRAWN_MAX = 32;

/** Characters of a name in its box. */
const NAME_CHARS = 14;

export function Diagram({ status, states, past }) {
  const id = useId();
  const drawn = useMemo(() => drawnOf(status, states), [status, states]);
  const layout = useMemo(() => placed(drawn), [drawn]);
  const arrows = useMemo(() => moves(states).filter(([from, to]) => layout.at.has(from) && layout.at.has(to)), [states, layout]);
  const gone = new Map(past.map(({ from, to }, i) => [`${from} ${to}`, i]).reverse());
  const next = nextOf(status, states);
  const visited = new Set(past.flatMap(({ from, to }) => [from, to]));
  const kind = (from, to) => (gone.has(`${from} ${to}`) ? "gone" : from === status ? "next" : "other");
  const order = { other: 0, gone: 1, next: 2 };
  const sorted = [...arrows].sort((a, b) => order[kind(...a)] - order[kind(...b)]);
  const label = `Status ${status}. Next may be ${next.join(", ") || "none"}.`;
  return html`<div class="diagram" tabindex="0" role="group" aria-label="State diagram">
    <svg viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label=${label} style=${{ minWidth: `${Math.min(330, layout.width)}px` }}>
      <defs>${["other", "gone", "next"].map((name) => html`<marker id=${`${id}-${name}`} class=${name} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5 8 4 0 7.5z" /></marker>`)}</defs>
      ${sorted.map(([from, to]) => {
        const name = kind(from, to);
        return html`<path key=${`${from} ${to}`} class=${cx("move", name)} d=${arrow(layout.at.get(from), layout.at.get(to), layout.box)} marker-end=${`url(#${id}-${name})`}><title>${`${from} → ${to}`}</title></path>`;
      })}
      ${drawn.map((name) => html`<${Box} key=${name} name=${name} at=${layout.at.get(name)} box=${layout.box} isPresent=${name === status} isNext=${next.includes(name)} wasPast=${visited.has(name)} />`)}
    </svg>
  </div>`;
}

/** The statuses that are drawn: all, or those near the present one where there are many. */
function drawnOf(status, states) {
  const all = statuses(states);
  if (!all.includes(status)) all.push(status);
  if (all.length <= DRAWN_MAX) return all;
  const near = new Set([status, ...nextOf(status, states)]);
  return [...all.slice(0, 7), ...all.slice(7).filter((name) => near.has(name))].slice(0, DRAWN_MAX);
}

function Box({ name, at: [x, y], box, isPresent, isNext, wasPast }) {
  const shown = name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name;
  return html`<g class=${cx("state-box", name, isPresent && "present", isNext && "next", wasPast && "was")} transform=${`translate(${x - box.width / 2} ${y - box.height / 2})`}>
    <rect width=${box.width} height=${box.height} rx="6" />
    <text x=${box.width / 2} y=${box.height / 2 + 4} text-anchor="middle">${shown}<title>${name}</title></text>
  </g>`;
}
