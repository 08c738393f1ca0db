// Questions.

import { html } from "../core/dom.js";

export function Questions() {
  return html`<div class="view padded"></div>`;
}
