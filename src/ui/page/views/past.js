// Past.

import { html } from "../core/dom.js";

export function Past() {
  return html`<div class="view padded"></div>`;
}
