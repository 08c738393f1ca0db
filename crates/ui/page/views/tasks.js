// The requests of a session as tasks: by state, what waits for what, and one of them with its attempts and result.

import { board, curl, rights } from "../core/api.js";
import { href, place, setParams } from "../core/address.js";
import { cx, html, useLayoutEffect, useMemo, useRef, useState } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { count, hasWords, plural } from "../core/format.js";
import { REQUESTS_MAX, useRequests } from "../core/tasks/requests.js";
import { connected, dependants, details, newest, STATES } from "../core/tasks/tasks.js";
import { Agent, Ago, Button, Command, Empty, Find, NameFilter, ProblemNote, Skeleton } from "../parts/basics.js";
import { Rows } from "../parts/rows.js";
import { TaskDetail } from "../parts/tasks/detail.js";
import { NewRequest } from "../parts/tasks/dialogs.js";
import { Graph } from "../parts/tasks/graph.js";
import { agentOfWork, Left, TaskState } from "../parts/tasks/state.js";

const ROW_PX = 56;

export function Tasks({ session }) {
  const feed = useFeed(session);
  const requests = useRequests(session, feed);
  const version = requests.version.value;
  const { request, state: wanted = "", agent = "", text = "", show = "list" } = place.value.params;
  // An address of an older page may name a state that there is no more.
  const state = wanted in STATES ? wanted : "";
  const [making, setMaking] = useState();
  const all = useMemo(() => [...requests.tasks.values()].sort((a, b) => b.seq - a.seq), [requests, version]);
  const waiting = useMemo(() => dependants(requests.tasks), [requests, version]);
  const found = useMemo(() => all.filter((one) => matches(one, { agent, text })), [all, agent, text]);
  const shown = useMemo(() => (state === "" ? found : found.filter((one) => one.state === state)), [found, state]);
  const selected = request === undefined ? undefined : Number(request);
  const reveal = useReveal(selected, shown);
  useAnchor(shown, `${state}/${agent}/${text}`);
  const isEmpty = !requests.loading.value && all.length === 0 && !requests.error.value;
  // The first request makes its session: what ended for want of one begins again.
  const made = () => {
    if (feed.problem.peek()) feed.retry();
    if (requests.error.peek()) requests.reload();
  };
  return html`<div class=${cx("view whole tasks", selected !== undefined && "with-detail")}>
    <div class="bar">
      <${Find} label="Find a request" />
      <${NameFilter} label="Agent" all="All agents" names=${all.flatMap(agentsOf)} name="agent" value=${agent} />
      <span class="switch" role="group" aria-label="Shown as">
        <${Button} icon="tasks" aria-pressed=${String(show !== "graph")} onClick=${() => setParams({ show: null })}>List<//>
        <${Button} icon="fork" aria-pressed=${String(show === "graph")} onClick=${() => setParams({ show: "graph" })}>Graph<//>
      </span>
      ${rights.value.mayWrite && html`<${Button} icon="plus" kind="primary" onClick=${() => setMaking({})}>New request<//>`}
    </div>
    ${requests.error.value && html`<div class="view padded"><${ProblemNote} error=${requests.error.value} retry=${() => requests.reload()} /></div>`}
    ${requests.loading.value && html`<div class="view padded"><${Skeleton} lines=${8} /></div>`}
    ${isEmpty && html`<${None} session=${session} />`}
    ${all.length > 0 && html`<div class="split tasks-body">
      <section class="side" aria-label="Requests">
        ${show === "graph" ? html`<${Whole} requests=${requests} waiting=${waiting} version=${version} selected=${selected} />` : html`
          <${States} found=${found} value=${state} />
          <${Note} requests=${requests} />
          ${shown.length > 0
            ? html`<${Rows} class="list" label="Requests" count=${shown.length} height=${ROW_PX} reveal=${reveal}
                render=${(i) => html`<${Row} key=${shown[i].seq} session=${session} task=${shown[i]} said=${details(shown[i], requests.tasks).join(" · ")} waiting=${waiting.get(shown[i].seq)?.length ?? 0} isSelected=${shown[i].seq === selected} />`} />`
            : html`<${Empty} title="No request matches">Fewer filters show more.<//>`}`}
      </section>
      ${selected !== undefined && html`<${TaskDetail} key=${selected} session=${session} seq=${selected} feed=${feed} requests=${requests} version=${version} waiting=${waiting} onAfter=${() => setMaking({ after: String(selected) })} />`}
    </div>`}
    ${making && html`<${NewRequest} session=${session} ...${making} onMade=${made} onClose=${() => setMaking(undefined)} />`}
  </div>`;
}

/** The index of the selected request, once after it was selected: afterwards one may scroll away. */
function useReveal(selected, shown) {
  const done = useRef();
  if (selected === undefined || selected === done.current) return undefined;
  const index = shown.findIndex((one) => one.seq === selected);
  if (index < 0) return undefined;
  done.current = selected;
  return index;
}

/** Keeps what is seen in its place when newer requests come above it. */
function useAnchor(shown, filters) {
  const held = useRef({});
  useLayoutEffect(() => {
    const { first, filters: before } = held.current;
    const list = document.querySelector(".tasks .list");
    const added = before === filters && first !== undefined ? shown.findIndex((one) => one.seq <= first) : 0;
    // The list gets its new height after this, and before the next frame.
    if (added > 0 && list?.scrollTop > 0) requestAnimationFrame(() => (list.scrollTop += added * ROW_PX));
    held.current = { first: shown[0]?.seq, filters };
  }, [shown, filters]);
}

function matches(task, { agent, text }) {
  if (agent !== "" && !agentsOf(task).includes(agent)) return false;
  return text.toLowerCase().split(/\s+/).every((word) => hasWords(task.text, word) || `#${task.seq}` === word);
}

