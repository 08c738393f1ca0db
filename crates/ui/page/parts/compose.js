// A text that is written in place and sent by a button or Ctrl Enter. What is typed outlives the view and whatever comes live.

import { html } from "../core/dom.js";
import { draftOf, keepDraft } from "../core/drafts.js";
import { Button } from "./basics.js";

/** The field and its button `action`. `draft` names the text; `fields` stand before the button, `children` after it. */
export function Compose({ draft, label, placeholder = label, action, busy, onSend, fields, children }) {
  const text = draftOf(draft);
  const isIdle = busy || text.trim() === "";
  const key = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || isIdle) return;
    event.preventDefault();
    onSend(text);
  };
  return html`<div class="compose">
    <textarea class="field" aria-label=${label} placeholder=${placeholder} rows=${text.includes("\n") || text.length > 90 ? 4 : 1} value=${text} readonly=${busy} onInput=${(event) => keepDraft(draft, event.currentTarget.value)} onKeyDown=${key}></textarea>
    ${fields}
    <${Button} kind="primary" label=${`${action} (Ctrl Enter)`} disabled=${isIdle} onClick=${() => onSend(text)}>${action}<//>
    ${children}
  </div>`;
}
