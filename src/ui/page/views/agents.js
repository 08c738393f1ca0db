// Agents.

import { html } from "../core/dom.js";

export function Agents() {
  return html`<div class="view padded"></div>`;
}
