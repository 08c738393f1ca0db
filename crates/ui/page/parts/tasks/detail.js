// One request: who works on it, its attempts, result or reason, what it waits for, and what can be done.

import { board, post, remove, rights } from "../../core/api.js";
import { absolute, href, place, setParams } from "../../core/address.js";
import { html, useMemo } from "../../core/dom.js";
import { fullTime } from "../../core/format.js";
import { memberText } from "../../core/tasks/rawjson.js";
import { useResource } from "../../core/resource.js";
import { changed, connected, stateOf } from "../../core/tasks/tasks.js";
import { Agent, Ago, attempt, Button, ButtonLink, Copy, Empty, ProblemNote, Skeleton } from "../basics.js";
import { openHref } from "../entry.js";
import { Json } from "../json.js";
import { Graph } from "./graph.js";
import { attempts, Left, TaskState } from "./state.js";

/** The longest text that the detail shows; the drawer has the whole item. */
const JSON_CHARS = 4000;

/** Links to other requests in one line. */
const LINKS_MAX = 30;

export function TaskDetail({ session, seq, feed, requests, version, waiting, onAfter }) {
  const task = requests.tasks.get(seq);
  const on = (commit) => changed([commit]).all || changed([commit]).seqs.has(seq);
  const { data: entry, text, error, loading, refresh } = useResource(board(session, "requests", String(seq)), { feed, on });
  const close = () => setParams({ request: null });
  const isGone = error?.status === 404;
  return html`<section class="task-detail" aria-label=${`Request ${seq}`}>
    <header class="row wrap">
      <${Button} icon="left" label="All requests" kind="quiet" onClick=${close} />
      <h2 class="nowrap">Request ${seq}</h2>
      ${entry && !isGone && html`<${TaskState} state=${task?.state ?? stateOf(entry)} />`}
      <span class="grow"></span>
      ${entry && !isGone && html`<${ButtonLink} icon="timeline" href=${href("timeline", session, { around: entry.revision })}>Timeline<//>
        <${ButtonLink} icon="state" href=${openHref(`requests/${seq}`)}>JSON<//>`}
      <${Copy} icon="link" label="Copy link" text=${() => absolute(href("tasks", session, { request: seq }))} />
    </header>
    ${loading && html`<${Skeleton} />`}
    ${isGone ? html`<${Empty} title="The request is not there">It was deleted.<//>` : html`<${ProblemNote} error=${error} retry=${refresh} />`}
    ${entry && !isGone && html`
      <${Actions} session=${session} entry=${entry} refresh=${refresh} onAfter=${onAfter} />
      <${Facts} session=${session} entry=${entry} blocked=${task?.blocked_by ?? entry.blocked_by ?? []} waiting=${waiting.get(seq) ?? []} />
      <${Outcome} entry=${entry} text=${text} />
      <section class="stack"><h3>Item</h3><${Json} text=${memberText(text, "item")} max=${JSON_CHARS} /></section>
      <${Near} requests=${requests} version=${version} waiting=${waiting} seq=${seq} />`}
  </section>`;
}

function Actions({ session, entry, refresh, onAfter }) {
  const { mayWrite, agent } = rights.value;
  if (!mayWrite) return null;
  const path = board(session, "requests", String(entry.seq));
  const retry = () => attempt(async () => {
    await post(`${path}/retry`);
    refresh();
  }, `Request ${entry.seq} can be claimed again`);
  const release = () => attempt(async () => {
    await remove(`${path}/claim`);
    refresh();
  }, "The claim is given back");
  return html`<div class="row wrap">
    ${entry.failed && html`<${Button} icon="restore" kind="primary" onClick=${retry}>Retry<//>`}
    ${entry.claim && entry.claim.agent === agent && html`<${Button} icon="restore" onClick=${release}>Release the claim<//>`}
    <${Button} icon="plus" onClick=${onAfter}>New request after this<//>
  </div>`;
}

function Facts({ session, entry, blocked, waiting }) {
  const { claim } = entry;
  return html`<dl class="facts">
    <dt>Made</dt><dd title=${fullTime(entry.at)}><${Ago} at=${entry.at} /> by <${Agent} name=${entry.agent} /></dd>
    ${entry.updated_at && html`<dt>Changed</dt><dd title=${fullTime(entry.updated_at)}><${Ago} at=${entry.updated_at} />${entry.updated_by && html` by <${Agent} name=${entry.updated_by} />`}</dd>`}
    ${claim && html`<dt>Claim</dt><dd class="row wrap"><${Agent} name=${claim.agent} /> <${Left} until=${claim.expires_at} /> <span class="muted">fence <span class="num">${claim.fence}</span></span></dd>`}
    ${(entry.attempts !== undefined || entry.failures > 0) && html`<dt>Attempts</dt><dd>${attempts(entry)}</dd>`}
    ${entry.after?.length > 0 && html`<dt>After</dt><dd><${Links} session=${session} seqs=${entry.after} open=${blocked} /></dd>`}
    ${waiting.length > 0 && html`<dt>Waited for by</dt><dd><${Links} session=${session} seqs=${waiting} open=${[]} /></dd>`}
  </dl>`;
}

/** Links to requests; those that are not done yet stand out. */
function Links({ session, seqs, open }) {
  const { params } = place.value;
  const shown = seqs.slice(0, LINKS_MAX);
  return html`<span class="task-links">${shown.map((seq) => html`<a key=${seq} class=${open.includes(seq) ? "not-done" : undefined} title=${open.includes(seq) ? "not done yet" : undefined} href=${href("tasks", session, { ...params, request: seq })}>#${seq}</a>`)}${seqs.length > shown.length && html`<span class="muted">and ${seqs.length - shown.length} more</span>`}</span>`;
}

function Outcome({ entry: { done, failed }, text }) {
  if (done) {
    return html`<section class="outcome good"><h3>Done <span class="small muted">by <${Agent} name=${done.agent} /> <${Ago} at=${done.at} />, fence <span class="num">${done.fence}</span></span></h3>
      ${done.result !== undefined && html`<${Text} value=${done.result} text=${memberText(memberText(text, "done"), "result")} />`}</section>`;
  }
  if (failed) {
    return html`<section class="outcome bad"><h3>Failed <span class="small muted">${failed.agent && html`by <${Agent} name=${failed.agent} />`} <${Ago} at=${failed.at} /></span></h3>
      ${failed.reason !== undefined ? html`<${Text} value=${failed.reason} text=${memberText(memberText(text, "failed"), "reason")} />` : html`<p class="muted small">No reason was given.</p>`}</section>`;
  }
  return null;
}

/** A result or reason: a short text as it is, else as JSON. */
function Text({ value, text }) {
  if (typeof value === "string" && value.length <= JSON_CHARS) return html`<p class="outcome-text">${value}</p>`;
  return html`<${Json} text=${text} max=${JSON_CHARS} />`;
}

/** The graph of the requests around this one; the whole graph beside it makes it needless. */
function Near({ requests, version, waiting, seq }) {
  const { tasks } = requests;
  const { seqs, cut } = useMemo(() => (tasks.has(seq) ? connected(tasks, waiting, seq) : { seqs: [] }), [tasks, version, seq]);
  if (seqs.length < 2 || place.value.params.show === "graph") return null;
  return html`<section class="stack"><h3>Waits and is waited for</h3><${Graph} tasks=${tasks} seqs=${seqs} cut=${cut} selected=${seq} version=${version} /></section>`;
}
