// The state of a request in words.

import { now } from "../../core/clock.js";
import { html } from "../../core/dom.js";
import { plural, span } from "../../core/format.js";
import { STATES } from "../../core/tasks/tasks.js";

/** `1 of 3 attempts failed`. */
export function attempts({ failures = 0, attempts: max }) {
  return max ? `${failures} of ${plural(max, "attempt")} failed` : `${plural(failures, "attempt")} failed`;
}

/** The name of a state in its colour. */
export function TaskState({ state }) {
  return html`<span class=${`task-state task-${state}`}>${STATES[state]}</span>`;
}

/** The time that a claim still has. */
export function Left({ until }) {
  const ms = new Date(until) - now.value;
  return html`<span class="num nowrap">${ms > 0 ? `${span(ms)} left` : "about to lapse"}</span>`;
}
