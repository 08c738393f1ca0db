// The board as it was at a revision: logs with their latest items, agents, state.

import { board, withQuery } from "../../core/api.js";
import { href } from "../../core/address.js";
import { html } from "../../core/dom.js";
import { bytes, count, short } from "../../core/format.js";
import { LOGS } from "../../core/past.js";
import { touches, useResource } from "../../core/resource.js";
import { imageSource } from "../../core/shots.js";
import { itemText, statusOf } from "../../core/timeline.js";
import { Agent, Skeleton, Status, Time } from "../basics.js";
import { openHref } from "../entry.js";
import { Json } from "../json.js";
import { Picture } from "../picture.js";
import { RequestState } from "../tasks/state.js";
import { PastProblem } from "./problem.js";

/** The newest entries of each log, and the agents, that are shown. */
const LATEST = 6;
const AGENTS_MAX = 100;

/** The characters of the state that are shown at first. */
const STATE_CHARS = 20_000;

export function PastBoard({ session, at, feed, oldest }) {
  const live = at === undefined;
  const state = useResource(withQuery(board(session, "state"), { at }), { feed, on: live ? touches({ state: true }) : undefined });
  const problem = state.error;
  if (problem && !state.data) return html`<${PastProblem} error=${problem} oldest=${oldest} retry=${state.refresh} />`;
  return html`<div class="past-board">
    <div class="past-logs">${LOGS.map((log) => html`<${Log} key=${log} session=${session} log=${log} at=${at} feed=${feed} />`)}</div>
    <div class="past-rest">
      <${Agents} session=${session} at=${at} feed=${feed} />
      <section class="card"><header><h2 class="grow"><a href=${href("state", session, { at })}>State</a></h2>${state.text && html`<span class="muted small num">${bytes(state.text.length)}</span>`}</header>
        <div class="body">${state.text ? html`<${Json} text=${state.text.trimEnd()} max=${STATE_CHARS} />` : html`<${Skeleton} />`}</div>
      </section>
    </div>
  </div>`;
}

function Log({ session, log, at, feed }) {
  const live = at === undefined;
  const { data, error } = useResource(withQuery(board(session, log), { latest: LATEST, at }), { feed, on: live ? touches({ logs: [log], kinds: ["cleared"] }) : undefined });
  const entries = [...(data?.entries ?? [])].reverse();
  return html`<section class="card" aria-label=${log}>
    <header><h2 class="grow capital">${log}</h2><span class="badge num">${data ? count(data.count) : "…"}</span></header>
    <div class="body">
      <${PastProblem} error=${error} />
      ${!data && !error && html`<${Skeleton} lines=${3} />`}
      ${data && entries.length === 0 && html`<p class="muted small">No entries.</p>`}
      <ol class="past-entries">${entries.map((entry) => html`<li key=${entry.seq} class="past-entry">
        ${imageSource(entry) && html`<a href=${openHref(`${log}/${entry.seq}`)} tabindex="-1" aria-hidden="true"><${Picture} entry=${entry} px=${160} loading="lazy" width="64" height="40" /></a>`}
        <div class="grow"><a class="past-text" href=${openHref(`${log}/${entry.seq}`)}>${short(itemText(log, entry.item) || `${log} ${entry.seq}`, 220)}</a>
          <div class="row wrap small past-line"><span class="muted num nowrap">#${entry.seq}</span><${Agent} name=${entry.agent} />${log === "requests" ? html`<${RequestState} entry=${entry} />` : html`<${Status} value=${statusOf(entry)} />`}<span class="grow"></span><${Time} at=${entry.at} /></div>
        </div>
      </li>`)}</ol>
    </div>
  </section>`;
}

function Agents({ session, at, feed }) {
  const live = at === undefined;
  const { data, error } = useResource(withQuery(board(session, "agents"), { at, limit: AGENTS_MAX }), { feed, on: live ? touches({ agents: true }) : undefined });
  const agents = data?.agents ?? [];
  return html`<section class="card" aria-label="Agents"><header><h2 class="grow">Agents</h2><span class="badge num">${data ? count(data.count ?? agents.length) : "…"}</span></header>
    <div class="body">
      <${PastProblem} error=${error} />
      ${data && agents.length === 0 && html`<p class="muted small">No agent was registered.</p>`}
      ${agents.map((one) => html`<a class="past-agent" key=${one.agent} href=${openHref(`agents/${one.agent}`)}><${Agent} name=${one.agent} /><span class="grow"></span><${Status} value=${one.status} /></a>`)}
      ${data?.more && html`<p class="muted small">The first ${AGENTS_MAX} are shown.</p>`}
    </div>
  </section>`;
}
