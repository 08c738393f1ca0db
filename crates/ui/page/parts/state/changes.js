// Small changes of the state: a new member or element, a number that grows, a deletion.

import { remove, request, statePath } from "../../core/api.js";
import { html, useEffect, useState } from "../../core/dom.js";
import { isAddressable, segment } from "../../core/state/tree.js";
import { Field, toast } from "../basics.js";
import { Confirm, FormDialog, putNew } from "../dialog.js";
import { faultOf, readValue } from "./editor.js";

/** Adds a member to an object, or an element to an array. */
export function AddValue({ session, path, node, onClose, onAdded }) {
  const [key, setKey] = useState("");
  const [text, setText] = useState("");
  const isObject = node.kind === "object";
  const fault = text === "" ? undefined : faultOf(text);
  const stands = isObject && node.members.has(key);
  const usable = !isObject || (isAddressable(key) && !stands);
  const add = async () => {
    if (isObject) {
      const to = path === "" ? segment(key) : `${path}/${segment(key)}`;
      await putNew(statePath(session, to), { text }, `${key} exists already`);
    } else await request("PATCH", statePath(session, path), { text: `{"append":[${text}]}` });
    toast(isObject ? `Added ${key}` : "Appended");
    onAdded(isObject ? key : undefined);
    onClose();
  };
  return html`<${FormDialog} title=${isObject ? `Add a member to ${path || "the document"}` : `Append to ${path}`} action=${isObject ? "Add" : "Append"} disabled=${text === "" || fault !== undefined || !usable} onSend=${add} onClose=${onClose}>
    ${isObject && html`<${Field} label="Key" mono autofocus required value=${key} onText=${setKey} />`}
    ${isObject && key !== "" && !usable && html`<p class="state-fault" role="status">${stands ? `${key} exists already` : "A key is not '.' or '..'"}</p>`}
    <${Field} label="Value as JSON" mono rows="5" required autofocus=${!isObject} spellcheck=${false} placeholder=${'"text", 1.5, true, [1, 2] or {"a": 1}'} aria-invalid=${String(fault !== undefined)} value=${text} onText=${setText} />
    <p class="state-fault" role="status">${fault ?? ""}</p>
  <//>`;
}

/** Adds a number to a number, whatever it is by then. */
export function AddNumber({ session, path, node, onClose }) {
  const [by, setBy] = useState("1");
  const fault = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(by.trim()) ? undefined : "a JSON number, such as 1, -2 or 0.5";
  const add = async () => {
    const answer = await request("PATCH", statePath(session, path), { text: `{"add":${by.trim()}}` });
    toast(`${path} is ${/"value":(.*)\}\s*$/s.exec(answer.text)?.[1] ?? "changed"} now`);
    onClose();
  };
  return html`<${FormDialog} title=${`Add to ${path}`} action="Add" disabled=${fault !== undefined} onSend=${add} onClose=${onClose}>
    <p>It is <code>${node.raw}</code> now. The server adds to what it is then; no other change is lost.</p>
    <${Field} label="Add" mono inputmode="decimal" autofocus value=${by} aria-invalid=${String(fault !== undefined)} onText=${setBy} />
    <p class="state-fault" role="status">${fault ?? ""}</p>
  <//>`;
}

/** Deletes a path, if it is still as it was when one was asked. */
export function Remove({ session, path, onClose }) {
  const [read, setRead] = useState();
  useEffect(() => void readValue(session, path).then(setRead, () => setRead({})), []);
  const run = async () => {
    if (!read) return;
    try {
      await remove(statePath(session, path), { headers: read.etag ? { "If-Match": read.etag } : {} });
      toast(`Deleted ${path || "all values"}`);
      onClose();
    } catch (error) {
      toast(error.status === 412 ? `${path || "The document"} has changed since you were asked; look at it again` : error.message, { bad: true });
      onClose();
    }
  };
  return html`<${Confirm} title=${path === "" ? "Clear the document" : `Delete ${path}`} action=${path === "" ? "Clear" : "Delete"} onDone=${run} onClose=${onClose}>
    <p>${path === "" ? "All values of the state go." : "The value goes, with all that is below it."} It stays in the history while that is kept.</p>
  <//>`;
}
