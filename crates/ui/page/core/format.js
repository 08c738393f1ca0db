// Numbers, times and texts as people read them.

import { numberOf, parseExact } from "./json.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const grouped = new Intl.NumberFormat("en");

/** `14:03:27`, with the day in front if it is not today. */
export function time(at, now = Date.now()) {
  const date = new Date(at);
  const text = clock.format(date);
  return new Date(now).toDateString() === date.toDateString() ? text : `${day.format(date)}, ${text}`;
}

/** The whole date and time, for a title. */
export function fullTime(at) {
  return at ? whole.format(new Date(at)) : "";
}

/** `now`, `12 s`, `5 min`, `3 h`, `2 d`. */
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`.replace(/ 0 min$/, "");
  return `${Math.floor(s / 86_400)} d`;
}

/** `just now`, `12 s ago`, `3 h ago`. */
export function ago(at, now = Date.now()) {
  const ms = now - new Date(at).getTime();
  return ms < 2000 ? "just now" : `${span(ms)} ago`;
}

/** Seconds as the original's `Duration`, or milliseconds: `0.8 s`, `12 s`, `3 min 20 s`. */
export function seconds(s) {
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  return s < 600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.round(s / 60)} min`;
}

/** `1,204`. */
export function count(n) {
  return grouped.format(n ?? 0);
}

/** `1 entry`, `3 entries`. */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** `812 B`, `14 kB`, `3.2 MB`. */
export function bytes(n) {
  if (n < 1000) return `${n ?? 0} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} kB`;
  return n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(1)} GB`;
}

/** `$0.0213`, `$1.20`: costs as agents report them, in dollars. */
export function cost(n) {
  if (!n) return "$0";
  return `$${n < 0.1 ? n.toFixed(4).replace(/0{1,2}$/, "") : n.toFixed(2)}`;
}

/** Cuts a text at a number of characters. */
export function short(text, max = 160) {
  const line = String(text);
  return line.length > max ? `${line.slice(0, max - 1).trimEnd()}…` : line;
}

/** An object, or a text that holds one, as `name: value` pairs; any other text as it is. */
export function pairs(value) {
  let object = value;
  if (typeof value === "string") {
    if (!value.startsWith("{") || value.length > 10_000) return value;
    try {
      object = parseExact(value);
    } catch {
      return value;
    }
  }
  if (object === undefined || object === null) return "";
  if (typeof object !== "object" || Array.isArray(object) || numberOf(object) !== undefined) return JSON.stringify(object);
  return Object.entries(object).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`).join(", ");
}

/** True if a text has each of some words, whatever their case. */
export function hasWords(text, words) {
  const searched = text.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => searched.includes(word));
}

/** Any JSON value as one short line. */
export function brief(value, max = 120) {
  if (typeof value === "string") return short(value.replace(/\s+/g, " "), max);
  return short(JSON.stringify(value) ?? "", max);
}

/** The hue of an agent's colour, 0 to 11, the same in every view and on every machine. */
export function hue(name) {
  let hash = 2166136261;
  for (const char of String(name)) hash = Math.imul(hash ^ char.codePointAt(0), 16777619);
  // The low bits of FNV-1a are mixed badly for short names.
  return ((hash ^ (hash >>> 15)) >>> 0) % 12;
}
