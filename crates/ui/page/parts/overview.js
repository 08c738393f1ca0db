// Beside the timeline: who works, what is claimed, which results wait for a verdict, and steps, durations and costs by agent.

import { board } from "../core/api.js";
import { href } from "../core/address.js";
import { html } from "../core/dom.js";
import { useFold } from "../core/feed.js";
import { cost, count, hue, seconds, short } from "../core/format.js";
import { touches, useResource } from "../core/resource.js";
import { agentOf, itemText, number, ownedLog } from "../core/timeline.js";
import { Agent, Ago, Status } from "./basics.js";
import { openHref } from "./entry.js";
import { Left } from "./tasks/state.js";

/** The most agents and claims that are listed here; their views have all. */
const LISTED_MAX = 12;

export function Overview({ session, feed }) {
  const agents = useResource(`${board(session, "agents")}?seen=true`, { feed, on: touches({ agents: true }), cache: "no-store" });
  const requests = useResource(`${board(session, "requests")}?latest=200`, { feed, on: touches({ logs: ["requests"] }) });
  const byAgent = useFold(feed, () => new Map(), addTotals);
  const totals = [...byAgent.values()].map(total).sort((a, b) => b.steps - a.steps).slice(0, LISTED_MAX);
  const reviews = useResource(`${board(session, "requests")}?in_review=true&limit=${LISTED_MAX}`, { feed, on: touches({ logs: ["requests"] }) });
  const inReview = reviews.data?.entries ?? [];
  const claims = (requests.data?.entries ?? []).filter((entry) => entry.claim);
  return html`<aside class="overview" aria-label="Overview">
    <section>
      <h2><a href=${href("agents", session)}>Agents</a></h2>
      ${(agents.data?.agents ?? []).slice(0, LISTED_MAX).map((one) => html`<div class="overview-row" key=${one.agent}>
        <${Agent} name=${one.agent} /><${Status} value=${one.status} /><span class="muted small nowrap"><${Ago} at=${one.last_seen ?? one.updated_at} /></span>
      </div>`)}
      ${agents.data?.agents.length === 0 && html`<p class="muted small">No agent is registered.</p>`}
    </section>
    <section>
      <h2><a href=${href("tasks", session)}>Claimed now</a></h2>
      ${claims.slice(0, LISTED_MAX).map((entry) => html`<div class="claim" key=${entry.seq}>
        <a href=${openHref(`requests/${entry.seq}`)}>${short(itemText("requests", entry.item), 80)}</a>
        <span class="row small muted"><${Agent} name=${entry.claim.agent} /> <${Left} until=${entry.claim.expires_at} /></span>
      </div>`)}
      ${claims.length === 0 && html`<p class="muted small">No request is claimed.</p>`}
    </section>
    ${inReview.length > 0 && html`<section>
      <h2><a href=${href("tasks", session, { state: "in_review" })}>In review</a></h2>
      ${inReview.map((entry) => html`<div class="claim" key=${entry.seq}>
        <a href=${href("tasks", session, { state: "in_review", request: entry.seq })}>${short(itemText("requests", entry.item), 80)}</a>
        <span class="row small muted"><${Agent} name=${entry.in_review.agent} /> <${Ago} at=${entry.in_review.at} /></span>
      </div>`)}
    </section>`}
    <section>
      <h2>By agent <span class="muted small">in what is loaded</span></h2>
      <${Bars} title="Steps" totals=${totals} of="steps" text=${count} />
      <${Bars} title="Time" totals=${totals} of="took" text=${seconds} />
      <${Bars} title="Cost" totals=${totals} of="spent" text=${cost} />
    </section>
  </aside>`;
}

function addTotals(byAgent, commits) {
  for (const commit of commits) {
    for (const change of commit.changes) {
      const owned = change.kind === "appended" ? ownedLog(change.log) : undefined;
      const memory = owned?.name === "memory" ? owned.agent : undefined;
      if (change.kind !== "appended" || (memory === undefined && change.log !== "trajectories")) continue;
      for (const { item } of change.entries ?? []) {
        const name = memory ?? commit.agent ?? agentOf(item) ?? "";
        const sum = byAgent.get(name) ?? { name, step: { n: 0, took: 0, spent: 0 }, memory: { n: 0, took: 0, spent: 0 } };
        const of = memory === undefined ? sum.step : sum.memory;
        of.n += 1;
        of.took += number(item, "duration", "time_cost", "total_time_cost") ?? 0;
        of.spent += number(item, "cost") ?? 0;
        byAgent.set(name, sum);
      }
    }
  }
}

/** What an agent's steps say, or else its memories: many agents write the same to both. */
function total({ name, step, memory }) {
  return { name, steps: step.n || memory.n, took: step.took || memory.took, spent: step.spent || memory.spent };
}

/** Horizontal bars, one an agent. */
function Bars({ title, totals, of, text }) {
  const most = Math.max(...totals.map((one) => one[of]), 0);
  if (most === 0) return null;
  return html`<figure class="bars"><figcaption>${title}</figcaption>
    <div class="bars-rows">${totals.map((one) => html`<div class="bars-row hue-${hue(one.name)}" key=${one.name}>
      <${Agent} name=${one.name} /><span class="bars-track"><span class="bars-bar" style=${{ width: `${Math.max(1, (one[of] / most) * 100)}%` }}></span></span><span class="num small">${text(one[of])}</span>
    </div>`)}</div>
  </figure>`;
}
