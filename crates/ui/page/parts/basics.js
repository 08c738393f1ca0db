// Small parts that every view uses.

import { rights } from "../core/api.js";
import { place, setParams } from "../core/address.js";
import { now } from "../core/clock.js";
import { cx, html, signal, useState } from "../core/dom.js";
import { ago, bytes, fullTime, hue, short, time } from "../core/format.js";
import { Icon } from "./icon.js";

/** A button. `icon` alone needs `label`, which is also its tooltip. */
export function Button({ icon, label, kind, children, square, class: extra, type = "button", ...rest }) {
  const named = label && !children ? { "aria-label": label, title: label } : { title: label };
  return html`<button type=${type} class=${cx("btn", kind, (square ?? (icon && !children)) && "square", extra)} ...${named} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/** A link that looks like a button. */
export function ButtonLink({ icon, label, kind, children, href, ...rest }) {
  return html`<a class=${cx("btn", kind, icon && !children && "square")} href=${href} aria-label=${children ? undefined : label} title=${label} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </a>`;
}

/** An agent's name in its colour. */
export function Agent({ name }) {
  if (!name) return html`<span class="muted">no agent</span>`;
  return html`<span class="agent hue-${hue(name)}"><span class="truncate" title=${name}>${name}</span></span>`;
}

/** An agent's status. */
export function Status({ value }) {
  return value ? html`<span class=${cx("status", value)}>${value}</span>` : null;
}

/** A time of day, with the whole time as its title. */
export function Time({ at }) {
  return html`<time class="num nowrap muted" datetime=${at} title=${fullTime(at)}>${time(at)}</time>`;
}

/** `3 min ago`, kept up to date. */
export function Ago({ at }) {
  return at ? html`<time class="nowrap" datetime=${at} title=${fullTime(at)}>${ago(at, now.value)}</time>` : null;
}

/** Copies a text; `text` may be a function, which may return a promise. */
export function Copy({ text, label = "Copy", icon = "copy", children, kind = "quiet" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await (typeof text === "function" ? text() : text));
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch (error) {
      toast(`Not copied: ${error.message}`, { bad: true });
    }
  };
  return html`<${Button} icon=${done ? "check" : icon} label=${label} kind=${kind} onClick=${copy}>${children && (done ? "Copied" : children)}<//>`;
}

/** A command to paste into a shell. Where the server requires tokens, it reads one from a variable. */
export function Command({ text }) {
  return html`<pre class="codebox">${text}</pre>${rights.value.tokensRequired && html`<p class="muted small">Your token is read from <code>BLACKBOARD_TOKEN</code>.</p>`}`;
}

/** True if keys belong to a field. */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

/** A text of which one sees the beginning until one asks for all. */
export function Long({ text, max }) {
  const [all, setAll] = useState(false);
  const isCut = !all && text.length > max;
  return html`<bdi>${isCut ? short(text, max) : text}</bdi>${isCut && html` <${Button} kind="quiet" onClick=${() => setAll(true)}>Show all ${bytes(text.length)}<//>`}`;
}

/** A view without content: a title, and how to get some. */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2><div>${children}</div></div>`;
}

/** A refusal or failure, with a way to try again. */
export function ProblemNote({ error, retry }) {
  if (!error) return null;
  return html`<div class="problem" role="alert">
    <${Icon} name="warn" />
    <div class="grow">
      <div>${error.message}</div>
      <code>${[error.status || undefined, error.code].filter(Boolean).join(" · ")}</code>
    </div>
    ${retry && html`<${Button} onClick=${retry}>Try again<//>`}
  </div>`;
}

/** Grey lines while something loads. */
export function Skeleton({ lines = 4 }) {
  return html`<div class="stack" role="status" aria-busy="true" aria-label="Loading">${Array.from({ length: lines }, (_, i) => html`<span class="skeleton" style=${{ width: `${90 - ((i * 17) % 50)}%` }}></span>`)}</div>`;
}

/** Tabs: `tabs` is `[[value, text], …]`; arrow keys move. */
export function Tabs({ tabs, value, onChange, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (tabs.findIndex(([one]) => one === value) + step + tabs.length) % tabs.length;
    onChange(tabs[at][0]);
    event.currentTarget.children[at].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(
      ([one, text]) =>
        html`<button type="button" role="tab" aria-selected=${String(one === value)} tabindex=${one === value ? 0 : -1} onClick=${() => onChange(one)}>${text}</button>`,
    )}
  </div>`;
}

/** A choice out of a few: `options` is `[[value, text], …]`. */
export function Select({ label, options, value, onChange, hideLabel }) {
  const field = html`<select class="field" aria-label=${hideLabel ? label : undefined} value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
    ${options.map(([one, text]) => html`<option value=${one} selected=${one === value}>${text}</option>`)}
  </select>`;
  return hideLabel ? field : html`<label class="labelled">${label}${field}</label>`;
}

/** A field with its label. `onText` gets its text; with `rows` it has several lines. */
export function Field({ label, onText, rows, mono, class: extra, ...rest }) {
  return html`<label class=${cx("labelled", extra)}>${label}<${rows ? "textarea" : "input"} class=${cx("field", mono && "mono")} rows=${rows} onInput=${(event) => onText(event.currentTarget.value)} ...${rest} /></label>`;
}

/** The field that filters a view by a parameter of its address; the key / moves to it. */
export function Find({ label, name = "text" }) {
  return html`<input class="field grow" type="search" data-search placeholder=${`${label} ( / )`} aria-label=${label} value=${place.value.params[name] ?? ""} onInput=${(event) => setParams({ [name]: event.currentTarget.value })} />`;
}

/** A choice of one of some names, or of all, kept in a parameter of the address. Nothing if there is no choice. */
export function NameFilter({ label, all, names, name, value }) {
  const known = [...new Set(value ? [...names, value] : names)].sort();
  if (known.length < 2 && !value) return null;
  return html`<${Select} label=${label} hideLabel options=${[["", all], ...known.map((one) => [one, short(one, 60)])]} value=${value} onChange=${(one) => setParams({ [name]: one })} />`;
}

/** Chips of which any number may be on. */
export function Chips({ options, value, onChange, label }) {
  const toggle = (one) => onChange(value.includes(one) ? value.filter((other) => other !== one) : [...value, one]);
  return html`<div class="chips" role="group" aria-label=${label}>
    ${options.map(([one, text]) => html`<button type="button" class="chip" aria-pressed=${String(value.includes(one))} onClick=${() => toggle(one)}>${text}</button>`)}
  </div>`;
}

const toasts = signal([]);
const TOASTS_MAX = 4;
const TOAST_MS = 6000;

/** Tells something for a few seconds. */
export function toast(text, { bad = false } = {}) {
  const one = { text, bad, id: Math.random() };
  toasts.value = [...toasts.peek(), one].slice(-TOASTS_MAX);
  setTimeout(() => (toasts.value = toasts.peek().filter((other) => other !== one)), TOAST_MS);
}

/** Runs a write and tells its refusal; returns its answer, or undefined. */
export async function attempt(work, done) {
  try {
    const answer = await work();
    if (done) toast(done);
    return answer ?? true;
  } catch (error) {
    toast(error.message, { bad: true });
    return undefined;
  }
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map((one) => html`<div key=${one.id} class=${cx("toast", one.bad && "bad")}><${Icon} name=${one.bad ? "warn" : "check"} /><span>${one.text}</span></div>`)}
  </div>`;
}
