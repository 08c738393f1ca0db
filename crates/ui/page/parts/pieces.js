// A long text in pieces: made in short turns, and each laid out once it is near the visible part.

import { html, useEffect, useLayoutEffect, useMemo, useState } from "../core/dom.js";

/** The characters of a piece; it ends at the next line's end. */
export const PIECE_CHARS = 20_000;

/** How long pieces are made before the page does something else. */
const TURN_MS = 10;

/** Shows what `make(text)` yields, `[[class, text], …]` a piece, up to `max` characters. `onCut(isCut)` tells whether some are left. */
export function Pieces({ text, make, max, onCut, ...rest }) {
  const held = useMemo(() => ({ from: make(text), shown: [], chars: 0, done: false }), [text, make]);
  const [, tell] = useState(0);
  const isDue = () => !held.done && held.chars < max;
  if (held.chars === 0 && isDue()) turn(held, isDue);
  const isCut = !held.done && held.chars >= max;
  useEffect(() => {
    if (!isDue()) return undefined;
    const timer = setTimeout(() => {
      turn(held, isDue);
      tell((n) => n + 1);
    });
    return () => clearTimeout(timer);
  });
  useLayoutEffect(() => onCut?.(isCut), [isCut]);
  return html`<pre tabindex="0" ...${rest}>${[...held.shown]}</pre>`;
}

function turn(held, isDue) {
  for (const end = performance.now() + TURN_MS; isDue() && performance.now() < end; ) {
    const { value, done } = held.from.next();
    held.done = done;
    held.shown.push(html`<span class="piece">${value.map(([kind, part]) => html`<span class=${kind}>${part}</span>`)}</span>`);
    for (const [, part] of value) held.chars += part.length;
  }
}

/** A plain text in pieces that end at a line's end, or else between words. */
export function* lines(text) {
  let from = 0;
  while (text.length - from > PIECE_CHARS) {
    const most = from + PIECE_CHARS;
    let end = text.lastIndexOf("\n", most);
    if (end <= from) end = text.lastIndexOf(" ", most);
    const isBreak = end > from;
    yield [["", text.slice(from, isBreak ? end : most)]];
    from = isBreak ? end + 1 : most;
  }
  return [["", text.slice(from)]];
}
