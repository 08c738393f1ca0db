// A search: its query from the address, its hits, and their snippets as plain pieces.

import { TEXT_NAMES } from "./timeline.js";

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", apos: "'" };

/** The choices of a time, in milliseconds. */
export const SINCE = { "1h": 3_600_000, "1d": 86_400_000, "7d": 604_800_000, "30d": 2_592_000_000 };

/** Splits a snippet, whose only tags are `<mark>` and `</mark>`, into `{text, marked}`. */
export function pieces(snippet) {
  const found = [];
  let marked = false;
  for (const part of snippet.split(/(<\/?mark>)/)) {
    if (part === "<mark>") marked = true;
    else if (part === "</mark>") marked = false;
    else if (part !== "") found.push({ text: decoded(part), marked });
  }
  return found;
}

function decoded(text) {
  return text.replace(/&(#?\w+);/g, (whole, name) => ENTITIES[name] ?? whole);
}

/** The API's query for the address's parameters, or undefined while there is nothing to search. */
export function searchQuery({ q = "", in: session, log, agent, since }, { limit, after, now = Date.now() } = {}) {
  if (q.trim() === "") return undefined;
  const span = SINCE[since];
  const from = span ? new Date(Math.floor((now - span) / 60_000) * 60_000).toISOString() : since;
  return { q: q.trim(), session: session || undefined, log: log || undefined, agent: agent || undefined, since: from || undefined, limit, after };
}

/** What opens a hit in its session's timeline: `requests/3`, `agents/NAME/memory/4`. */
export function entryOf(hit) {
  return `${logOf(hit)}/${hit.seq}`;
}

/** The log of a hit: `requests`, `agents/NAME/memory`. */
export function logOf({ log, agent }) {
  return log === "memory" || log === "messages" ? `agents/${agent}/${log}` : log;
}

/** The `keys` that read the text of an entry; undefined for all. A request may have its text under any number. */
export function textKeys(log) {
  if (log === "requests") return undefined;
  return TEXT_NAMES[log].flatMap((name) => [name, name[0].toUpperCase() + name.slice(1)]).join(",");
}

/** A snippet's pieces as one text. */
export function plain(found) {
  return found.map(({ text }) => text).join("");
}

/** Scripts in which the index finds characters and syllables within a run of letters. */
const WITHIN = ["Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Hangul"].map((script) => `\\p{scx=${script}}`).join("");

/** A letter or digit of the other scripts, which separate words. */
const OF_WORD = `[[\\p{L}\\p{N}]--[${WITHIN}]]`;

/** A place that is not within a word. */
const EDGE = `(?:(?<!${OF_WORD})|(?!${OF_WORD}))`;

/** A text as pieces, with the words marked that a snippet has marked. */
export function highlighted(text, found) {
  const words = [...new Set(found.filter(({ marked }) => marked).map((piece) => piece.text))];
  if (words.length === 0) return [{ text, marked: false }];
  // Of two words that begin alike, the longer one is tried first.
  const any = words.sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  const parts = text.split(new RegExp(`(${EDGE}(?:${any})${EDGE})`, "gv"));
  return parts.map((part, i) => ({ text: part, marked: i % 2 === 1 })).filter((piece) => piece.text !== "");
}

/** Hits by entry: an entry that forks have too stands once, `[[hit, …], …]`, one a session. */
export function grouped(hits) {
  const found = new Map();
  for (const hit of hits) {
    const entry = JSON.stringify([entryOf(hit), hit.at, hit.snippet]);
    if (found.has(entry)) found.get(entry).push(hit);
    else found.set(entry, [hit]);
  }
  return [...found.values()];
}
