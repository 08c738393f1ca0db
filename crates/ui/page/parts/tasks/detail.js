// One request: who works on it, its result or reason, its past attempts, what it waits for, and what can be done.

import { board, post, remove, rights, writer } from "../../core/api.js";
import { absolute, href, place, setParams } from "../../core/address.js";
import { html, useMemo, useState } from "../../core/dom.js";
import { brief, fullTime, seconds } from "../../core/format.js";
import { memberText } from "../../core/json.js";
import { useResource } from "../../core/resource.js";
import { changed, connected, details, isOpen, stateOf } from "../../core/tasks/tasks.js";
import { Agent, Ago, attempt, Button, ButtonLink, Copy, Empty, ProblemNote, Skeleton } from "../basics.js";
import { openHref } from "../entry.js";
import { Json } from "../json.js";
import { Graph } from "./graph.js";
import { EndRequest } from "./dialogs.js";
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
  const blocked = task?.blocked_by ?? entry?.blocked_by ?? [];
  const said = entry && isOpen(entry) ? details({ ...entry, blocked_by: blocked }, requests.tasks) : [];
  const isGone = error?.status === 404;
  return html`<section class="detail task-detail" aria-label=${`Request ${seq}`}>
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
      <${Facts} session=${session} entry=${entry} said=${said} blocked=${blocked} waiting=${waiting.get(seq) ?? []} />
      <${Outcome} entry=${entry} text=${text} />
      <${PastAttempts} attempts=${entry.past_attempts} />
      <section class="stack"><h3>Item</h3><${Json} text=${memberText(text, "item")} max=${JSON_CHARS} /></section>
      <${Near} requests=${requests} version=${version} waiting=${waiting} seq=${seq} />`}
  </section>`;
}

function Actions({ session, entry, refresh, onAfter }) {
  const [ending, setEnding] = useState();
  if (!rights.value.mayWrite) return null;
  const button = (how, kind, label) => html`<${Button} kind=${kind} onClick=${() => setEnding(how)}>${label}<//>`;
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
    ${entry.in_review && html`${button("accept", "primary", "Accept")}${button("refuse", "danger", "Refuse")}`}
    ${(entry.failed || entry.cancelled) && html`<${Button} icon="restore" kind="primary" onClick=${retry}>Retry<//>`}
    ${entry.claim && entry.claim.agent === writer() && html`<${Button} icon="restore" onClick=${release}>Release the claim<//>`}
    <${Button} icon="plus" onClick=${onAfter}>New request after this<//>
    ${isOpen(entry) && button("cancel", "danger", entry.cancel ? "Cancel now" : "Cancel")}
    ${ending && html`<${EndRequest} session=${session} entry=${entry} how=${ending} onDone=${refresh} onClose=${() => setEnding(undefined)} />`}
  </div>`;
}

function Facts({ session, entry, said, blocked, waiting }) {
  const { claim } = entry;
  return html`<dl class="facts">
    ${said.length > 0 && html`<dt>State</dt><dd>${said.map((one) => html`<div>${one}</div>`)}</dd>`}
    <dt>Made</dt><dd title=${fullTime(entry.at)}><${Ago} at=${entry.at} /> by <${Agent} name=${entry.agent} /></dd>
    ${entry.updated_at && html`<dt>Changed</dt><dd title=${fullTime(entry.updated_at)}><${Ago} at=${entry.updated_at} />${entry.updated_by && html` by <${Agent} name=${entry.updated_by} />`}</dd>`}
    ${claim && html`<dt>Claim</dt><dd class="row wrap"><${Agent} name=${claim.agent} /> <${Left} until=${claim.expires_at} /> <span class="muted">fence <span class="num">${claim.fence}</span></span></dd>`}
    ${(entry.attempts !== undefined || entry.failures > 0) && html`<dt>Attempts</dt><dd>${attempts(entry)}</dd>`}
    ${entry.priority !== undefined && html`<dt>Priority</dt><dd class="num">${entry.priority}</dd>`}
    ${entry.deadline && html`<dt>Deadline</dt><dd>${fullTime(entry.deadline)}</dd>`}
    ${entry.review && html`<dt>Review</dt><dd>another agent must accept the result</dd>`}
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

/** The ends of a request. */
const ENDS = { done: "Done", in_review: "Result in review", failed: "Failed", cancelled: "Cancelled", cancel: "To be cancelled" };

/** How a request ended, or is about to: its result or reason. */
function Outcome({ entry, text }) {
  const name = Object.keys(ENDS).find((one) => entry[one]);
  if (!name) return null;
  const { agent, at, fence, verdict, ...end } = entry[name];
  const what = entry.done || entry.in_review ? "result" : "reason";
  return html`<section class="outcome task-${name}"><h3>${ENDS[name]} <span class="small muted">${agent && html`by <${Agent} name=${agent} />`} <${Ago} at=${at} />${fence && html`, fence <span class="num">${fence}</span>`}</span></h3>
    ${end[what] === undefined ? html`<p class="muted small">No ${what} was given.</p>` : html`<${Text} value=${end[what]} text=${memberText(memberText(text, name), what)} />`}
    ${verdict && html`<p class="small">Accepted by <${Agent} name=${verdict.agent} /> <${Ago} at=${verdict.at} />${verdict.reason !== undefined && `: ${brief(verdict.reason, JSON_CHARS)}`}</p>`}
  </section>`;
}

/** The attempts that ended without success, newest first. The server keeps ten. */
function PastAttempts({ attempts = [] }) {
  if (attempts.length === 0) return null;
  return html`<section class="stack" aria-label="Past attempts"><h3>Past attempts</h3>
    <ol class="stack">${attempts.toReversed().map(({ agent, from, to, outcome, reason }) => html`<li class="outcome task-${outcome}">
      <div class="row wrap small"><strong class="capital">${outcome}</strong><${Agent} name=${agent} /><span class="grow muted">after ${seconds((new Date(to) - new Date(from)) / 1000)}</span><span class="muted"><${Ago} at=${to} /></span></div>
      ${reason !== undefined && html`<p class="outcome-text small">${typeof reason === "string" ? reason : JSON.stringify(reason)}</p>`}
    </li>`)}</ol>
  </section>`;
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
