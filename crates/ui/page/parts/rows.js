// A list of which only the visible part is in the document: every row has the same height.

import { cx, html, useEffect, useLayoutEffect, useRef, useState } from "../core/dom.js";

/** Rows above and below the visible ones. */
const SPARE = 8;

/**
 * Shows `count` rows of `height` pixels with `render(index)`. `reveal` scrolls that index into view when it changes.
 * The list takes the height that its class gives.
 */
export function Rows({ count, height, render, reveal, class: extra, label, role = "list", onNearEnd, ...rest }) {
  const ref = useRef();
  const [range, setRange] = useState([0, 60]);
  const measure = () => {
    // The observer tells once more after the list has gone.
    if (!ref.current) return;
    const { scrollTop, clientHeight } = ref.current;
    const first = Math.max(0, Math.floor(scrollTop / height) - SPARE);
    const last = Math.min(count, Math.ceil((scrollTop + clientHeight) / height) + SPARE);
    setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    if (onNearEnd && last >= count - SPARE) onNearEnd();
  };
  useLayoutEffect(measure, [count, height]);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, [count, height]);
  useLayoutEffect(() => {
    if (reveal === undefined || reveal < 0) return;
    const { scrollTop, clientHeight } = ref.current;
    const top = reveal * height;
    if (top < scrollTop || top + height > scrollTop + clientHeight) ref.current.scrollTop = top - clientHeight / 3;
  }, [reveal, count]);
  const [first, last] = range;
  const shown = [];
  for (let index = first; index < Math.min(last, count); index += 1) {
    shown.push(html`<div class="at" key=${index} style=${{ top: `${index * height}px`, height: `${height}px` }} role=${role === "list" ? "listitem" : undefined}>${render(index)}</div>`);
  }
  return html`<div class=${cx("windowed", extra)} ref=${ref} onScroll=${measure} role=${role} aria-label=${label} tabindex="0" ...${rest}>
    <div class="space" style=${{ height: `${count * height}px` }} role="presentation">${shown}</div>
  </div>`;
}
