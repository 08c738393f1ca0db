// A small image of an entry, or a sign where it cannot be shown.

import { html, useEffect, useState } from "../core/dom.js";
import { imageSource } from "../core/shots.js";
import { Icon } from "./icon.js";

/** The image of an entry, at most `px` on its longest side; further properties are the element's. Nothing if it has none. */
export function Picture({ entry, px, alt = "", ...props }) {
  const src = imageSource(entry, px);
  const [broken, setBroken] = useState(false);
  useEffect(() => setBroken(false), [src]);
  if (src === undefined) return null;
  if (broken) return html`<span class="picture-broken muted small" title="The image cannot be shown"><${Icon} name="warn" label="The image cannot be shown" />${alt}</span>`;
  return html`<img decoding="async" ...${props} src=${src} alt=${alt} onError=${() => setBroken(true)} />`;
}
