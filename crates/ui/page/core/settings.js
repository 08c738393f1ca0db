// What a browser remembers of its user: theme, compact or expanded, the navigation's width.

import { signal } from "./dom.js";

const PREFIX = "blackboard.";

/** A signal that is kept in the browser's storage, if there is one. */
export function remembered(name, initial) {
  const kept = signal(read(name) ?? initial);
  kept.subscribe((value) => {
    try {
      localStorage.setItem(PREFIX + name, typeof value === "string" ? value : JSON.stringify(value));
    } catch {
      // Storage is full or switched off: the setting lasts as long as the page.
    }
  });
  return kept;
}

function read(name) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    if (text === null) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  } catch {
    return undefined;
  }
}

/** The name under which one judges and cancels, unless the token has an agent's: an object, since a text may read as another value. */
export const author = remembered("author", { name: "" });

/** "system", "light" or "dark". */
export const theme = remembered("theme", "system");

theme.subscribe((value) => {
  if (value === "light" || value === "dark") document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
});

/** True while all entries of the timeline are shown by themselves, with their texts. */
export const expanded = remembered("expanded", false);

/** True while browser notifications of new questions are wanted. */
export const notify = remembered("notify", false);
