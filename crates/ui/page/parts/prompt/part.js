// One part of a prompt: a text under its heading, or an image.

import { cx, html, useState } from "../../core/dom.js";
import { bytes } from "../../core/format.js";
import { imageSource } from "../../core/prompt/parts.js";
import { unescaped } from "../../core/state/json-tree.js";
import { Button, Copy } from "../basics.js";
import { coloured } from "../json.js";
import { lines, Pieces } from "../pieces.js";
import { sectionHue } from "./shares.js";

/** The characters of a text that are shown at first, and how many more each time. */
const SHOWN_CHARS = 40_000;
const MORE_CHARS = 400_000;

export function Part({ part, index, raw }) {
  if (part.kind === "image") return html`<${Image} part=${part} />`;
  const { heading, text, whole } = part;
  const name = heading ?? (whole.startsWith("[Left out") ? "Note" : "Screenshots as text");
  const isList = !raw && !part.isMarkdown && /^[[{]/.test(text) && heading !== undefined;
  const shown = raw ? whole : text;
  return html`<article class=${cx("prompt-part", `hue-${sectionHue(heading === "Blackboard" ? "Heading" : name)}`)} aria-label=${heading ?? `Part ${index + 1}`}>
    <header class="row"><h2 class="grow truncate">${heading ?? html`<span class="muted">${name}</span>`}</h2>
      ${part.cached && html`<span class="badge" title="The prefix up to here has a cache_control">cache mark</span>`}
      <span class="muted small num nowrap">${bytes(part.bytes)}</span><${Copy} label="Copy this part" text=${whole} /></header>
    ${shown.trim() !== "" && html`<${Text} text=${shown} isJson=${isList} />`}
  </article>`;
}

const json = (text) => coloured(text, unescaped);

/** A text of which the beginning is shown, then more on demand. */
function Text({ text, isJson }) {
  const [max, setMax] = useState(SHOWN_CHARS);
  const cut = text.length > max;
  return html`<div class="body">
    ${isJson
      ? html`<${Pieces} class="json" aria-label="JSON" text=${text} make=${json} max=${max} />`
      : html`<${Pieces} class="prompt-text" dir="auto" text=${text} make=${lines} max=${max} />`}
    ${cut && html`<div class="row wrap prompt-more"><span class="muted small">${bytes(max)} of ${bytes(text.length)} are shown.</span>
      ${text.length > max + MORE_CHARS && html`<${Button} onClick=${() => setMax(max + MORE_CHARS)}>Show ${bytes(MORE_CHARS)} more<//>`}
      <${Button} onClick=${() => setMax(Infinity)}>Show all ${bytes(text.length)}<//></div>`}
  </div>`;
}

function Image({ part }) {
  const src = imageSource(part.src);
  const said = [part.type, part.bytes && bytes(part.bytes)].filter(Boolean).join(", ");
  return html`<article class="prompt-part hue-${sectionHue("image")}" aria-label="Image">
    <header class="row"><h2 class="grow">Image</h2>${part.cached && html`<span class="badge">cache mark</span>`}<span class="muted small num nowrap">${said}</span></header>
    <div class="body">${src
      ? html`<img class="prompt-image" src=${src} loading="lazy" alt=${`Image of the prompt${said ? `, ${said}` : ""}`} />`
      : html`<p class="muted small">${part.src === "" ? "The part has no image." : "The image is elsewhere, or of a type that the page does not show:"}</p><code class="codebox">${part.src.slice(0, 300)}</code>`}</div>
  </article>`;
}
