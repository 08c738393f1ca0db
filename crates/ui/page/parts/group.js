// One group of the timeline: compact as a card, or each row by itself.

import { href, place } from "../core/address.js";
import { now } from "../core/clock.js";
import { cx, html } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { brief, cost, hue, seconds, short, span, time } from "../core/format.js";
import { endOf } from "../core/questions/questions.js";
import { expanded } from "../core/settings.js";
import { imageSource } from "../core/shots.js";
import { itemText, member, number, statusOf } from "../core/timeline.js";
import { Agent, Status, Time } from "./basics.js";
import { openHref } from "./entry.js";
import { Icon } from "./icon.js";
import { Picture } from "./picture.js";
import { AnswerHere } from "./questions/card.js";

/** The longest texts of a card; the drawer has them whole. */
const TITLE_CHARS = 400;
const FIELD_CHARS = 1200;

export function GroupCard({ group }) {
  if (expanded.value) return html`<div data-group=${group.key}>${group.rows.map((row) => html`<${Row} key=${row.id} row=${row} />`)}${group.kind === "question" && html`<${Asked} group=${group} version=${group.version} />`}</div>`;
  return html`<${Compact} group=${group} />`;
}

/** The row that gives a group its title. */
function head(group) {
  const of = (...types) => group.rows.find((row) => types.includes(row.type));
  return of("request", "question", "message") ?? of("step") ?? of("screenshot") ?? of("memory") ?? group.rows.find((row) => !row.hidden) ?? group.rows[0];
}

function Compact({ group }) {
  const row = head(group);
  const images = [...group.rows, ...group.also].filter(shows);
  const name = authorOf(row);
  return html`<article class=${cx("group", name && `hue-${hue(name)}`, `of-${group.kind}`)} data-group=${group.key}>
    <${Time} at=${row.at} />
    <span class="kind" title=${group.kind}><${Icon} name=${group.kind} label=${group.kind} /></span>
    <div class="what">
      <div class="line"><${Agent} name=${name} /><${Whose} row=${row} /><${Badges} group=${group} row=${row} /></div>
      <a class="title" href=${openHref(target(row))}>${title(row)}</a>
      <${States} rows=${group.rows.filter((one) => one !== row && one.kind === "state")} />
      ${group.rows.filter((one) => one !== row && !shows(one) && one.kind !== "state").map((one) => html`<${Part} key=${one.id} row=${one} group=${group} />`)}
      ${group.kind === "question" && html`<${Asked} group=${group} version=${group.version} />`}
    </div>
    ${images.length > 0 && html`<div class="shots">${images.slice(0, 3).map((one) => html`<${Shot} key=${one.id} row=${one} />`)}${images.length > 3 && html`<span class="muted small">+${images.length - 3}</span>`}</div>`}
  </article>`;
}

/** The agent that a row is by. One that sends a message without a name is not its receiver. */
function authorOf({ kind, agent, agentOf }) {
  return kind === "message" ? agent : agent ?? agentOf;
}

/** Whom a row is about, if not about its author. */
function Whose({ row: { kind, agent, agentOf } }) {
  if (!agentOf || kind === "status" || (kind !== "message" && (!agent || agent === agentOf))) return null;
  return html`<span class="muted">${kind === "message" ? "to" : "for"} <${Agent} name=${agentOf} /></span>`;
}

/** The field that answers a group's question. The group knows what became of it only if the newest commits are loaded. */
function Asked({ group }) {
  const { session } = place.value;
  const feed = useFeed(session);
  const asked = group.rows.find((row) => row.type === "question");
  if (!asked || !feed.attached.value) return null;
  const { seq, agent, revision, item } = group.open ?? asked;
  const last = group.rows.findLast((row) => row.type === "answer" || row.type === "expired");
  const end = group.open ? undefined : { kind: last?.type ?? "deleted", ...(last && endOf({ item: last.item, updated_by: last.agent })) };
  return html`<${AnswerHere} question=${{ session, seq, at: asked.at, agent, revision, item }} end=${end} />`;
}

/** What opens when one clicks a row. */
export function target(row) {
  if (row.log && row.seq !== undefined) return `${row.log}/${row.seq}`;
  if (row.path !== undefined) return row.path === "" ? "state" : `state/${row.path}`;
  if (row.type === "status") return `agents/${row.agentOf}`;
  return `revision/${row.revision}`;
}

