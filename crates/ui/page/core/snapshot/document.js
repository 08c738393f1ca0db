// A session at a revision as one HTML file: no script, nothing fetched, every value a text.

import { count, fullTime, hue, plural, short } from "../format.js";
import { parseExact } from "../json.js";
import { stateOf, STATES } from "../tasks/tasks.js";
import { itemText, member, statusOf } from "../timeline.js";

/** The characters of an entry's and of the state's JSON. */
export const JSON_CHARS_MAX = 20_000;
export const STATE_CHARS_MAX = 500_000;

const TEXT_CHARS_MAX = 2000;

const SINGULAR = { questions: "question", requests: "request", trajectories: "step", screenshots: "screenshot" };

/** The members of a step that stand beside its thought. */
const FACTS = ["Observation", "Subtask", "Action", "Results"];

/** The colours of agents, as `hue` numbers them. */
const HUES = 12;

const STYLE = `
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif;background:light-dark(#fbfbf9,#121514);color:light-dark(#1b1d1c,#e6e9e7)}
body{max-width:860px;margin:0 auto;padding:24px 16px 64px}h1{font-size:22px;margin:0}h2{font-size:16px;margin:32px 0 8px}
p{margin:4px 0}.muted,time,summary{color:light-dark(#5b605d,#a0a7a3);font-size:13px}.list{list-style:none;padding:0;margin:0}
.list>li{border-top:1px solid light-dark(#dfe2df,#2a2f2d);padding:10px 0}.line{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline}
.text{white-space:pre-wrap;overflow-wrap:anywhere}b.agent::before{content:"";display:inline-block;width:8px;height:8px;border-radius:2px;background:currentColor;margin-right:5px}
.status{font-size:12px;font-weight:600;border:1px solid light-dark(#cfd4d0,#3a413e);border-radius:5px;padding:0 6px}
pre{overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,monospace;padding:10px;border-radius:6px;background:light-dark(#f1f2ef,#1b1f1d)}
img{display:block;max-width:100%;height:auto;margin:8px 0;border:1px solid light-dark(#dfe2df,#2a2f2d);border-radius:6px}
@media print{details:not([open]){display:none}.list>li{break-inside:avoid}}
${Array.from({ length: HUES }, (_, n) => `.h${n}{color:light-dark(oklch(43% .11 ${25 + 30 * n}),oklch(80% .1 ${25 + 30 * n}))}`).join("")}`;

/** Returns the file's text. `read` is what `readSession` gives. */
export function snapshotDocument({ session, revision, server, made, read }) {
  const { agents, state, logs, images, left } = read;
  const all = Object.entries(logs).flatMap(([log, { entries }]) => entries.map((entry) => ({ log, entry })));
  all.sort((a, b) => a.entry.at.localeCompare(b.entry.at) || a.entry.revision - b.entry.revision || a.entry.seq - b.entry.seq);
  const missing = Object.entries(logs).filter(([, one]) => one.count > one.entries.length);
  return String(markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>${session} at revision ${revision}</title><style>${styles()}</style></head><body>
<h1><bdi>${session}</bdi></h1>
<p class="muted">revision ${count(revision)} of <bdi>${server}</bdi>, saved ${fullTime(made)}</p>
<p class="muted">${Object.entries(logs).map(([log, one]) => plural(one.count, SINGULAR[log])).join(", ")}</p>
${missing.map(([log, one]) => markup`<p class="muted">Of ${count(one.count)} ${log} the last ${count(one.entries.length)} are here.</p>`)}
${left > 0 && markup`<p class="muted">${plural(left, "image")} left out.</p>`}
${agents.length > 0 && markup`<h2>Agents</h2><ul class="list">${agents.map((one) => markup`<li class="line">${agentOf(one.agent)}${statusBadge(one.status)}</li>`)}</ul>`}
<h2>Entries</h2>
<ol class="list">${all.map(({ log, entry }) => card(log, entry, images.get(entry.seq)))}</ol>
<h2>State</h2>
<pre><bdi>${cut(pretty(state), STATE_CHARS_MAX)}</bdi></pre>
</body></html>
`);
}

function styles() {
  return markup([STYLE]);
}

function card(log, entry, image) {
  const { item } = entry;
  const text = itemText(log, item);
  const answer = log === "questions" ? member(item, "answer") : undefined;
  const facts = log === "trajectories" ? FACTS.map((name) => [name, member(item, name)]).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== text) : [];
  return markup`<li id="${log}-${entry.seq}">
<div class="line">${agentOf(entry.agent)}<span class="muted">${SINGULAR[log]} ${entry.seq}</span>${statusBadge(log === "requests" ? STATES[stateOf(entry)] : statusOf(entry))}<time datetime="${entry.at}">${fullTime(entry.at)}</time></div>
<p class="text"><bdi>${short(text, TEXT_CHARS_MAX)}</bdi></p>
${answer !== undefined && markup`<p class="text">Answer: <bdi>${short(asText(answer), TEXT_CHARS_MAX)}</bdi></p>`}
${entry.claim && markup`<p class="muted">claimed by <bdi>${entry.claim.agent}</bdi></p>`}
${facts.map(([name, value]) => markup`<p class="text"><span class="muted">${name}</span> <bdi>${short(asText(value), TEXT_CHARS_MAX)}</bdi></p>`)}
${log === "screenshots" && (image ? markup`<img src="${image}" alt="Screenshot ${entry.seq}">` : markup`<p class="muted">no image here${entry.image && markup`; SHA-256 ${entry.image.sha256}`}</p>`)}
<details><summary>JSON</summary><pre><bdi>${cut(JSON.stringify(entry, undefined, 2), JSON_CHARS_MAX)}</bdi></pre></details>
</li>`;
}

function agentOf(name) {
  return name ? markup`<b class="agent h${hue(name)}"><bdi>${short(name, 200)}</bdi></b>` : markup`<span class="muted">no agent</span>`;
}

function statusBadge(status) {
  return status && markup`<span class="status">${short(asText(status), 60)}</span>`;
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function pretty(text) {
  try {
    return JSON.stringify(parseExact(text), undefined, 2);
  } catch {
    return text;
  }
}

function cut(text, max) {
  return text.length > max ? `${text.slice(0, max)}\n… ${count(text.length - max)} characters more` : text;
}

/** A piece of HTML that is safe to join. */
class Markup {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

const NAMED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** A text as HTML shows it. Characters that no HTML may have become U+FFFD. */
export function escaped(text) {
  return String(text)
    .toWellFormed()
    .replace(/[&<>"']/g, (one) => NAMED[one])
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/g, "\ufffd");
}

/** A template of HTML: markup and lists of it are joined, nothing is nothing, anything else is escaped. */
export function markup(strings, ...values) {
  return new Markup(strings.reduce((all, string, index) => all + joined(values[index - 1]) + string));
}

function joined(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(joined).join("");
  return value === undefined || value === null || value === false ? "" : escaped(value);
}
