// Dialogs over the page, and drawers beside it. Escape closes both.

import { request } from "../core/api.js";
import { cx, html, useEffect, useRef, useState } from "../core/dom.js";
import { Button, ProblemNote } from "./basics.js";

/** A modal dialog. `onClose` is called for Escape, the button and a click outside. */
export function Dialog({ title, onClose, children, foot, wide }) {
  const ref = useRef();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  return html`<dialog
    ref=${ref}
    class=${cx("dialog", wide && "wide")}
    aria-label=${title}
    onCancel=${(event) => {
      event.preventDefault();
      onClose();
    }}
    onClick=${(event) => event.target === ref.current && onClose()}
  >
    <header><h2 class="grow">${title}</h2><${Button} icon="close" label="Close" kind="quiet" onClick=${onClose} /></header>
    <div class="body">${children}</div>
    ${foot && html`<footer>${foot}</footer>`}
  </dialog>`;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, children, action, danger = true, onDone, onClose }) {
  return html`<${Dialog}
    title=${title}
    onClose=${onClose}
    foot=${html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind=${danger ? "danger" : "primary"} onClick=${onDone}>${action}<//>`}
  >${children}<//>`;
}

/** A dialog whose form is sent by `onSend`. What that throws is shown, and the dialog stays. */
export function FormDialog({ title, action, danger, disabled, hint, back = "Cancel", onSend, onClose, children }) {
  const [error, setError] = useState();
  const send = (event) => {
    event.preventDefault();
    onSend().catch(setError);
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="stack" onSubmit=${send}>
      ${children}
      <${ProblemNote} error=${error} />
      <div class="row"><span class="grow small muted">${hint}</span><${Button} onClick=${onClose}>${back}<//><${Button} type="submit" kind=${danger ? "danger" : "primary"} disabled=${disabled}>${action}<//></div>
    </form>
  <//>`;
}

/** A write under the condition that nothing of its name exists; `message` says it if something does. */
export async function putNew(path, options, message) {
  try {
    return await request("PUT", path, { ...options, headers: { "If-None-Match": "*" } });
  } catch (error) {
    throw error.status === 412 ? Object.assign(error, { message }) : error;
  }
}

/** A panel at the right edge that leaves the view usable. */
export function Drawer({ title, actions, onClose, children }) {
  const ref = useRef();
  useEffect(() => {
    const before = document.activeElement;
    ref.current.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  const key = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) {
      event.preventDefault();
      onClose();
    }
  };
  return html`<aside class="drawer" ref=${ref} tabindex="-1" aria-label=${title} onKeyDown=${key}>
    <header><h2 class="grow truncate">${title}</h2>${actions}<${Button} icon="close" label="Close" kind="quiet" onClick=${onClose} /></header>
    <div class="body">${children}</div>
  </aside>`;
}