function shows(row) {
  return imageSource(row) !== undefined;
}

function Shot({ row }) {
  const { session } = place.peek();
  return html`<a class="shot" href=${href("screenshots", session, { shot: row.seq })}>
    <${Picture} entry=${row} px=${240} loading="lazy" width="96" height="60" alt=${itemText("screenshots", row.item) || `screenshot ${row.seq}`} />
  </a>`;
}

/** What a row says in one line. */
export function title(row) {
  const { change } = row;
  switch (row.type) {
    case "request":
    case "question":
    case "step":
    case "screenshot":
    case "memory":
    case "message":
      return short(itemText(row.log, row.item) || `${row.log} ${row.seq}`, TITLE_CHARS);
    case "answer":
      return `Answer: ${brief(member(row.item, "answer"), TITLE_CHARS)}`;
    case "edited":
      return `Edited: ${short(itemText(row.log, row.item), TITLE_CHARS)}`;
    case "acked":
      return "Acknowledged";
    case "awaited":
      return `Open until ${time(change.expires_at)}`;
    case "expired":
      return "Nobody answered in time";
    case "claim":
      return "Claimed";
    case "released":
      return "Claim given back";
    case "lapsed":
      return "The claim lapsed";
    case "retried":
      return "To be tried again";
    case "late":
      return "The deadline passed";
    case "due":
      return "Its time has come";
    case "planned":
      return plan(change);
    case "state_put":
      return `${row.path || "state"} = ${brief(change.value, TITLE_CHARS)}`;
    case "state_merged":
      return `${row.path || "state"} merged ${brief(change.patch, TITLE_CHARS)}`;
    case "state_appended":
      return `${row.path} + ${brief(change.elements, TITLE_CHARS)}`;
    case "state_removed":
      return `${row.path || "state"} deleted`;
    case "state_expired":
      return `${row.path} expired`;
    case "status":
      return row.status ? `Status ${row.status}` : "Agent changed";
    case "agent_removed":
      return "Agent deleted";
    case "removed":
      return `${row.log}: entries deleted`;
    case "cleared":
      return `${row.log ?? "board"} cleared`;
    default:
      return ENDS[row.type] ? end(ENDS[row.type], change) : HISTORY[row.type]?.(change) ?? row.type.replaceAll("_", " ");
  }
}

/** The rows that have a result or a reason. */
const ENDS = { done: "Done", result: "For review", accepted: "Accepted", refused: "Refused", failed: "Failed", cancelling: "To be cancelled", cancelled: "Cancelled" };

function end(name, { result, reason = result }) {
  return reason === undefined ? name : `${name}: ${brief(reason, TITLE_CHARS)}`;
}

