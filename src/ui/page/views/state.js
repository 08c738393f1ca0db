// State.

import { html } from "../core/dom.js";

export function State() {
  return html`<div class="view padded"></div>`;
}
