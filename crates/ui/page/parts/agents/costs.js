// Costs of an agent: against the session's budget, and step by step.

import { board, withQuery } from "../../core/api.js";
import { html, useMemo } from "../../core/dom.js";
import { cost, count, plural } from "../../core/format.js";
import { numberOf } from "../../core/json.js";
import { useResource } from "../../core/resource.js";
import { number } from "../../core/timeline.js";

/** The steps of the chart, the newest. */
const STEPS_MAX = 120;

const WIDTH = 600;
const HEIGHT = 72;

/** True for commits that touch an agent's memory, or its log of another name. */
export function remembers(agent, name = "memory") {
  const log = `agents/${agent}/${name}`;
  return (commit) => commit.changes.some((change) => change.log === log || change.kind === "restored" || (change.kind === "agent_removed" && change.agent === agent));
}

/** The cost and the number of steps of an agent's memory: `{spent, steps, isForeign}`. */
export function useCost(session, agent, feed) {
  const on = useMemo(() => remembers(agent), [agent]);
  const { data, error } = useResource(`${board(session, "agents", agent)}/memory/cost`, { feed, on });
  return { spent: numberOf(data?.total_cost), steps: data?.steps, isForeign: error?.status === 403 };
}

/** An agent's share of the session's budget, and a chart of its costs. */
export function Costs({ session, agent, feed, about }) {
  const { spent, steps, isForeign } = useCost(session, agent, feed);
  const on = useMemo(() => remembers(agent), [agent]);
  const query = { latest: STEPS_MAX, keys: "step,Step,cost,Cost" };
  const memory = useResource(withQuery(`${board(session, "agents", agent)}/memory`, query), { feed, on });
  return html`<section class="card agent-costs">
    <header><h3 class="grow">Cost</h3>${spent !== undefined && html`<span class="num small muted">${cost(spent)} in ${plural(steps, "step")}</span>`}</header>
    <div class="body stack">
      ${isForeign && html`<p class="muted small">The costs of another agent need the right memory:read.</p>`}
      <${Budget} about=${about} own=${spent ?? 0} />
      <${Chart} entries=${memory.data?.entries ?? []} total=${memory.data?.count ?? 0} />
    </div>
  </section>`;
}

function Budget({ about, own }) {
  const max = numberOf(about?.settings?.cost_max);
  const all = numberOf(about?.cost) ?? 0;
  if (max === undefined) {
    return html`<p class="muted small">All agents: <span class="num">${cost(all)}</span>. The session has no budget (<code>cost_max</code>).</p>`;
  }
  const share = (n) => `${Math.max(0, Math.min(100, max > 0 ? (n / max) * 100 : 100))}%`;
  const isSpent = all > max;
  return html`<div>
    <p class="row small"><span class="grow muted">${isSpent ? "Budget of the session, spent" : "Budget of the session"}</span><span class="num">${cost(all)} of ${cost(max)}</span></p>
    <div class="budget" role="meter" aria-label="Budget of the session" aria-valuemin="0" aria-valuemax=${max} aria-valuenow=${Math.min(all, max)} aria-valuetext=${`${cost(all)} of ${cost(max)}`}>
      <span class=${isSpent ? "all spent" : "all"} style=${{ width: share(all) }}></span><span class="own" style=${{ width: share(Math.min(own, all)) }}></span>
    </div>
    <p class="small muted row wrap"><span class="swatch own"></span>this agent <span class="swatch all"></span>all agents</p>
  </div>`;
}

/** Bars, one a step, the newest at the right. */
function Chart({ entries, total }) {
  const bars = entries.map(({ seq, item }) => ({ seq, step: number(item, "step"), spent: number(item, "cost") ?? 0 }));
  const most = Math.max(...bars.map((bar) => bar.spent), 0);
  if (most === 0) return total > 0 ? html`<p class="muted small">No step has a cost.</p>` : null;
  const width = Math.min(WIDTH / bars.length, 24);
  const sum = bars.reduce((all, bar) => all + bar.spent, 0);
  const name = ({ step, seq }) => (step === undefined ? `entry ${seq}` : `step ${step}`);
  const first = bars[0];
  const last = bars[bars.length - 1];
  return html`<figure class="cost-chart">
    <figcaption class="row small muted"><span class="grow">${total > bars.length ? `Last ${count(bars.length)} of ${plural(total, "step")}` : "By step"}</span><span class="num">at most ${cost(most)}</span></figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`Cost of ${plural(bars.length, "step")}: ${cost(sum)} together, at most ${cost(most)} for one`}>
      <line x1="0" x2=${WIDTH} y1=${HEIGHT - 0.5} y2=${HEIGHT - 0.5} class="axis" />
      ${bars.map((bar, i) => {
        const height = bar.spent > 0 ? Math.max(1.5, (bar.spent / most) * (HEIGHT - 4)) : 0;
        return html`<g key=${bar.seq}><rect class="hit" x=${i * width} y="0" width=${width} height=${HEIGHT}><title>${`${name(bar)}: ${cost(bar.spent)}`}</title></rect><rect class="bar-rect" x=${i * width + width * 0.12} y=${HEIGHT - height} width=${width * 0.76} height=${height} /></g>`;
      })}
    </svg>
    <div class="row small muted cost-ends" style=${{ width: `${(width * bars.length * 100) / WIDTH}%` }}><span class="grow">${name(first)}</span>${last !== first && html`<span>${name(last)}</span>`}</div>
  </figure>`;
}
