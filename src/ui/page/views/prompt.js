// Prompt.

import { html } from "../core/dom.js";

export function Prompt() {
  return html`<div class="view padded"></div>`;
}
