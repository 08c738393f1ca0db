// Two JSON values as what changed between them, line by line.

import { html, useMemo, useState } from "../../core/dom.js";
import { bytes } from "../../core/format.js";
import { lineDiff } from "../../core/lines.js";
import { Button } from "../basics.js";
import { DiffLines } from "../diff.js";
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
  return html`<${DiffLines} lines=${shown} label="Changed value" />
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
  return lineDiff(old, now, CONTEXT).lines;
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