function agentsOf(task) {
  return [task.agent, agentOfWork(task)].filter(Boolean);
}

/** The states with their numbers, of which one may be chosen. */
function States({ found, value }) {
  const counts = {};
  for (const { state } of found) counts[state] = (counts[state] ?? 0) + 1;
  const chip = (state, name, n) => html`<button type="button" class=${cx("chip", state && `task-${state}`)} aria-pressed=${String(value === state)} onClick=${() => setParams({ state })}>${name} <span class="num">${count(n)}</span></button>`;
  return html`<div class="chips task-states" role="group" aria-label="States">
    ${chip("", "All", found.length)}${Object.entries(STATES).map(([state, name]) => chip(state, name, counts[state] ?? 0))}
  </div>`;
}

function Note({ requests }) {
  if (requests.more.value) return html`<p class="note" role="status">Reading older requests: ${count(requests.tasks.size)} of ${count(requests.count.value)}…</p>`;
  if (requests.count.value > REQUESTS_MAX) return html`<p class="note">The newest ${count(REQUESTS_MAX)} of ${count(requests.count.value)} requests are listed.</p>`;
  return null;
}

function Row({ session, task, said, waiting, isSelected }) {
  const { params } = place.value;
  const who = agentOfWork(task);
  return html`<a class="list-row task-row" href=${href("tasks", session, { ...params, request: task.seq, open: null })} aria-current=${isSelected ? "true" : undefined}>
    <span class="num muted">#${task.seq}</span>
    <span class="task-what"><span class="truncate" title=${task.text}>${task.text || "(no text)"}</span>
      <span class="row small muted facts-line">
        ${task.priority !== undefined && html`<span class="nowrap priority">priority ${task.priority}</span>`}
        ${who && html`<${Agent} name=${who} />`}
        ${task.claim && html`<${Left} until=${task.claim.expires_at} />`}
        ${said && html`<span class="truncate" title=${said}>${said}</span>`}
        ${!who && task.agent && html`<span class="row">by <${Agent} name=${task.agent} /></span>`}
        ${waiting > 0 && task.state !== "done" && html`<span class="nowrap waited">${plural(waiting, "request")} ${waiting === 1 ? "waits" : "wait"} for it</span>`}
      </span>
    </span>
    <span class="task-end"><${TaskState} state=${task.state} /><span class="small muted"><${Ago} at=${task.updated_at ?? task.at} /></span></span>
  </a>`;
}

/** The graph of all requests, or of those connected with the selected one. */
function Whole({ requests, waiting, version, selected }) {
  const { tasks } = requests;
  const { seqs, cut } = useMemo(() => {
    const near = selected === undefined ? undefined : connected(tasks, waiting, selected);
    return near && near.seqs.length > 1 ? near : newest(tasks, waiting);
  }, [tasks, version, selected]);
  return html`<${Graph} tasks=${tasks} seqs=${seqs} cut=${cut} selected=${selected} version=${version} />`;
}

function None({ session }) {
  return html`<${Empty} title="No requests yet">
    <p>A request is claimed by one agent, and done or failed. To make the first:</p>
    <${Command} text=${curl(board(session, "requests"), { method: "POST", body: { request: "Open the report" } })} />
  <//>`;
}
