// The state of a request in words.

import { now } from "../../core/clock.js";
import { html } from "../../core/dom.js";
import { plural, span } from "../../core/format.js";
import { stateOf, STATES } from "../../core/tasks/tasks.js";
import { Agent } from "../basics.js";

/** `1 of 3 attempts failed`. */
export function attempts({ failures = 0, attempts: max }) {
  return max ? `${failures} of ${plural(max, "attempt")} failed` : `${plural(failures, "attempt")} failed`;
}

/** The name of a state in its colour. */
export function TaskState({ state }) {
  return html`<span class=${`task-state task-${state}`}>${STATES[state]}</span>`;
}

/** The state of a request's entry, with who has or ended it, or what it waits for. */
export function RequestState({ entry }) {
  const { claim, done, failed, blocked_by: before = [] } = entry;
  const by = (done ?? failed ?? claim)?.agent;
  return html`<${TaskState} state=${stateOf(entry)} />${by && html`<${Agent} name=${by} />`}${stateOf(entry) === "waiting" && html`<span class="muted small nowrap">for ${before.slice(0, 4).map((seq) => `#${seq}`).join(", ")}${before.length > 4 ? "…" : ""}</span>`}`;
}

/** The time that a claim still has. */
export function Left({ until }) {
  const ms = new Date(until) - now.value;
  return html`<span class="num nowrap">${ms > 0 ? `${span(ms)} left` : "about to lapse"}</span>`;
}
