// The difference of two long texts by lines: unified, with context, and the unchanged rest folded.

import { diffLines } from "../../vendor/diff/line.js";

/** The time for one difference; beyond, all that differs is shown as removed and added. */
const DIFF_MS = 3000;

/**
 * Returns `{lines: [{kind: "same" | "added" | "removed" | "fold", text, count}], added, removed, exact}` with `context`
 * unchanged lines around each change.
 */
export function lineDiff(before, after, context = 3) {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const middle = (lines) => lines.slice(head, lines.length - tail).map((line) => `${line}\n`).join("");
  const parts = diffLines(middle(old), middle(now), { timeout: DIFF_MS });
  const exact = parts !== undefined;
  const found = [{ kind: "same", lines: old.slice(0, head) }];
  for (const part of parts ?? [{ value: middle(old), removed: true }, { value: middle(now), added: true }]) {
    found.push({ kind: part.added ? "added" : part.removed ? "removed" : "same", lines: part.value.split("\n").slice(0, -1) });
  }
  found.push({ kind: "same", lines: tail > 0 ? old.slice(-tail) : [] });
  const sum = (kind) => found.filter((part) => part.kind === kind).reduce((all, part) => all + part.lines.length, 0);
  return { lines: folded(joined(found), context), added: sum("added"), removed: sum("removed"), exact };
}

/** Joins neighbours of the same kind and leaves empty ones out. */
function joined(parts) {
  const found = [];
  for (const part of parts) {
    const last = found.at(-1);
    if (part.lines.length === 0) continue;
    if (last?.kind === part.kind) last.lines = last.lines.concat(part.lines);
    else found.push(part);
  }
  return found;
}

function folded(parts, context) {
  const lines = [];
  const put = (kind, some) => some.forEach((text) => lines.push({ kind, text }));
  parts.forEach(({ kind, lines: some }, index) => {
    const first = index === 0 ? 0 : context;
    const last = index === parts.length - 1 ? 0 : context;
    if (kind !== "same" || some.length <= first + last + 1) return put(kind, some);
    put(kind, some.slice(0, first));
    lines.push({ kind: "fold", count: some.length - first - last });
    return put(kind, last > 0 ? some.slice(-last) : []);
  });
  return lines;
}