function plan({ after = [], attempts, priority, not_before: start, deadline, review }) {
  const parts = [];
  if (after.length > 0) parts.push(`after ${after.map((seq) => `#${seq}`).join(", ")}`);
  if (attempts) parts.push(`${attempts} attempts`);
  if (priority) parts.push(`priority ${priority}`);
  if (start) parts.push(`not before ${time(start)}`);
  if (deadline) parts.push(`deadline ${time(deadline)}`);
  if (review) parts.push("to be reviewed");
  return parts.join(" · ") || "Planned";
}

const HISTORY = {
  created: () => "Session created",
  configured: () => "Settings changed",
  deleted: () => "Session deleted",
  checkpoint_put: (change) => `Checkpoint ${change.name}`,
  checkpoint_removed: (change) => `Checkpoint ${change.name} deleted`,
  restored: (change) => `Restored to revision ${change.to ?? change.at ?? ""}`.trim(),
  adopted: (change) => (change.fork_of ? `Forked from ${change.fork_of}` : "Restored from an archive"),
  budget_exhausted: () => "The budget is spent",
  blob_put: (change) => `Blob of ${change.bytes} bytes (${change.media_type})`,
  images_forgotten: () => "Images deleted",
};

/** The rows of a request that end what the one before said of it. */
const WORK = ["claim", "done", "result", "accepted", "refused", "failed", "released", "lapsed", "late", "cancelled", "retried"];

function Badges({ group, row }) {
  // What the step does not say, its memory may.
  const steps = ["step", "memory"].map((type) => group.rows.find((one) => one.type === type)).filter(Boolean);
  const said = (...names) => (steps.length > 0 ? steps : [row]).map(({ item }) => number(item, ...names)).find((one) => one !== undefined);
  const n = said("step");
  const spent = said("cost");
  const took = said("duration", "time_cost", "total_time_cost");
  const step = steps.find((one) => statusOf(one) !== undefined);
  const last = group.rows.findLast((one) => WORK.includes(one.type));
  return html`<span class="badges">
    ${row.seq !== undefined && ["request", "question", "message"].includes(row.type) && html`<span class="muted small">#${row.seq}</span>`}
    ${n !== undefined && html`<span class="muted small">step ${n}</span>`}
    <${Status} value=${statusOf(last && statusOf(last) !== undefined ? last : step ?? row)} />
    ${spent !== undefined && spent > 0 && html`<span class="muted small num">${cost(spent)}</span>`}
    ${took !== undefined && html`<span class="muted small num">${seconds(took)}</span>`}
    ${last?.type === "claim" && html`<${Lease} change=${last.change} />`}
  </span>`;
}

/** Who has a claim, and for how long yet. */
function Lease({ change }) {
  const left = new Date(change.expires_at) - now.value;
  return html`<span class="badge">${change.agent}${left > 0 ? ` · ${span(left)} left` : ""}</span>`;
}

/** The most changes of the state that a card names. */
const STATES_SHOWN = 4;

/** What a commit changed in the state besides, in one line. */
function States({ rows }) {
  if (rows.length === 0) return null;
  const shown = rows.slice(0, STATES_SHOWN);
  return html`<div class="part part-states">
    <span class="arrow" aria-hidden="true">↳</span>
    <span class="grow">${shown.map((row) => html`<a key=${row.id} href=${openHref(target(row))}>${short(title(row), 60)}</a> `)}${rows.length > shown.length && html`<span class="muted small">and ${rows.length - shown.length} more</span>`}</span>
  </div>`;
}

/** A further row of a compact card. */
function Part({ row, group }) {
  if (row.hidden && row.type === "awaited" && group.rows.some((one) => one.type === "answer" || one.type === "expired")) return null;
  if (row.type === "memory" && group.rows.some((one) => one.type === "step" && title(one) === title(row))) return null;
  if (row.type === "claim" && group.rows.some((one) => ["done", "result", "failed"].includes(one.type))) return null;
  const after = new Date(row.at) - new Date(group.at);
  return html`<a class=${cx("part", `part-${row.type}`)} href=${openHref(target(row))}>
    <span class="arrow" aria-hidden="true">↳</span>${row.agent && row.agent !== group.agent && html`<${Agent} name=${row.agent} />`}
    <span class="grow">${title(row)}</span>${after > 1000 && html`<span class="muted small nowrap">after ${span(after)}</span>`}
  </a>`;
}

/** The members of an item that an expanded row shows, in order, with their names. */
const FIELDS = ["Observation", "Thought", "Subtask", "Action", "Results", "Comment", "Plan", "Answer"];

function Row({ row }) {
  const name = authorOf(row);
  const shown = row.item && (row.kind === "step" || row.kind === "memory") ? FIELDS.map((field) => [field, member(row.item, field)]).filter(([, value]) => value !== undefined && value !== null && value !== "") : [];
  return html`<article class=${cx("group", "single", name && `hue-${hue(name)}`, `of-${row.kind}`)}>
    <${Time} at=${row.at} />
    <span class="kind" title=${row.type}><${Icon} name=${row.kind} label=${row.kind} /></span>
    <div class="what">
      <div class="line"><${Agent} name=${name} />${row.kind === "message" && html`<${Whose} row=${row} />`}<span class="badges"><span class="muted small">${row.log ? `${row.log} ${row.seq ?? ""}` : row.type.replaceAll("_", " ")}${row.isOfLog ? "" : ` · r${row.revision}`}</span><${Status} value=${statusOf(row)} /></span></div>
      <a class="title" href=${openHref(target(row))}>${title(row)}</a>
      ${shown.length > 0 && html`<dl class="facts">${shown.map(([field, value]) => html`<dt>${field}</dt><dd>${short(typeof value === "string" ? value : JSON.stringify(value), FIELD_CHARS)}</dd>`)}</dl>`}
      ${shows(row) && html`<${Shot} row=${row} />`}
    </div>
  </article>`;
}
