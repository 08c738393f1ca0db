// Refusals of the past: compacted history and revisions that do not exist are explained.

import { setParams } from "../../core/address.js";
import { html } from "../../core/dom.js";
import { count } from "../../core/format.js";
import { Button, ProblemNote } from "../basics.js";
import { Icon } from "../icon.js";

/** A refusal; `oldest` is the oldest revision that is kept. */
export function PastProblem({ error, oldest, retry, param = "at" }) {
  if (!error) return null;
  if (error.code === "history-compacted") {
    return html`<div class="past-gone" role="alert"><${Icon} name="past" /><div class="grow">
      <p>This revision is compacted: the board is retained from revision ${count(error.body?.oldest_revision ?? oldest)} on.</p>
      <p class="muted small">The session's setting <code>history</code> says how much is kept; a fork begins with the revision that it was made from.</p>
    </div>${oldest !== undefined && html`<${Button} onClick=${() => setParams({ [param]: oldest })}>Oldest kept<//>`}</div>`;
  }
  if (error.code === "revision-not-found" || error.code === "checkpoint-not-found") {
    return html`<div class="past-gone" role="alert"><${Icon} name="past" /><div class="grow"><p>${error.message}.</p></div><${Button} onClick=${() => setParams({ [param]: null })}>Now<//></div>`;
  }
  return html`<${ProblemNote} error=${error} retry=${retry} />`;
}
