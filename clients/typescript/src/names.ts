/**
 * Addresses: names and state paths in a path, lists in a query.
 *
 * Names that would change the address itself are refused here, since a URL's parser takes `.` and `..` away. All
 * other rules are the server's.
 */

import { UnsupportedValue } from "./errors.js";

/** A path in the state: a text as `tasks/t1`, or its keys, which may contain any character. */
export type StatePath = string | readonly string[];

/** Returns a name, percent-encoded for a path or for `X-Agent-ID`. */
export function encodeName(name: string): string {
  if (name === "" || name === "." || name === "..") {
    throw new UnsupportedValue(
      `${JSON.stringify(name)} is not a name; a name has 1 to 256 bytes and is not '.' or '..'`,
    );
  }
  return encodeText(name);
}

/** Returns the path of these keys: `~` as `~0` and `/` as `~1` (RFC 6901), joined by `/`. */
export function statePath(...keys: string[]): string {
  return keys.map((key) => key.replaceAll("~", "~0").replaceAll("/", "~1")).join("/");
}

/** Returns the keys of a path, as events and diffs have it. */
export function stateKeys(path: string): string[] {
  if (path === "") return [];
  return path.split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Returns the text of a path that may be given by its keys. */
export function pathText(path: StatePath): string {
  return typeof path === "string" ? path : statePath(...path);
}

/** Returns a path of the state, encoded key by key: its slashes stay, since many proxies reject `%2F`. */
function encodePath(path: string): string {
  const keys = path.split("/");
  // A proxy may join two slashes, which would be another path.
  if (keys.includes("")) throw new UnsupportedValue(`the path ${JSON.stringify(path)} has an empty key`);
  return keys.map(encodeName).join("/");
}

/** Replaces the parameters in a route's path. */
export function serializePath(route: string, parameters: Record<string, unknown>): string {
  return route.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const value = parameters[name];
    if (typeof value === "string") return name === "path" ? encodePath(value) : encodeName(value);
    if (Number.isSafeInteger(value)) return String(value);
    throw new UnsupportedValue(`the path parameter '${name}' is ${describe(value)}; give a string or a whole number`);
  });
}

/** Returns a query's text. A list is one parameter: joined by commas, or as JSON where a comma would split it. */
export function serializeQuery(query: unknown): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries((query ?? {}) as Record<string, unknown>)) {
    if (value === undefined || value === null) continue;
    const text = Array.isArray(value) ? listText(value.map(String)) : String(value);
    parts.push(`${name}=${encodeText(text)}`);
  }
  return parts.join("&");
}

function listText(names: readonly string[]): string {
  const plain = names.length > 0 && names.every((name) => name !== "" && !/^\[|,/.test(name));
  return plain ? names.join(",") : JSON.stringify(names);
}

function encodeText(text: string): string {
  if (!text.isWellFormed()) {
    throw new UnsupportedValue(`${JSON.stringify(text)} has a lone surrogate, which UTF-8 cannot encode`);
  }
  return encodeURIComponent(text);
}

function describe(value: unknown): string {
  return value === undefined ? "missing" : String(value);
}
