// One agent: its profile, statuses, directives, costs and memory.

import { board, patch, remove, rights, writer } from "../../core/api.js";
import { absolute, href, listed, setParams } from "../../core/address.js";
import { html, useMemo, useState } from "../../core/dom.js";
import { brief, fullTime } from "../../core/format.js";
import { touches, useResource } from "../../core/resource.js";
import { nextOf } from "../../core/statuses.js";
import { useTransitions } from "../../core/agents/transitions.js";
import { Agent, Ago, attempt, Button, ButtonLink, Copy, Empty, ProblemNote, Skeleton, Status, Time } from "../basics.js";
import { Confirm } from "../dialog.js";
import { openHref } from "../entry.js";
import { Costs } from "./costs.js";
import { Diagram } from "./diagram.js";
import { Directives } from "./directives.js";
import { Memory } from "./memory.js";
import { Messages } from "./messages.js";

/** The members of a profile that the heading shows; the drawer has all. */
const FACTS_MAX = 16;
const OWN = new Set(["agent", "status", "revision", "registered_at", "updated_at", "last_seen", "paused", "stopped"]);

export function AgentDetail({ session, agent, feed, about }) {
  const on = useMemo(() => {
    const concerns = touches({ agents: true });
    return (commit) => commit.agent === agent || concerns(commit);
  }, [agent]);
  const { data: profile, error, loading, refresh } = useResource(`${board(session, "agents", agent)}?seen=true`, { feed, on, cache: "no-store" });
  const close = () => setParams({ agent: null, before: null });
  if (!profile || error?.status === 404) {
    return html`<section class="detail agent-detail" aria-label=${agent}>
      <${Heading} session=${session} agent=${agent} onClose=${close} />
      ${loading ? html`<${Skeleton} />` : error?.status === 404 ? agent !== writer() && html`<${Empty} title="The agent is not registered">It was deleted, or never wrote here.<//>` : html`<${ProblemNote} error=${error} retry=${refresh} />`}
      ${error?.status === 404 && html`<${Messages} session=${session} agent=${agent} feed=${feed} />`}
    </section>`;
  }
  return html`<section class="detail agent-detail" aria-label=${agent}>
    <${Heading} session=${session} agent=${agent} profile=${profile} onClose=${close} />
    <${ProblemNote} error=${error} retry=${refresh} />
    <div class="agent-grid">
      <${Statuses} session=${session} profile=${profile} feed=${feed} states=${about?.settings?.agent_states} />
      <div class="stack">
        <${Directives} session=${session} profile=${profile} feed=${feed} />
        <${Costs} session=${session} agent=${agent} feed=${feed} about=${about} />
      </div>
    </div>
    <${Messages} session=${session} agent=${agent} feed=${feed} />
    <${Memory} session=${session} agent=${agent} feed=${feed} />
  </section>`;
}

function Heading({ session, agent, profile, onClose }) {
  const [removing, setRemoving] = useState(false);
  const facts = Object.entries(profile ?? {}).filter(([name, value]) => !OWN.has(name) && value !== null);
  const gone = () => attempt(async () => {
    await remove(board(session, "agents", agent));
    setRemoving(false);
    onClose();
  }, `${agent} is removed`);
  return html`<header class="agent-heading">
    <div class="row wrap">
      <${Button} icon="left" label="All agents" kind="quiet" onClick=${onClose} />
      <h2 class="row"><${Agent} name=${agent} /></h2>
      ${profile && html`<${Status} value=${profile.status} />`}
      <span class="grow"></span>
      ${profile && html`<${ButtonLink} icon="timeline" href=${href("timeline", session, { agent: listed([agent]) })}>Timeline<//>
        <${ButtonLink} icon="state" href=${openHref(`agents/${agent}`)}>JSON<//>
        <${Copy} icon="link" label="Copy link" text=${() => absolute(href("agents", session, { agent }))} />
        ${rights.value.mayWrite && html`<${Button} icon="trash" label="Remove the agent" kind="quiet" onClick=${() => setRemoving(true)} />`}`}
    </div>
    ${profile && html`<dl class="agent-facts">
      ${facts.slice(0, FACTS_MAX).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd class="truncate" title=${brief(value, 400)}>${brief(value, 80)}</dd></div>`)}
      <div><dt>registered</dt><dd><${Ago} at=${profile.registered_at} /></dd></div>
      ${profile.last_seen && html`<div><dt>seen</dt><dd title=${fullTime(profile.last_seen)}><${Ago} at=${profile.last_seen} /></dd></div>`}
    </dl>`}
    ${removing && html`<${Confirm} title=${`Remove ${agent}`} action="Remove" onDone=${gone} onClose=${() => setRemoving(false)}>
      <p>The agent, its memory and the messages to it are deleted. What it wrote to the board stays. History keeps them.</p>
    <//>`}
  </header>`;
}

function Statuses({ session, profile, feed, states }) {
  const way = useTransitions(session, profile.agent, feed);
  const next = nextOf(profile.status, states);
  const move = (status) => attempt(() => patch(board(session, "agents", profile.agent), { status }, { type: "application/merge-patch+json" }));
  return html`<section class="card agent-statuses">
    <header><h3 class="grow">Status</h3><span class="small muted">arrows are the moves allowed</span></header>
    <div class="body stack">
      <${Diagram} status=${profile.status} states=${states} past=${way.list} />
      ${rights.value.mayWrite && html`<div class="row wrap" role="group" aria-label="Change the status by hand"><span class="small muted">Set to</span>
        ${next.map((name) => html`<${Button} key=${name} class="set-status" onClick=${() => move(name)} aria-label=${`Set the status to ${name}`}><${Status} value=${name} /><//>`)}
      </div>`}
      <${Way} session=${session} way=${way} />
    </div>
  </section>`;
}

function Way({ session, way }) {
  const [all, setAll] = useState(false);
  if (way.loading) return html`<${Skeleton} lines=${3} />`;
  if (way.list.length === 0) return html`<p class="muted small">No change of status is recorded.</p>`;
  const shown = all ? way.list : way.list.slice(0, 5);
  return html`<div>
    <table class="table way">
      <caption class="sr-only">Last changes of status</caption>
      <thead><tr><th scope="col">At</th><th scope="col">Change</th><th scope="col">By</th></tr></thead>
      <tbody>${shown.map(({ revision, at, by, from, to }) => html`<tr key=${revision}>
        <td><a href=${href("timeline", session, { around: revision })}><${Time} at=${at} /></a></td>
        <td><span class="row wrap">${from ? html`<${Status} value=${from} /><span class="muted" aria-label="to">→</span>` : html`<span class="muted small">first seen as</span>`}<${Status} value=${to} /></span></td>
        <td><${Agent} name=${by} /></td>
      </tr>`)}</tbody>
    </table>
    ${way.list.length > shown.length && html`<${Button} kind="quiet" onClick=${() => setAll(true)}>Show ${way.list.length - shown.length} more<//>`}
  </div>`;
}
