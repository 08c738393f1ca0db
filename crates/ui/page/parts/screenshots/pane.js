// One large image with zoom and pan. Panes side by side share a view, so that both show the same part.

import { cx, html, useEffect, useRef, useState } from "../../core/dom.js";
import { fitScale, held, imageSource, labelText, zoomed } from "../../core/shots.js";
import { short } from "../../core/format.js";
import { Icon } from "../icon.js";

/** The zoom of one step of the wheel: a pixel of its movement. */
const WHEEL_RATE = 0.0016;

/** Shows an entry's image by `view`: undefined to fit, else `{scale, x, y}`. `over` is a second image, shown as the difference. */
export function Pane({ entry, over, view, onView, label, class: extra }) {
  const ref = useRef();
  const pane = useSize(ref);
  const [natural, setNatural] = useState();
  const [broken, setBroken] = useState(false);
  const image = entry?.image;
  const [source, overSource] = [imageSource(entry), imageSource(over)];
  const size = { width: image?.width ?? natural?.width ?? 0, height: image?.height ?? natural?.height ?? 0 };
  const present = view ?? { scale: fitScale(size, pane), x: 0, y: 0 };
  const latest = useRef();
  latest.current = { present, pane, size, onView };
  useEffect(() => setBroken(false), [source]);
  useWheel(ref, latest);
  const drag = useDrag(latest);
  if (entry && !source) return html`<div class=${cx("pane", "pane-none", extra)} ref=${ref} role="group" aria-label=${label}><${Label} entry=${entry} /></div>`;
  const loaded = (event) => setNatural({ width: event.currentTarget.naturalWidth, height: event.currentTarget.naturalHeight });
  return html`<div class=${cx("pane", view && "pane-moves", over && "pane-difference", extra)} ref=${ref} role="group" aria-label=${label} data-scale=${present.scale} ...${drag}>
    ${source && !broken && html`<img class="pane-image" key=${source} src=${source} alt=${label} draggable="false" onLoad=${loaded} onError=${() => setBroken(true)} style=${placed(size, present)} />`}
    ${overSource && html`<img class="pane-image pane-over" key=${`over ${overSource}`} src=${overSource} alt="" draggable="false" style=${placed(over.image ?? {}, present)} />`}
    ${broken && html`<p class="pane-note" role="alert">The image cannot be shown.</p>`}
  </div>`;
}

function placed({ width, height }, { scale, x, y }) {
  const sized = width ? { width: `${width}px`, height: `${height}px` } : {};
  return { ...sized, transform: `translate(-50%, -50%) translate(${x}px, ${y}px) scale(${scale})`, imageRendering: scale >= 3 ? "pixelated" : "auto" };
}

function Label({ entry }) {
  return html`<div class="pane-label"><${Icon} name="screenshot" /><p>No image is stored with this screenshot.</p>
    ${labelText(entry.item) && html`<p class="mono"><bdi>${short(labelText(entry.item), 2000)}</bdi></p>`}
  </div>`;
}

function useSize(ref) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => setSize({ width: contentRect.width, height: contentRect.height }));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return size;
}

function useWheel(ref, latest) {
  useEffect(() => {
    const element = ref.current;
    const wheel = (event) => {
      event.preventDefault();
      const { present, pane, size, onView } = latest.current;
      const box = element.getBoundingClientRect();
      const at = { x: event.clientX - box.left - box.width / 2, y: event.clientY - box.top - box.height / 2 };
      const step = Math.max(-200, Math.min(200, event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY));
      onView(held(zoomed(present, Math.exp(-step * WHEEL_RATE), at), size, pane));
    };
    // A passive listener could not keep the page from scrolling.
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
}

function useDrag(latest) {
  const from = useRef();
  const end = () => (from.current = undefined);
  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      from.current = { x: event.clientX, y: event.clientY, view: latest.current.present };
    },
    onPointerMove: (event) => {
      if (!from.current) return;
      const { x, y, view } = from.current;
      const { pane, size, onView } = latest.current;
      onView(held({ ...view, x: view.x + event.clientX - x, y: view.y + event.clientY - y }, size, pane));
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}
