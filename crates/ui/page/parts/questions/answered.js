// What was answered on this page, the last first.

import { href } from "../../core/address.js";
import { html } from "../../core/dom.js";
import { brief, short } from "../../core/format.js";
import { keyOf } from "../../core/inbox.js";
import { optionsOf } from "../../core/questions/questions.js";
import { itemText } from "../../core/timeline.js";
import { Agent, Ago } from "../basics.js";

export function Answered({ list }) {
  if (list.length === 0) return null;
  return html`<section class="answered" aria-label="Answered here">
    <h2>Answered here</h2>
    <ul>${list.map((one) => html`<li key=${keyOf(one)}>
      <div class="row small muted"><${Agent} name=${one.agent} /><span>in</span><a class="truncate" href=${href("timeline", one.session, { around: one.revision })}>${one.session} #${one.seq}</a><span class="grow"></span><${Ago} at=${one.answeredAt} /></div>
      <div>${short(itemText("questions", one.item), 200)}</div>
      <div>${one.skipped ? html`<span class="muted">Skipped</span>` : html`<strong>${said(one)}</strong>`}</div>
    </li>`)}</ul>
  </section>`;
}

/** The answer as it was offered, or as it was written. */
function said({ item, answer }) {
  return brief(optionsOf(item).find(({ value }) => value === answer)?.label ?? answer, 300);
}
