// What was typed and not sent: it outlives a change of view, and is the same in every view.

import { signal } from "./dom.js";

const drafts = signal(new Map());

/** The unsent text for something; "" if there is none. */
export function draftOf(key) {
  return drafts.value.get(key) ?? "";
}

/** Keeps an unsent text; an empty one is forgotten. */
export function keepDraft(key, text) {
  const next = new Map(drafts.peek());
  if (text === "") next.delete(key);
  else next.set(key, text);
  drafts.value = next;
}
