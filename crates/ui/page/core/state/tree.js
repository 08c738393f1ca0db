// The state's document as rows of a tree: places, filter, changes. Pure functions.
//
// A place is `{path, sub}`: the path that the API addresses, and below it the JSON pointer into what has no address of its own
// (elements of arrays; members named "", "." or "..").

import { children, parseJson, unescaped } from "./json-tree.js";

/** A key as a segment of a path: `a/b` is `a~1b`. */
export function segment(key) {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}

/** The key of a segment. */
export function keyOf(part) {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** The keys of a path. */
export function keysOf(path) {
  return path === "" ? [] : path.split("/").map(keyOf);
}

/** The keys of a JSON pointer. */
export function pointerKeys(sub) {
  return sub === "" ? [] : sub.slice(1).split("/").map(keyOf);
}

/** The keys of a place, from the root. */
export function keysTo({ path, sub }) {
  return [...keysOf(path), ...pointerKeys(sub)];
}

/** The places from the first below the root to this one. */
export function placesTo({ path, sub }) {
  const found = [];
  let at = ROOT;
  for (const key of keysOf(path)) found.push((at = below(at, key)));
  for (const key of pointerKeys(sub)) found.push((at = { path, sub: `${at.sub}/${segment(key)}` }));
  return found;
}

/** True if a key can stand in a path of the API. */
export function isAddressable(key) {
  return typeof key === "string" && key !== "" && key !== "." && key !== "..";
}

/** The place of a member or element. */
export function below({ path, sub }, key) {
  if (sub !== "" || !isAddressable(key)) return { path, sub: `${sub}/${segment(key)}` };
  return { path: path === "" ? segment(key) : `${path}/${segment(key)}`, sub: "" };
}

/** A place as one text, for maps and for people: `plan/steps/0`. */
export function idOf({ path, sub }) {
  return `${path}${sub}`;
}

export const ROOT = { path: "", sub: "" };

/** The node at keys, or undefined. Elements are found by their index. */
export function nodeAt(root, keys) {
  let node = root;
  for (const key of keys) {
    if (node?.kind === "object") node = node.members.get(key);
    else if (node?.kind === "array") node = /^\d+$/.test(key) ? node.elements[Number(key)] : undefined;
    else return undefined;
  }
  return node;
}

/** The node at a place. */
export function nodeOf(root, place) {
  return nodeAt(root, keysTo(place));
}

/** The tree with another value at a path, or without one. Returns undefined if what is above is no object. */
export function replaced(root, keys, node) {
  if (keys.length === 0) return node ?? parseJson("{}");
  if (root?.kind !== "object") return undefined;
  const [key, ...rest] = keys;
  const members = new Map(root.members);
  const before = members.get(key);
  const after = rest.length === 0 ? node : before && replaced(before, rest, node);
  if (after === undefined && (rest.length > 0 || !before)) return rest.length === 0 ? root : undefined;
  if (after === undefined) members.delete(key);
  else members.set(key, after);
  return { kind: "object", members, size: root.size - (before?.size ?? 0) + (after?.size ?? 0) };
}

/** The places that differ between two trees: changed leaves, and what was added; for what was removed its object. */
export function changes(before, after, max = 1000) {
  const found = new Set();
  walk(before, after, ROOT, found, max);
  return found;
}

function walk(before, after, place, found, max) {
  if (before === after || found.size >= max) return;
  const nested = after.kind === "object" || after.kind === "array";
  if (!before || before.kind !== after.kind || !nested) {
    if (!before || before.kind !== after.kind || before.raw !== after.raw) found.add(idOf(place));
    return;
  }
  const of = after.kind === "object" ? (key) => before.members.get(key) : (key) => before.elements[key];
  for (const [key, value] of children(after)) walk(of(key), value, below(place, key), found, max);
  const gone = after.kind === "object" ? [...before.members.keys()].some((key) => !after.members.has(key)) : before.elements.length > after.elements.length;
  if (gone) found.add(idOf(place));
}

/** The depth to which a tree is open at first: as deep as at most `max` rows show. */
export function openDepth(root, max = 60) {
  let level = children(root).map(([, node]) => node);
  let rows = level.length;
  let depth = 0;
  while (level.length > 0 && depth < 8) {
    level = level.flatMap((node) => children(node).map(([, value]) => value));
    rows += level.length;
    if (rows > max) return depth;
    depth += 1;
  }
  return depth;
}

/** What a filter shows: the matches by path or value and all above them. Undefined for no filter. */
export function filtered(root, text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return undefined;
  const shown = new Set();
  const matches = new Set();
  const visit = (node, place) => {
    let any = false;
    for (const [key, value] of children(node)) {
      const at = below(place, key);
      const id = idOf(at);
      const hit = id.toLowerCase().includes(wanted) || (value.raw !== undefined && (value.raw.includes("\\") ? unescaped(value.raw) : value.raw).toLowerCase().includes(wanted));
      const inside = visit(value, at);
      if (hit) matches.add(id);
      if (hit || inside) {
        shown.add(id);
        any = true;
      }
    }
    return any;
  };
  visit(root, ROOT);
  return { shown, matches };
}

/**
 * The visible rows, from above: `{id, place, key, node, level, open, parent, position, of}`. `isOpen(id, level)` tells whether
 * a container is open; under a filter, all that it shows is.
 */
export function rowsOf(root, isOpen, filter) {
  const rows = [];
  const add = (node, place, level, parent) => {
    const all = children(node);
    const some = filter ? all.filter(([key]) => filter.shown.has(idOf(below(place, key)))) : all;
    some.forEach(([key, value], position) => {
      const at = below(place, key);
      const id = idOf(at);
      const nested = value.kind === "object" || value.kind === "array";
      const open = nested && (filter ? isOpen(id, level, true) : isOpen(id, level));
      const index = rows.push({ id, place: at, key, node: value, level, nested, open, parent, position: position + 1, of: some.length }) - 1;
      if (open) add(value, at, level + 1, index);
    });
  };
  add(root, ROOT, 1, -1);
  return rows;
}

/** True if a change of a commit is at a path, above it or below it. */
export function touchesPath(change, path) {
  if (change.kind === "restored") return Array.isArray(change.state) ? change.state.some((other) => related(other, path)) : true;
  return String(change.kind).startsWith("state_") && typeof change.path === "string" && related(change.path, path);
}

function related(one, other) {
  return one === other || one === "" || other === "" || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}

/**
 * From commits, newest first: the last one that changed a path, and until when its value stays.
 * Returns `{commit, expires_at, known}`; `known` is false if older commits may say more.
 */
export function lastChange(commits, path, before = {}) {
  let { commit, expires_at, known = false } = before;
  for (const one of commits) {
    for (const change of [...(one.changes ?? [])].reverse()) {
      if (!touchesPath(change, path)) continue;
      commit ??= one;
      const own = change.path === path;
      if (change.kind === "state_put" && own) return { commit, expires_at: change.expires_at, known: true };
      const ends = ["state_put", "state_removed", "state_expired"].includes(change.kind);
      if (change.kind === "restored" || (ends && (own || change.path === "" || path.startsWith(`${change.path}/`)))) return { commit, known: true };
    }
  }
  return { commit, expires_at, known };
}
