// Tasks.

import { html } from "../core/dom.js";

export function Tasks() {
  return html`<div class="view padded"></div>`;
}
