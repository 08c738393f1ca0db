// JSON as it was stored: its own numbers, member order and repeated names, coloured and indented.
//
// The text is split into tokens and never parsed, since JavaScript's numbers and objects would change it.

import { html, useMemo, useState } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { Button } from "./basics.js";

/** Longer texts are cut until one asks for all. */
const SHOWN_CHARS = 60_000;

/** The longest text that is coloured; beyond, it is shown plain. */
const COLOURED_CHARS_MAX = 2_000_000;

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]|\s+|./gs;

/** Indents a JSON text without changing a token of it. */
export function indent(text) {
  let depth = 0;
  let out = "";
  let before = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^\s/.test(token)) continue;
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    if (before === "{" || before === "[") out += closes ? "" : line();
    else if (closes) out += line();
    else if (before === ",") out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out;
}

/** Splits an indented JSON text into `[class, text]`. */
function tokens(text) {
  const found = [];
  let rest = 0;
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0];
    let kind = "p";
    if (token[0] === '"') kind = /^\s*:/.test(text.slice(match.index + token.length, match.index + token.length + 8)) ? "k" : "s";
    else if (/^[-\d]/.test(token)) kind = "n";
    else if (/^[tfn]/.test(token)) kind = "l";
    const last = found[found.length - 1];
    if (last && last[0] === kind) last[1] += token;
    else found.push([kind, token]);
    rest = match.index + token.length;
  }
  if (rest < text.length) found.push(["p", text.slice(rest)]);
  return found;
}

/** Shows a JSON text (`text`), or any value (`value`). */
export function Json({ text, value, max = SHOWN_CHARS }) {
  const [all, setAll] = useState(false);
  const whole = useMemo(() => indent(text ?? JSON.stringify(value) ?? ""), [text, value]);
  const cut = !all && whole.length > max;
  const shown = cut ? whole.slice(0, max) : whole;
  const parts = useMemo(() => (shown.length > COLOURED_CHARS_MAX ? [["p", shown]] : tokens(shown)), [shown]);
  return html`<pre class="json" tabindex="0" aria-label="JSON">${parts.map(([kind, token]) => html`<span class=${kind}>${token}</span>`)}</pre>
    ${cut && html`<p><${Button} onClick=${() => setAll(true)}>Show all ${bytes(whole.length)}<//></p>`}`;
}
