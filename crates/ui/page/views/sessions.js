// All sessions: searchable, by activity or name, live.

import { board, rights } from "../core/api.js";
import { go, href, place, setParams } from "../core/address.js";
import { cx, html, useMemo, useState } from "../core/dom.js";
import { bytes, count, hasWords, plural } from "../core/format.js";
import { questions } from "../core/inbox.js";
import { SESSIONS_MAX, useSessions } from "../core/sessions.js";
import { Ago, Button, Command, Empty, Field, Find, ProblemNote, Select, Skeleton } from "../parts/basics.js";
import { FormDialog, putNew } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { Rows } from "../parts/rows.js";

const ROW_PX = 60;

export function Sessions() {
  const { text = "", sort = "activity", label = "" } = place.value.params;
  const sessions = useSessions({ label });
  const [making, setMaking] = useState(false);
  const byName = sessions.byName.value;
  const open = useMemo(() => counted(questions.value), [questions.value]);
  const shown = useMemo(() => chosen([...byName.values()], text, sort), [byName, text, sort]);
  const error = sessions.error.value;
  return html`<div class="view whole sessions">
    <div class="bar">
      <${Find} label="Find a session" />
      ${label && html`<button class="chip" aria-pressed="true" onClick=${() => setParams({ label: null })}>${label}<${Icon} name="close" label="remove the filter" /></button>`}
      <${Select} label="Order" hideLabel options=${[["activity", "Last active first"], ["name", "By name"], ["questions", "Open questions first"]]} value=${sort} onChange=${(value) => setParams({ sort: value === "activity" ? null : value })} />
      ${rights.value.mayWrite && html`<${Button} icon="plus" kind="primary" onClick=${() => setMaking(true)}>New session<//>`}
    </div>
    ${error && html`<div class="view padded"><${ProblemNote} error=${error} retry=${() => sessions.reload()} /></div>`}
    ${sessions.loading.value && html`<div class="view padded"><${Skeleton} lines=${8} /></div>`}
    ${sessions.cut.value && html`<p class="note">The first ${count(SESSIONS_MAX)} sessions by name are listed. Search covers all of them.</p>`}
    ${!sessions.loading.value && shown.length > 0 && html`
      <div class="list-head sessions-head" aria-hidden="true"><span>${plural(shown.length, "session")}</span><span>Entries</span><span>Agents</span><span>Size</span><span>Active</span></div>
      <${Rows} class="list" label="Sessions" count=${shown.length} height=${ROW_PX} render=${(i) => html`<${Row} session=${shown[i]} questions=${open.get(shown[i].session) ?? 0} />`} />`}
    ${!sessions.loading.value && !error && shown.length === 0 && (byName.size === 0 ? html`<${First} />` : html`<${Empty} title="No session matches">Try fewer letters, or <a href=${href("search", undefined, { q: text })}>search in all entries</a>.<//>`)}
    ${making && html`<${NewSession} onClose=${() => setMaking(false)} />`}
  </div>`;
}

function counted(open) {
  const found = new Map();
  for (const question of open) found.set(question.session, (found.get(question.session) ?? 0) + 1);
  return found;
}

function chosen(all, text, sort) {
  const found = all.filter((one) => hasWords(`${one.session} ${Object.entries(one.labels ?? {}).map(([k, v]) => `${k}:${v}`).join(" ")}`, text));
  if (sort === "name") return found.sort((a, b) => (a.session < b.session ? -1 : 1));
  if (sort === "questions") {
    const open = counted(questions.peek());
    return found.sort((a, b) => (open.get(b.session) ?? 0) - (open.get(a.session) ?? 0) || later(a, b));
  }
  return found.sort(later);
}

function later(a, b) {
  return b.updated_at < a.updated_at ? -1 : b.updated_at > a.updated_at ? 1 : a.session < b.session ? -1 : 1;
}

function Row({ session, questions: open }) {
  const { counts, labels = {} } = session;
  const entries = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const active = Date.now() - new Date(session.updated_at) < 60_000;
  return html`<div class="list-row session-row">
    <div class="name">
      <a class="truncate" href=${href("timeline", session.session)} title=${session.session}>${session.session}</a>
      <span class="row small muted labels">
        <span class=${cx("dot", active && "on")} title=${active ? "active in the last minute" : ""}></span>
        ${open > 0 && html`<a class="badge warn" href=${href("questions", undefined, { session: session.session })}>${plural(open, "open question")}</a>`}
        ${["requests", "trajectories", "questions", "screenshots"].filter((log) => counts[log] > 0).map((log) => html`<span class="nowrap">${plural(counts[log], SINGULAR[log])}</span>`)}
        ${besides(session).map((held) => html`<span class="nowrap">${held}</span>`)}
        ${Object.entries(labels).map(([k, v]) => html`<a class="badge" href=${href("sessions", undefined, { label: `${k}:${v}` })}>${k}: ${v}</a>`)}
      </span>
    </div>
    <span class="num">${count(entries)}</span>
    <span class="num">${count(session.agents)}</span>
    <span class="num">${session.bytes === undefined ? "" : bytes(session.bytes)}</span>
    <span class="muted"><${Ago} at=${session.updated_at} /></span>
  </div>`;
}

/** What a session holds besides the entries of its logs. A token that may not read all memories is not shown all of it. */
function besides({ state_bytes: state = 0, memory_entries: steps = 0, blobs = 0 }) {
  return [state > 0 && `state of ${bytes(state)}`, steps > 0 && plural(steps, "memory step"), blobs > 0 && plural(blobs, "blob")].filter(Boolean);
}

const SINGULAR = { requests: "request", trajectories: "step", questions: "question", screenshots: "screenshot" };

function First() {
  return html`<${Empty} title="No sessions yet">
    <p>The first write to a session creates it. For a run to look at:</p>
    <${Command} text=${`blackboard demo --url ${location.origin}`} />
  <//>`;
}

function NewSession({ onClose }) {
  const [name, setName] = useState("");
  const [labels, setLabels] = useState("");
  const make = async () => {
    const body = labels.trim() ? { labels: Object.fromEntries(labels.split(",").map((one) => one.split(":").map((part) => part.trim()))) } : {};
    await putNew(board(name), { body }, "a session of this name exists");
    onClose();
    go(href("timeline", name));
  };
  return html`<${FormDialog} title="New session" action="Make session" disabled=${name === ""} onSend=${make} onClose=${onClose}>
    <${Field} label="Name" autofocus required value=${name} onText=${setName} />
    <${Field} label="Labels (optional)" placeholder="team:ufo, env:test" value=${labels} onText=${setLabels} />
  <//>`;
}
