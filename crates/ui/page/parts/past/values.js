// Two JSON values as what changed between them, line by line.

import { cx, html, useMemo, useState } from "../../core/dom.js";
import { bytes } from "../../core/format.js";
import { diffLines } from "../../vendor/diff/line.js";
import { Button } from "../basics.js";
import { indent } from "../json.js";

/** Longer values are shown one after the other, since to compare their lines takes too long. */
const COMPARED_CHARS = 40_000;

/** The characters of one value that are shown until one asks for all. */
const SHOWN_CHARS = 4000;

/** Equal lines beside a change that are shown. */
const CONTEXT = 2;

/** Shows a value that was added (`before` undefined), removed (`after` undefined) or changed. */
export function ValueDiff({ before, after }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => linesOf(before, after), [before, after]);
  const size = lines.reduce((sum, line) => sum + line.text.length, 0);
  const shown = all ? lines : cut(lines);
  return html`<pre class="value-diff" tabindex="0" aria-label="Changed value">${shown.map(({ kind, text }) => html`<span class=${cx("line", kind)}><span class="sign">${{ added: "+", removed: "−", gap: "⋯" }[kind] ?? " "}</span><bdi>${text}</bdi></span>`)}</pre>
    ${shown.length < lines.length || shown.some((line) => line.cut) ? html`<${Button} kind="quiet" onClick=${() => setAll(true)}>Show all ${bytes(size)}<//>` : null}`;
}

function textOf(value) {
  return value === undefined ? "" : indent(JSON.stringify(value));
}

function linesOf(before, after) {
  const [old, now] = [textOf(before), textOf(after)];
  const split = (text, kind) => text.split("\n").map((line) => ({ kind, text: line }));
  if (before === undefined) return split(now, "added");
  if (after === undefined) return split(old, "removed");
  if (old.length + now.length > COMPARED_CHARS) return [...split(old, "removed"), ...split(now, "added")];
  const found = [];
  for (const part of diffLines(`${old}\n`, `${now}\n`)) {
    found.push(...split(part.value.replace(/\n$/, ""), part.added ? "added" : part.removed ? "removed" : "same"));
  }
  return folded(found);
}

/** Leaves out equal lines that are far from a change. */
function folded(lines) {
  const near = lines.map(() => false);
  lines.forEach((line, i) => {
    if (line.kind === "same") return;
    for (let j = Math.max(0, i - CONTEXT); j <= Math.min(lines.length - 1, i + CONTEXT); j += 1) near[j] = true;
  });
  const found = [];
  lines.forEach((line, i) => {
    if (near[i]) found.push(line);
    else if (i === 0 || near[i - 1]) found.push({ kind: "gap", text: "" });
  });
  return found;
}

function cut(lines) {
  const found = [];
  let left = SHOWN_CHARS;
  for (const line of lines) {
    if (left <= 0) break;
    const isLong = line.text.length > left;
    found.push(isLong ? { ...line, text: `${line.text.slice(0, left)}…`, cut: true } : line);
    left -= line.text.length + 1;
  }
  return found;
}
