// Search.

import { html } from "../core/dom.js";

export function Search() {
  return html`<div class="view padded"></div>`;
}
