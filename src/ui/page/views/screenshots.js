// Screenshots.

import { html } from "../core/dom.js";

export function Screenshots() {
  return html`<div class="view padded"></div>`;
}
