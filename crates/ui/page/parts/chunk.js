// A part of a long list that is in the document only while it is near the visible part. Away, an empty box keeps its height.

import { html, useEffect, useRef, useState } from "../core/dom.js";

/** The distance from the visible part at which a chunk is rendered. */
const NEAR_PX = 1200;

/** The height of an item that was never rendered. */
const GUESS_PX = 48;

const observers = new WeakMap();

/** Renders `items` with `render(item)`; again only when `sign` changes or the chunk comes near. */
export function Chunk({ id, items, sign, render, scroller }) {
  const ref = useRef();
  const height = useRef();
  const shown = useRef({});
  const [near, setNear] = useState(false);
  useEffect(
    () => watch(scroller.current, ref.current, (isNear, px) => {
      if (!isNear) height.current = px;
      setNear(isNear);
    }),
    [scroller],
  );
  if (near && shown.current.sign !== sign) shown.current = { sign, content: items.map(render) };
  const style = near ? undefined : { height: `${height.current ?? items.length * GUESS_PX}px` };
  return html`<div class="chunk" data-chunk=${id} ref=${ref} style=${style}>${near && shown.current.content}</div>`;
}

/** Calls `tell(isNear, height)` when the element comes near the visible part of the scroller, and when it goes. */
function watch(scroller, element, tell) {
  let shared = observers.get(scroller);
  if (!shared) {
    const tells = new WeakMap();
    const told = (entries) => {
      for (const entry of entries) tells.get(entry.target)?.(entry.isIntersecting, entry.boundingClientRect.height);
    };
    shared = { tells, observer: new IntersectionObserver(told, { root: scroller, rootMargin: `${NEAR_PX}px 0px` }) };
    observers.set(scroller, shared);
  }
  shared.tells.set(element, tell);
  shared.observer.observe(element);
  return () => shared.observer.unobserve(element);
}
