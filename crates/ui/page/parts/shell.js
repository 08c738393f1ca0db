// The frame around every view: navigation, header with the connection's state, dialogs over all.

import { needsLogin, rights } from "../core/api.js";
import { go, href, place, SESSION_VIEWS, TOP_VIEWS } from "../core/address.js";
import { cx, Fragment, html, useEffect, useErrorBoundary, useRef, useState } from "../core/dom.js";
import { now } from "../core/clock.js";
import { useFeed } from "../core/feed.js";
import { plural, span } from "../core/format.js";
import { theme } from "../core/settings.js";
import { VIEWS } from "../views/registry.js";
import { Login } from "../views/login.js";
import { useInbox } from "../core/inbox.js";
import "../core/questions/notice.js";
import { Button, isTyping, ProblemNote, Skeleton, Toasts } from "./basics.js";
import { OpenEntry } from "./entry.js";
import { Icon } from "./icon.js";
import { openPalette, Palette } from "./palette.js";
import { You } from "./you.js";

export function Shell() {
  const { view, session } = place.value;
  const main = useRef();
  const open = useInbox();
  useEffect(() => {
    main.current.scrollTop = 0;
  }, [view, session]);
  useEffect(() => {
    const title = [VIEWS[view].title, session, "Blackboard"].filter(Boolean).join(" · ");
    document.title = open.value > 0 ? `(${open.value}) ${title}` : title;
  }, [view, session, open.value]);
  return html`<div class="shell">
      <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to content</a>
      <${Nav} />
      <${Head} />
      <main class="main" id="main" tabindex="-1" ref=${main} aria-label=${VIEWS[view].title}>
        ${rights.value.known && !needsLogin.value && html`<${Guarded} key=${`${view} ${session ?? ""}`}>
          <${View} name=${view} session=${session} scroller=${main} />
          ${session && html`<${OpenEntry} session=${session} />`}
        <//>`}
      </main>
    </div>
    ${needsLogin.value && html`<${Login} />`}
    <${Palette} />
    <${Toasts} />`;
}

/** The components of the views that were shown, by name. */
const loaded = new Map();

/** How long the page waits before it loads the views that were not shown yet. */
const OTHERS_AFTER_MS = 2000;

/** A view, once its module is there. */
function View({ name, ...rest }) {
  const [, tell] = useState(0);
  const [error, setError] = useState();
  const load = () => VIEWS[name].load().then((component) => { loaded.set(name, component); tell((n) => n + 1); }, setError);
  useEffect(() => {
    if (!loaded.has(name)) load();
  }, [name]);
  if (loaded.has(name)) return html`<${loaded.get(name)} ...${rest} />`;
  return html`<div class="view padded">${error ? html`<${ProblemNote} error=${error} retry=${() => location.reload()} />` : html`<${Skeleton} lines=${8} />`}</div>`;
}

/** Loads the view of the present address, and the others later, so that they are there when they are asked for. */
export function loadViews() {
  const ignore = () => {};
  VIEWS[place.peek().view].load().catch(ignore);
  setTimeout(() => {
    for (const { load } of Object.values(VIEWS)) load().catch(ignore);
  }, OTHERS_AFTER_MS);
}

/** Shows a defect of a view in its place, so that the rest stays usable. */
function Guarded({ children }) {
  const [error, reset] = useErrorBoundary((caught) => console.error(caught));
  if (error) return html`<div class="view padded"><${ProblemNote} error=${error} retry=${reset} /></div>`;
  return html`<${Fragment}>${children}<//>`;
}

function Nav() {
  const { view, session } = place.value;
  const open = useInbox();
  const bar = useRef();
  // A narrow page has the views in one line that scrolls.
  useEffect(() => {
    bar.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [view, session]);
  const item = (name, in_) => html`<a class="item" href=${href(name, in_)} aria-current=${view === name && (in_ === session) ? "page" : undefined}>
    <${Icon} name=${VIEWS[name].icon} />${VIEWS[name].title}
    ${name === "questions" && open.value > 0 && html`<span class="badge count" aria-label=${plural(open.value, "open question")}>${open.value > 99 ? "99+" : open.value}</span>`}
  </a>`;
  return html`<nav class="nav" aria-label="Views" ref=${bar}>
    <a class="brand" href=${href("sessions")}><img src=${icon()} alt="" />Blackboard</a>
    ${TOP_VIEWS.map((name) => item(name))}
    ${session !== undefined && html`<h2 title=${session}>${session}</h2>${SESSION_VIEWS.map((name) => item(name, session))}`}
    <div class="foot">
      <a class="item" href="/docs/" target="_blank" rel="noopener"><${Icon} name="terminal" />API</a>
    </div>
  </nav>`;
}

function icon() {
  return new URL("../icon.svg", import.meta.url).href;
}

function Head() {
  const { view, session } = place.value;
  return html`<header class="head">
    <h1 class="grow truncate">
      ${session !== undefined ? html`<span class="crumb">${session} / </span>${VIEWS[view].title}` : VIEWS[view].title}
    </h1>
    ${session !== undefined && rights.value.known && !needsLogin.value && html`<${Live} key=${session} session=${session} />`}
    <${Button} icon="search" label="Go to… (Ctrl K)" kind="quiet" onClick=${openPalette} />
    <${ThemeSwitch} />
    <${You} />
  </header>`;
}

function Live({ session }) {
  const feed = useFeed(session);
  const state = feed.state.value;
  const wait = feed.retryAt.value - now.value;
  const text = state !== "retrying" ? state : wait > 1500 ? `reconnecting in ${span(wait)}` : "reconnecting";
  return html`<span class=${cx("live", state)} role="status" title=${`Revision ${feed.head.value}`}>${text}</span>`;
}

function ThemeSwitch() {
  const next = { system: "light", light: "dark", dark: "system" };
  const shown = { system: "system", light: "sun", dark: "moon" };
  return html`<${Button} icon=${shown[theme.value]} kind="quiet" label=${`Theme: ${theme.value}`} onClick=${() => (theme.value = next[theme.value])} />`;
}

/** The keys that work everywhere. */
export function shortcuts() {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const { session } = place.peek();
    const number = Number(event.key);
    if (session !== undefined && number >= 1 && number <= SESSION_VIEWS.length) go(href(SESSION_VIEWS[number - 1], session));
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
      }
    }
  });
}
