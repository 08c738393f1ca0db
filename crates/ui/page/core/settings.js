// What a browser remembers of its user: the name, the theme, compact or expanded, notifications.

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

/** The name that a person gave, by which the page signs what the person writes: an object, since a text may read as another value. */
const author = remembered("author", { name: "" });

/** The most bytes of a name. */
const NAME_BYTES_MAX = 256;

/** What is wrong with an agent's name, by the server's rule; undefined if nothing is. */
export function nameFault(name) {
  if (name === "." || name === "..") return "A name is not '.' or '..'.";
  if (/[/\p{Cc}\p{Cs}]/u.test(name)) return "A name has no '/' and no control characters.";
  return new TextEncoder().encode(name).length > NAME_BYTES_MAX ? `A name has at most ${NAME_BYTES_MAX} bytes.` : undefined;
}

/** The name that was given; "" if there is none, or none that the server would take. */
export function givenName() {
  const name = author.value?.name;
  return typeof name === "string" && nameFault(name) === undefined ? name : "";
}

/** Keeps a name; an empty one is forgotten. */
export function giveName(name) {
  author.value = { name };
}

/** "system", "light" or "dark". */
export const theme = remembered("theme", "system");

/** True while all entries of the timeline are shown by themselves, with their texts. */
export const expanded = remembered("expanded", false);

/** True while browser notifications of new questions are wanted. */
export const notify = remembered("notify", false);
