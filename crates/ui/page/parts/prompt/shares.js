// The tokens of a prompt by section: a stacked bar with its legend.

import { html } from "../../core/dom.js";
import { count, hue } from "../../core/format.js";

const HUES = {
  Heading: 11, "Questions & Answers": 8, "Request History": 4, "Step Trajectories Completed Previously": 6, "Screenshots as text": 2, Screenshots: 2, State: 9, Note: 0,
};

/** The hue of a section, the same in the bar, the legend and the parts. */
export function sectionHue(name) {
  if (HUES[name] !== undefined) return HUES[name];
  if (/image/.test(name)) return 1;
  return name.startsWith("Memory of ") ? hue(name.slice("Memory of ".length)) : 3;
}

export function Shares({ shares }) {
  const total = shares.reduce((sum, one) => sum + one.tokens, 0);
  if (total === 0) return null;
  const percent = (one) => (one.tokens / total) * 100;
  const said = shares.map((one) => `${one.name} ${Math.round(percent(one))} %`).join(", ");
  return html`<figure class="shares">
    <div class="shares-bar" role="img" aria-label=${`Share of tokens: ${said}`}>${shares.filter((one) => one.tokens > 0).map((one) => html`<span class="hue-${sectionHue(one.name)}" style=${{ width: `${percent(one)}%` }} title=${`${one.name}: ${count(Math.round(one.tokens))}`}></span>`)}</div>
    <figcaption><ul class="shares-legend">${shares.map((one) => html`<li class="hue-${sectionHue(one.name)}"><span class="swatch" aria-hidden="true"></span><span class="truncate" title=${one.name}>${one.name}</span> <span class="num muted nowrap">${one.tokens < 1 ? "< 1" : count(Math.round(one.tokens))} · ${percent(one) < 1 ? "< 1" : Math.round(percent(one))} %</span></li>`)}</ul></figcaption>
  </figure>`;
}
