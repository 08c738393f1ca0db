// The dialog that makes a request: a text or JSON, what it waits for, and its attempts.

import { board, post } from "../../core/api.js";
import { setParams } from "../../core/address.js";
import { html, useState } from "../../core/dom.js";
import { Button, ProblemNote, Tabs } from "../basics.js";
import { Dialog } from "../dialog.js";

export function NewRequest({ session, after: before = "", onMade, onClose }) {
  const [form, setForm] = useState("text");
  const [text, setText] = useState("");
  const [after, setAfter] = useState(before);
  const [attempts, setAttempts] = useState("");
  const [error, setError] = useState();
  const isWrong = form === "json" && text.trim() !== "" ? wrong(text) : undefined;
  const make = async (event) => {
    event.preventDefault();
    const query = { after: seqsOf(after) || undefined, attempts: attempts || undefined };
    try {
      // JSON goes as it was typed: its numbers and repeated names stay.
      const path = board(session, "requests");
      const { body } = form === "json" ? await post(path, undefined, { query, text }) : await post(path, { request: text }, { query });
      onMade();
      onClose();
      setParams({ request: body.entries[0].seq });
    } catch (problem) {
      setError(problem);
    }
  };
  const send = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.form.requestSubmit();
  return html`<${Dialog} title="New request" onClose=${onClose}>
    <form class="stack" onSubmit=${make}>
      <${Tabs} label="Form of the request" tabs=${[["text", "Text"], ["json", "JSON object"]]} value=${form} onChange=${setForm} />
      <label class="labelled">${form === "json" ? "Item" : "Request"}<textarea class=${form === "json" ? "field mono" : "field"} rows="5" required autofocus placeholder=${form === "json" ? '{"device":"linux","command":"df -h"}' : "Open the report"} value=${text} aria-invalid=${isWrong ? "true" : undefined} onInput=${(event) => setText(event.currentTarget.value)} onKeyDown=${send}></textarea></label>
      ${isWrong && html`<p class="small wrong">${isWrong}</p>`}
      <div class="row wrap request-plan">
        <label class="labelled grow">After requests (optional)<input class="field" inputmode="numeric" pattern="[0-9#,\\s]*" title="Numbers of requests, by commas" placeholder="3, 4" value=${after} onInput=${(event) => setAfter(event.currentTarget.value)} /></label>
        <label class="labelled">Attempts (optional)<input class="field" type="number" min="1" placeholder="no limit" value=${attempts} onInput=${(event) => setAttempts(event.currentTarget.value)} /></label>
      </div>
      <${ProblemNote} error=${error} />
      <div class="row"><span class="grow small muted">Ctrl Enter sends</span><${Button} onClick=${onClose}>Cancel<//><${Button} type="submit" kind="primary" disabled=${text.trim() === "" || isWrong !== undefined}>Make request<//></div>
    </form>
  <//>`;
}

function seqsOf(text) {
  return (text.match(/\d+/g) ?? []).join(",");
}

function wrong(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? undefined : "A request is one JSON object.";
  } catch (error) {
    return `Not JSON yet: ${error.message}`;
  }
}
