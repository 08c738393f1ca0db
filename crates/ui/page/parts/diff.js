// The lines of a difference: what was removed and added, with signs, and how many unchanged ones are left out.

import { cx, html } from "../core/dom.js";
import { plural } from "../core/format.js";

const SIGNS = { added: "+", removed: "−", same: " ", fold: "⋯" };

/** Shows lines of `lineDiff`. */
export function DiffLines({ lines, label }) {
  return html`<div class="diff" role="group" aria-label=${label} tabindex="0">${lines.map(({ kind, text, count }) => html`<div class=${cx("diff-line", kind)}><span class="sign" aria-label=${kind}>${SIGNS[kind]}</span><bdi>${kind === "fold" ? plural(count, "unchanged line") : text}</bdi></div>`)}</div>`;
}
