// An agent's memory: its steps as cards, the latest first, page by page.

import { board, withQuery } from "../../core/api.js";
import { href, place } from "../../core/address.js";
import { html, useMemo } from "../../core/dom.js";
import { cost, count, hue, plural, seconds, short } from "../../core/format.js";
import { useResource } from "../../core/resource.js";
import { itemText, member, number } from "../../core/timeline.js";
import { ButtonLink, ProblemNote, Skeleton, Status, Time } from "../basics.js";
import { openHref } from "../entry.js";
import { remembers } from "./costs.js";

/** Steps of one page. */
const PAGE = 30;

/** The longest text of a card's field; the drawer has it whole. */
const FIELD_CHARS = 500;

const FIELDS = ["Observation", "Thought", "Action", "Results", "Comment"];

export function Memory({ session, agent, feed }) {
  const { before } = place.value.params;
  const on = useMemo(() => remembers(agent), [agent]);
  const path = withQuery(`${board(session, "agents", agent)}/memory`, { order: "desc", limit: PAGE, before });
  const { data, error, loading, refresh } = useResource(path, { feed, on });
  const isForeign = error?.status === 403;
  return html`<section class="agent-memory" aria-label="Memory">
    <header class="row"><h3 class="grow">Memory ${data && html`<span class="muted small">${plural(data.count, "step")}, the latest first</span>`}</h3></header>
    ${isForeign && html`<p class="foreign">The memory of an agent is its own. Reading it here needs the right <code>memory:read</code>.</p>`}
    ${error && !isForeign && html`<${ProblemNote} error=${error} retry=${refresh} />`}
    ${loading && html`<${Skeleton} lines=${6} />`}
    ${data && !isForeign && data.entries.length === 0 && html`<p class="muted">${before ? "No older step." : "Nothing is remembered yet."}</p>`}
    ${data && !isForeign && html`<ol class="steps">${data.entries.map((entry) => html`<${Step} key=${entry.seq} agent=${agent} entry=${entry} />`)}</ol>
      <${Pages} session=${session} data=${data} before=${before} />`}
  </section>`;
}

function Pages({ session, data, before }) {
  const { params } = place.value;
  if (!before && !data.more) return null;
  return html`<nav class="row" aria-label="Pages of the memory">
    ${before && html`<${ButtonLink} icon="up" href=${href("agents", session, { ...params, before: null })}>Latest steps<//>`}
    ${data.more && html`<${ButtonLink} icon="down" href=${href("agents", session, { ...params, before: data.next })}>Older steps<//>`}
  </nav>`;
}

function Step({ agent, entry }) {
  const { seq, at, item } = entry;
  const step = number(item, "step");
  const spent = number(item, "cost");
  const took = number(item, "duration", "time_cost", "total_time_cost");
  const status = member(item, "status");
  const fields = FIELDS.map((name) => [name, member(item, name)]).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<li class=${`step card hue-${hue(agent)}`}>
    <a class="step-head" href=${openHref(`agents/${agent}/memory/${seq}`)}>
      <strong>${step === undefined ? `Entry ${count(seq)}` : `Step ${step}`}</strong>
      <${Status} value=${typeof status === "string" ? short(status, 24) : undefined} />
      <span class="grow"></span>
      ${spent !== undefined && spent > 0 && html`<span class="num small muted">${cost(spent)}</span>`}
      ${took !== undefined && html`<span class="num small muted">${seconds(took)}</span>`}
      <${Time} at=${at} />
    </a>
    ${fields.length > 0
      ? html`<dl class="facts">${fields.map(([name, value]) => html`<dt>${name}</dt><dd class=${name === "Action" || name === "Results" ? "mono" : undefined}>${short(typeof value === "string" ? value : JSON.stringify(value), FIELD_CHARS)}</dd>`)}</dl>`
      : html`<p>${short(itemText(`agents/${agent}/memory`, item), FIELD_CHARS)}</p>`}
  </li>`;
}
