// The dialogs that make a request (a text or JSON, what it waits for, its attempts), cancel it, and judge its result.

import { board, post, put, rights } from "../../core/api.js";
import { setParams } from "../../core/address.js";
import { html, useState } from "../../core/dom.js";
import { givenName, giveName, nameFault } from "../../core/settings.js";
import { Field, Tabs } from "../basics.js";
import { FormDialog } from "../dialog.js";
import { NameField } from "../you.js";

export function NewRequest({ session, after: before = "", onMade, onClose }) {
  const [form, setForm] = useState("text");
  const [text, setText] = useState("");
  const [after, setAfter] = useState(before);
  const [attempts, setAttempts] = useState("");
  const isWrong = form === "json" && text.trim() !== "" ? wrong(text) : undefined;
  const make = async () => {
    const query = { after: seqsOf(after) || undefined, attempts: attempts || undefined };
    // JSON goes as it was typed: its numbers and repeated names stay.
    const path = board(session, "requests");
    const { body } = form === "json" ? await post(path, undefined, { query, text }) : await post(path, { request: text }, { query });
    onMade();
    onClose();
    setParams({ request: body.entries[0].seq });
  };
  const send = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.form.requestSubmit();
  return html`<${FormDialog} title="New request" action="Make request" hint="Ctrl Enter sends" disabled=${text.trim() === "" || isWrong !== undefined} onSend=${make} onClose=${onClose}>
    <${Tabs} label="Form of the request" tabs=${[["text", "Text"], ["json", "JSON object"]]} value=${form} onChange=${setForm} />
    <${Field} label=${form === "json" ? "Item" : "Request"} mono=${form === "json"} rows="5" required autofocus placeholder=${form === "json" ? '{"device":"linux","command":"df -h"}' : "Open the report"} value=${text} aria-invalid=${isWrong ? "true" : undefined} onText=${setText} onKeyDown=${send} />
    ${isWrong && html`<p class="small wrong">${isWrong}</p>`}
    <div class="row wrap request-plan">
      <${Field} class="grow" label="After requests (optional)" inputmode="numeric" pattern="[0-9#,\\s]*" title="Numbers of requests, by commas" placeholder="3, 4" value=${after} onText=${setAfter} />
      <${Field} label="Attempts (optional)" type="number" min="1" placeholder="no limit" value=${attempts} onText=${setAttempts} />
    </div>
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

/** The dialogs that end a request: the beginning of the title, the action, and what it means. */
const ENDS = {
  cancel: ["Cancel", "Cancel request", "If an agent holds it, that agent is asked to stop. If none does, or it was asked before, the request ends at once."],
  accept: ["Accept the result of", "Accept result", "The request is done with this result."],
  refuse: ["Refuse the result of", "Refuse result", "This is a failed attempt. The next agent reads the reason."],
};

/** Cancels a request or judges its result. Asks for a reason, and for a name unless the token has an agent's. */
export function EndRequest({ session, entry, how, onDone, onClose }) {
  const [title, action, text] = ENDS[how];
  const isVerdict = how !== "cancel";
  const isNamed = rights.value.agent !== undefined;
  const [reason, setReason] = useState("");
  const [name, setName] = useState(givenName());
  const send = async () => {
    const by = name.trim();
    const verdict = isVerdict && { accept: how === "accept", fence: entry.in_review?.fence };
    await put(board(session, "requests", String(entry.seq), isVerdict ? "verdict" : "cancelled"), { ...verdict, reason: reason.trim() || undefined }, {
      as: by,
    });
    if (!isNamed) giveName(by);
    onDone();
    onClose();
  };
  return html`<${FormDialog} title=${`${title} request ${entry.seq}`} action=${action} back="Back" danger=${how !== "accept"} disabled=${nameFault(name.trim()) !== undefined} onSend=${send} onClose=${onClose}>
    <p>${text}</p>
    <${Field} label="Reason (optional)" rows="3" autofocus value=${reason} onText=${setReason} />
    ${!isNamed && html`<${NameField} label=${`Your name${isVerdict ? ", not that of the agent who did it" : " (optional)"}`} required=${isVerdict} value=${name} onText=${setName} />`}
  <//>`;
}
