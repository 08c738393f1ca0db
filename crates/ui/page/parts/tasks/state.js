// The state of a request in words.

import { now } from "../../core/clock.js";
import { html } from "../../core/dom.js";
import { plural, span } from "../../core/format.js";
import { details, stateOf, STATES } from "../../core/tasks/tasks.js";
import { Agent } from "../basics.js";

/** `1 of 3 attempts failed`. */
export function attempts({ failures = 0, attempts: max }) {
  return max ? `${failures} of ${plural(max, "attempt")} failed` : `${plural(failures, "attempt")} failed`;
}

/** The name of a state in its colour. */
export function TaskState({ state }) {
  return html`<span class=${`task-state task-${state}`}>${STATES[state]}</span>`;
}

/** The agent that has a request, did it or ended it. */
export function agentOfWork({ done, failed, cancelled, in_review: review, claim }) {
  return (done ?? failed ?? cancelled ?? review ?? claim)?.agent;
}

/** The state of a request's entry, with who has or ended it, and what it waits for or why it ended. */
export function RequestState({ entry }) {
  const by = agentOfWork(entry);
  return html`<${TaskState} state=${stateOf(entry)} />${by && html`<${Agent} name=${by} />`}${details(entry).map((text) => html`<span class="muted small task-said">${text}</span>`)}`;
}

/** The time that a claim still has. */
export function Left({ until }) {
  const ms = new Date(until) - now.value;
  return html`<span class="num nowrap">${ms > 0 ? `${span(ms)} left` : "about to lapse"}</span>`;
}
