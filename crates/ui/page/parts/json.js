// JSON as it was stored: its own numbers, member order and repeated names, coloured and indented.
//
// The text is split into tokens and never parsed, since JavaScript's numbers and objects would change it.

import { html, useMemo, useState } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { Button } from "./basics.js";
import { PIECE_CHARS, Pieces } from "./pieces.js";

/** Longer texts are cut until one asks for all. */
const SHOWN_CHARS = 60_000;

/** The longest text that is coloured; beyond, it is shown plain. */
const COLOURED_CHARS_MAX = 2_000_000;

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]|\s+|./gs;

/** The tokens of a JSON text: `[gap, token, kind]`, where the gap is the white space that indents it. */
function* tokens(text) {
  let depth = 0;
  let before = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (/^\s/.test(token)) continue;
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    let gap = "";
    if (before === "{" || before === "[") gap = closes ? "" : line();
    else if (closes || before === ",") gap = line();
    else if (before === ":") gap = " ";
    let kind = "p";
    if (token[0] === '"') kind = /^\s*:/.test(text.slice(index + token.length, index + token.length + 8)) ? "k" : "s";
    else if (/^[-\d]/.test(token)) kind = "n";
    else if (/^[tfn]/.test(token)) kind = "l";
    yield [gap, token, kind];
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
}

/** Indents a JSON text without changing a token of it. */
export function indent(text) {
  let out = "";
  for (const [gap, token] of tokens(text)) out += gap + token;
  return out;
}

/** A JSON text in coloured pieces; `change` makes of each token what is shown. */
export function* coloured(text, change = (token) => token) {
  let piece = [];
  let chars = 0;
  let all = 0;
  const add = (kind, part) => {
    const last = piece[piece.length - 1];
    if (last && last[0] === kind) last[1] += part;
    else piece.push([kind, part]);
    chars += part.length;
    all += part.length;
  };
  for (const [gap, token, kind] of tokens(text)) {
    const isFull = chars >= PIECE_CHARS && gap.startsWith("\n");
    if (isFull) {
      yield piece;
      piece = [];
      chars = 0;
    }
    if (gap !== "") add("p", isFull ? gap.slice(1) : gap);
    const shown = change(token);
    for (let from = 0; from < shown.length; from += PIECE_CHARS) {
      if (from > 0) {
        yield piece;
        piece = [];
        chars = 0;
      }
      add(all < COLOURED_CHARS_MAX ? kind : "p", shown.slice(from, from + PIECE_CHARS));
    }
  }
  return piece;
}

/** Shows a JSON text (`text`), or any value (`value`). */
export function Json({ text, value, max = SHOWN_CHARS }) {
  const [all, setAll] = useState(false);
  const [isCut, setCut] = useState(false);
  const whole = useMemo(() => text ?? JSON.stringify(value) ?? "", [text, value]);
  return html`<${Pieces} class="json" aria-label="JSON" text=${whole} make=${coloured} max=${all ? Infinity : max} onCut=${setCut} />
    ${isCut && html`<p><${Button} onClick=${() => setAll(true)}>Show all ${bytes(whole.length)}<//></p>`}`;
}
