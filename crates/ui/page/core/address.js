// The address of a view: `#/sessions/NAME/VIEW?filters`. Every selection is in it, so that it can be sent to others.

import { batch, signal } from "./dom.js";

/** The views of one session, in the order of the navigation. */
export const SESSION_VIEWS = ["timeline", "screenshots", "state", "prompt", "past", "agents", "tasks"];

/** The views over all sessions. */
export const TOP_VIEWS = ["sessions", "questions", "search"];

/** Parses the part of an address after `#`. */
export function parse(hash) {
  const text = hash.replace(/^#/, "");
  const [path, query = ""] = splitOnce(text, "?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  const params = Object.fromEntries(new URLSearchParams(query));
  const [top, session, view] = parts;
  if (top === "sessions" && session !== undefined) {
    return { view: SESSION_VIEWS.includes(view) ? view : "timeline", session, params };
  }
  return { view: TOP_VIEWS.includes(top) ? top : "sessions", session: undefined, params };
}

/** Builds the address of a view. Parameters that are undefined, null or empty are left out. */
export function href(view, session, params = {}) {
  const path = session === undefined ? `#/${view}` : `#/sessions/${encodeURIComponent(session)}/${view}`;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The present place: `{view, session, params}`. */
export const place = signal(parse(location.hash));

/** Goes to an address made by [`href`]. */
export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = parse(location.hash);
}

/** Changes parameters of the present address; null removes one. Replaces the entry of the browser's history. */
export function setParams(changes, { replace = true } = {}) {
  const { view, session, params } = place.peek();
  go(href(view, session, { ...params, ...changes }), { replace });
}

/** The names in a parameter that is a list: by commas, or a JSON array where a name has a comma. */
export function namesIn(text) {
  if (!text) return [];
  try {
    return text.startsWith("[") ? JSON.parse(text) : text.split(",");
  } catch {
    return text.split(",");
  }
}

/** Names as such a parameter; null without any. */
export function listed(names) {
  return names.length === 0 ? null : names.some((name) => /[,[]/.test(name)) ? JSON.stringify(names) : names.join(",");
}

/** The whole URL of an address, to send to others. */
export function absolute(address) {
  return new URL(address, `${location.origin}${location.pathname}`).href;
}

addEventListener("hashchange", () => batch(() => (place.value = parse(location.hash))));
addEventListener("popstate", () => batch(() => (place.value = parse(location.hash))));

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
