// Two boards side by side: two revisions, a session and its fork, or any two sessions.

import { board, get } from "../../core/api.js";
import { href } from "../../core/address.js";
import { cx, html, useState } from "../../core/dom.js";
import { count, plural, short } from "../../core/format.js";
import { compared, comparedLogs, leaves, LEAVES_MAX, LOGS } from "../../core/past.js";
import { useRead } from "../../core/resource.js";
import { itemText } from "../../core/timeline.js";
import { Button, Skeleton, Status } from "../basics.js";
import { Picture } from "../picture.js";
import { RequestState } from "../tasks/state.js";
import { PastProblem } from "./problem.js";

/** The newest entries of each log that are compared. */
const LATEST = 100;

/** The rows of one list that are shown until one asks for more. */
const ROWS = 30;

export function Compare({ left, right, head, oldest }) {
  // Without a revision a side is the present board; `head` is what tells that it changed.
  const sign = JSON.stringify([left, right]);
  const sides = (signal) => Promise.allSettled([side(left, signal), side(right, signal)]);
  const { value: [a, b] = [{}, {}] } = useRead(sides, [sign, left.at === undefined || right.at === undefined ? head : 0], true);
  const [differing, setDiffering] = useState(true);
  const ready = a.value && b.value;
  return html`<section class="compare" aria-label="Comparison">
    <div class="compare-heads"><${SideHead} side=${left} read=${a.value} /><${SideHead} side=${right} read=${b.value} /></div>
    <${PastProblem} error=${a.reason} oldest=${oldest} /><${PastProblem} error=${b.reason} param="with" />
    ${!ready && !a.reason && !b.reason && html`<${Skeleton} />`}
    ${ready && html`<label class="check small"><input type="checkbox" checked=${differing} onChange=${(event) => setDiffering(event.currentTarget.checked)} />Only what differs</label>
      ${LOGS.map((log) => html`<${Logs} key=${log} log=${log} left=${a.value.logs[log]} right=${b.value.logs[log]} differing=${differing} />`)}
      <${Part} title="Agents" rows=${agents(a.value, b.value)} differing=${differing} show=${(one) => html`<${Status} value=${one.status} /> <span class="muted">${one.type ?? ""}</span>`} name=${(key) => key} />
      <${State} left=${a.value.state} right=${b.value.state} differing=${differing} />`}
  </section>`;
}

async function side({ session, at }, signal) {
  const read = async (part, query = {}) => (await get(board(session, part), { query: { at, ...query }, signal })).body;
  const [state, agents, ...logs] = await Promise.all([read("state"), read("agents", { limit: 1000 }), ...LOGS.map((log) => read(log, { latest: LATEST }))]);
  return { state, agents: agents.agents, logs: Object.fromEntries(LOGS.map((log, i) => [log, logs[i]])) };
}

function agents(left, right) {
  const byName = ({ agents: list }) => new Map(list.map((one) => [one.agent, one]));
  const text = ({ revision, registered_at, updated_at, last_seen, ...rest }) => JSON.stringify(rest);
  return compared(byName(left), byName(right), (a, b) => text(a) === text(b));
}

function SideHead({ side: { session, at }, read }) {
  const total = read && LOGS.reduce((sum, log) => sum + read.logs[log].count, 0);
  return html`<h2 class="compare-head"><a class="truncate" href=${href("past", session, { at })} title=${session}>${session}</a><span class="muted nowrap">${at === undefined ? "now" : `at ${short(at, 60)}`}</span>${total !== undefined && html`<span class="muted small nowrap">${plural(total, "entry", "entries")}</span>`}</h2>`;
}

function Logs({ log, left, right, differing }) {
  const rows = comparedLogs(left.entries, right.entries);
  const cut = left.count > LATEST || right.count > LATEST;
  const show = (entry) => html`<${Picture} entry=${entry} px=${160} loading="lazy" width="64" height="40" /><span class="grow">${short(itemText(log, entry.item) || JSON.stringify(entry.item), 200)}</span>${log === "requests" && html`<${RequestState} entry=${entry} />`}`;
  return html`<${Part} title=${log} rows=${rows} differing=${differing} show=${show} name=${(key) => `#${key}`}
    note=${html`<span class=${cx("num small", left.count !== right.count ? "compare-counts" : "muted")}>${count(left.count)} : ${count(right.count)}</span>${cut && html`<span class="muted small">the newest ${LATEST} are compared</span>`}`} />`;
}

function State({ left, right, differing }) {
  const [a, b] = [leaves(left), leaves(right)];
  const note = (a.size >= LEAVES_MAX || b.size >= LEAVES_MAX) && html`<span class="muted small">the first ${count(LEAVES_MAX)} values are compared</span>`;
  return html`<${Part} title="State" rows=${compared(a, b)} differing=${differing} show=${(text) => html`<code>${short(text, 400)}</code>`} name=${(key) => key || "state"} note=${note} />`;
}

function Part({ title, rows, differing, show, name, note }) {
  const [most, setMost] = useState(ROWS);
  const differ = rows.filter((row) => !row.same);
  const shown = differing ? differ : rows;
  return html`<section class=${cx("card", shown.length === 0 && "card-bare")} aria-label=${title}>
    <header><h3 class="grow capital">${title}</h3>${note}<span class=${cx("badge", differ.length > 0 && "diff-changed")}>${differ.length === 0 ? "equal" : plural(differ.length, "difference")}</span></header>
    ${shown.length > 0 && html`<table class="compare-rows"><colgroup><col class="compare-names" /><col /><col /></colgroup><thead class="sr-only"><tr><th>Place</th><th>Left</th><th>Right</th></tr></thead><tbody>
      ${shown.slice(0, most).map((row) => html`<tr key=${row.key} class=${row.same ? "same" : row.left === undefined ? "only-right" : row.right === undefined ? "only-left" : "differs"}>
        <th scope="row"><bdi>${short(name(row.key), 120)}</bdi></th>${["left", "right"].map((at) => html`<td class=${row[at] === undefined ? "absent" : undefined}>${row[at] === undefined ? html`<span class="muted">absent</span>` : html`<div class="compare-cell">${show(row[at])}</div>`}</td>`)}
      </tr>`)}
    </tbody></table>`}
    ${shown.length > most && html`<div class="body"><${Button} onClick=${() => setMost(most + 10 * ROWS)}>More<//></div>`}
  </section>`;
}
