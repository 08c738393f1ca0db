// Dialogs over the page, and drawers beside it. Escape closes both.

import { cx, html, useEffect, useRef } from "../core/dom.js";
import { Button } from "./basics.js";

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
