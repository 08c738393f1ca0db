// The palette (Ctrl K): sessions and views by a few letters.

import { get } from "../core/api.js";
import { go, href, place, SESSION_VIEWS, TOP_VIEWS } from "../core/address.js";
import { cx, html, signal, useState } from "../core/dom.js";
import { useRead } from "../core/resource.js";
import { theme } from "../core/settings.js";
import { VIEWS } from "../views/registry.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

const shown = signal(false);
const SHOWN_MAX = 12;

export function openPalette() {
  shown.value = true;
}

export function Palette() {
  return shown.value ? html`<${Open} />` : null;
}

function Open() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const close = () => (shown.value = false);
  const { value: sessions = [] } = useRead((signal) => {
    const read = (query) => get("/v1/sessions", { query: { limit: 1000, ...query }, signal }).then(({ body }) => body.sessions);
    // The first thousand, and those that begin with the text where there are more.
    return Promise.all([read({}), text.trim() ? read({ prefix: text.trim() }) : []]);
  }, [text], true);
  const found = choices(text, [...new Set(sessions.flat().map((one) => one.session))]);
  const chosen = found[Math.min(at, found.length - 1)];
  const take = (one) => {
    close();
    one.run();
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length > 0) {
      event.preventDefault();
      setAt((at + step + found.length) % found.length);
    }
    if (event.key === "Enter" && chosen) {
      event.preventDefault();
      take(chosen);
    }
  };
  return html`<${Dialog} title="Go to" onClose=${close}>
    <input
      class="field"
      placeholder="Session or view"
      aria-label="Session or view"
      role="combobox"
      aria-expanded="true"
      aria-controls="palette"
      aria-activedescendant=${chosen ? `palette-${found.indexOf(chosen)}` : undefined}
      autofocus
      value=${text}
      onInput=${(event) => { setText(event.currentTarget.value); setAt(0); }}
      onKeyDown=${key}
    />
    <ul class="palette" role="listbox" id="palette" aria-label="Matches">
      ${found.map(
        (one, index) =>
          html`<li role="option" id=${`palette-${index}`} aria-selected=${String(one === chosen)} class=${cx(one === chosen && "on")} onClick=${() => take(one)} onMouseMove=${() => setAt(index)}>
            <${Icon} name=${one.icon} /><span class="grow truncate">${one.text}</span><span class="muted small">${one.hint}</span>
          </li>`,
      )}
      ${found.length === 0 && html`<li class="muted">Nothing of that name.</li>`}
    </ul>
  <//>`;
}

function choices(text, sessions) {
  const { session, view } = place.peek();
  const all = [
    ...(session === undefined ? [] : SESSION_VIEWS.map((name) => ({ text: VIEWS[name].title, icon: VIEWS[name].icon, hint: session, run: () => go(href(name, session)) }))),
    ...(session === undefined ? [] : [{ text: "Save as one HTML file", icon: "download", hint: session, run: () => go(href("past", session, { at: place.peek().params.at, save: "html" })) }]),
    ...TOP_VIEWS.map((name) => ({ text: VIEWS[name].title, icon: VIEWS[name].icon, hint: "all sessions", run: () => go(href(name)) })),
    ...sessions.map((name) => ({ text: name, icon: "sessions", hint: "session", run: () => go(href(SESSION_VIEWS.includes(view) ? view : "timeline", name)) })),
    ...["system", "light", "dark"].map((name) => ({ text: `Theme: ${name}`, icon: "sun", hint: "setting", run: () => (theme.value = name) })),
  ];
  const wanted = text.trim().toLowerCase();
  return all
    .map((one) => ({ one, score: score(one.text.toLowerCase(), wanted) }))
    .filter(({ score: n }) => n > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, SHOWN_MAX)
    .map(({ one }) => one);
}

/** 3 for a prefix, 2 for a part, 1 for letters in order, 0 for none. */
function score(text, wanted) {
  if (text.startsWith(wanted)) return 3;
  if (text.includes(wanted)) return 2;
  let from = 0;
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 1;
}
