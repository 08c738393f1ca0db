// The agents of a session: a list, and one of them with its statuses, directives, costs and memory.

import { board, curl, rights, withQuery } from "../core/api.js";
import { href, place, setParams } from "../core/address.js";
import { cx, html, useMemo, useState } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { cost, count, hasWords, plural } from "../core/format.js";
import { touches, useResource } from "../core/resource.js";
import { FIRST, statuses } from "../core/statuses.js";
import { Agent, Ago, Button, Command, Empty, Field, Find, ProblemNote, Select, Skeleton, Status } from "../parts/basics.js";
import { FormDialog, putNew } from "../parts/dialog.js";
import { Rows } from "../parts/rows.js";
import { AgentDetail } from "../parts/agents/detail.js";
import { useCost } from "../parts/agents/costs.js";

/** The most agents that are listed; a status as the filter finds others. */
const LISTED_MAX = 1000;

const ROW_PX = 44;

export function Agents({ session }) {
  const feed = useFeed(session);
  const { agent, status = "", text = "" } = place.value.params;
  const [making, setMaking] = useState(false);
  const path = withQuery(board(session, "agents"), { seen: true, limit: LISTED_MAX, status: status || undefined });
  // Each write of an agent changes when it was seen last, so any commit is a reason to read.
  const list = useResource(path, { feed, on: () => true, cache: "no-store" });
  const about = useResource(board(session), { feed, on: touches({ kinds: ["configured"], agents: true }) });
  const states = about.data?.settings?.agent_states;
  const all = list.data?.agents ?? [];
  const shown = useMemo(() => (text === "" ? all : all.filter((one) => matches(one, text))), [list.data, text]);
  // The first agent may make its session: what ended for want of one begins again.
  const made = () => {
    if (feed.problem.peek()) feed.retry();
    list.refresh();
  };
  const isFiltered = text !== "" || status !== "";
  return html`<div class=${cx("view whole agents", agent !== undefined && "with-detail")}>
    <div class="bar">
      <${Find} label="Find an agent" />
      <${Select} label="Status" hideLabel options=${[["", "All statuses"], ...statuses(states).map((one) => [one, one])]} value=${status} onChange=${(one) => setParams({ status: one })} />
      ${rights.value.mayWrite && html`<${Button} icon="plus" onClick=${() => setMaking(true)}>Register<//>`}
    </div>
    <${ProblemNote} error=${list.error} retry=${list.refresh} />
    <div class="split agents-body">
      <section class="side" aria-label="Agents">
        ${list.loading && html`<div class="view padded"><${Skeleton} /></div>`}
        ${shown.length > 0 && html`<${Head} n=${shown.length} more=${list.data.more} />
          <${Rows} class="list" label="Agents" count=${shown.length} height=${ROW_PX} reveal=${agent === undefined ? undefined : shown.findIndex((one) => one.agent === agent)}
            render=${(i) => html`<${Row} key=${shown[i].agent} session=${session} feed=${feed} one=${shown[i]} selected=${shown[i].agent === agent} />`} />`}
        ${!list.loading && shown.length === 0 && !list.error && (isFiltered ? html`<${Empty} title="No agent matches">Fewer filters show more.<//>` : html`<${None} session=${session} />`)}
      </section>
      ${agent !== undefined && html`<${AgentDetail} key=${agent} session=${session} agent=${agent} feed=${feed} about=${about.data} />`}
    </div>
    ${making && html`<${RegisterAgent} session=${session} states=${states} onMade=${made} onClose=${() => setMaking(false)} />`}
  </div>`;
}

function matches(one, text) {
  return hasWords([one.agent, one.type, one.platform, one.host].join(" "), text);
}

function Head({ n, more }) {
  return html`<div class="list-head agents-head" aria-hidden="true">
    <span>${more ? `The first ${count(n)} agents` : plural(n, "agent")}</span><span>Status</span><span class="extra">Type</span><span class="extra">Platform</span><span class="extra">Host</span><span class="extra right">Steps</span><span class="extra right">Cost</span><span class="right">Seen</span>
  </div>`;
}

function Row({ session, feed, one, selected }) {
  const { params } = place.value;
  const { spent, steps, isForeign } = useCost(session, one.agent, feed);
  return html`<a class="list-row agent-row" href=${href("agents", session, { ...params, agent: one.agent, before: null, open: null })} aria-current=${selected ? "true" : undefined}>
    <${Agent} name=${one.agent} />
    <span class="row"><${Status} value=${one.status} />${one.paused && html`<span class="badge">paused</span>`}${one.stopped && html`<span class="badge">stopped</span>`}</span>
    <span class="extra truncate muted" title=${one.type}>${one.type}</span>
    <span class="extra truncate muted" title=${one.platform}>${one.platform}</span>
    <span class="extra truncate muted" title=${one.host}>${one.host}</span>
    <span class="extra right num" title=${isForeign ? "Needs the right memory:read" : undefined}>${isForeign ? "–" : steps !== undefined && count(steps)}</span>
    <span class="extra right num">${isForeign ? "–" : spent !== undefined && cost(spent)}</span>
    <span class="right muted small"><${Ago} at=${one.last_seen ?? one.updated_at} /></span>
  </a>`;
}

function None({ session }) {
  return html`<${Empty} title="No agent is registered">
    <p>An agent is registered with its first memory, or by itself:</p>
    <${Command} text=${curl(board(session, "agents", "AppAgent"), { method: "PUT", body: { type: "AppAgent", platform: "linux" } })} />
  <//>`;
}

/** The members of a profile that the dialog asks for. */
const FIELDS = [["type", "Type", "AppAgent"], ["platform", "Platform", "linux"], ["host", "Host", "HostAgent"]];

/** The dialog that registers an agent. */
function RegisterAgent({ session, states, onMade, onClose }) {
  const [name, setName] = useState("");
  const [status, setStatus] = useState(FIRST);
  const [profile, setProfile] = useState({});
  const register = async () => {
    const filled = Object.fromEntries(Object.entries(profile).filter(([, value]) => value.trim() !== ""));
    await putNew(board(session, "agents", name), { body: { ...filled, status } }, "an agent of this name is registered");
    onMade();
    onClose();
    setParams({ agent: name, before: null });
  };
  return html`<${FormDialog} title="Register an agent" action="Register" disabled=${name === ""} onSend=${register} onClose=${onClose}>
    <${Field} label="Name" autofocus required value=${name} onText=${setName} />
    ${FIELDS.map(([field, label, example]) => html`<${Field} key=${field} label=${`${label} (optional)`} placeholder=${example} value=${profile[field] ?? ""} onText=${(text) => setProfile({ ...profile, [field]: text })} />`)}
    <${Select} label="Status" options=${statuses(states).map((one) => [one, one])} value=${status} onChange=${setStatus} />
  <//>`;
}
