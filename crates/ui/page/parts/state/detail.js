// One value of the state: its JSON, last change, lifetime, addresses, and what one can do with it.

import { board, curl, get, rights, statePath } from "../../core/api.js";
import { absolute, href } from "../../core/address.js";
import { now } from "../../core/clock.js";
import { html, useEffect, useMemo, useRef, useState } from "../../core/dom.js";
import { count as grouped, fullTime, plural, span } from "../../core/format.js";
import { count, textOf } from "../../core/state/json-tree.js";
import { below, idOf, keysTo, lastChange, placesTo, ROOT } from "../../core/state/tree.js";
import { Agent, Ago, Button, ButtonLink, Command, Copy } from "../basics.js";
import { Json } from "../json.js";
import { AddNumber, AddValue, Remove } from "./changes.js";
import { Editor } from "./editor.js";

/** Larger values are shown when one asks. */
const SIZE_SHOWN_MAX = 10_000;

/** The audit is read back so far for a last change. */
const AUDIT_PAGES_MAX = 5;
const AUDIT_PAGE = 1000;

/** A selection moves over many values; the audit is asked about those where it rests. */
const REST_MS = 250;

export function Detail({ session, feed, place, node, onSelect }) {
  const [doing, setDoing] = useState();
  const { path, sub } = place;
  const api = statePath(session, path);
  const link = () => absolute(href("state", session, { path, sub }));
  const done = () => setDoing(undefined);
  return html`<section class="state-detail" aria-label="Value">
    <div class="row state-detail-head">
      <${Crumbs} session=${session} place=${place} onSelect=${onSelect} />
      <${Copy} icon="link" label="Copy link" text=${link} />
      <${Copy} icon="terminal" label="Copy as curl" text=${() => curl(api)} />
    </div>
    ${node === undefined ? html`<p class="muted" role="status">This path has no value now.</p>` : html`<${Facts} session=${session} feed=${feed} place=${place} node=${node} />`}
    ${sub !== "" && html`<p class="muted small">It has no address of its own: <a href=${href("state", session, { path })}>${path || "the document"}</a> has it as a whole.</p>`}
    <${Actions} session=${session} place=${place} node=${node} onDo=${setDoing} />
    ${node && html`<${Value} key=${idOf(place)} node=${node} />`}
    <section class="stack"><h3>curl</h3><${Command} text=${curl(api)} /></section>
    ${doing === "edit" && html`<${Editor} session=${session} feed=${feed} path=${path} onClose=${done} />`}
    ${doing === "add" && html`<${AddValue} session=${session} path=${path} node=${node} onClose=${done} onAdded=${(key) => key !== undefined && onSelect(below(place, key))} />`}
    ${doing === "number" && html`<${AddNumber} session=${session} path=${path} node=${node} onClose=${done} />`}
    ${doing === "remove" && html`<${Remove} session=${session} path=${path} onClose=${done} />`}
  </section>`;
}

/** The path as links to what is above. */
function Crumbs({ session, place, onSelect }) {
  const keys = keysTo(place);
  const places = placesTo(place).map((one, i) => [keys[i], one]);
  const link = ([key, one], i) => html`<span class="muted">/</span>${i === places.length - 1
    ? html`<strong><bdi>${key === "" ? '""' : key}</bdi></strong>`
    : html`<a href=${href("state", session, one)} onClick=${(event) => { event.preventDefault(); onSelect(one); }}><bdi>${key === "" ? '""' : key}</bdi></a>`}`;
  return html`<h2 class="grow mono crumbs">${places.length === 0 ? "state" : html`<a href=${href("state", session)} onClick=${(event) => { event.preventDefault(); onSelect(ROOT); }}>state</a>`}${places.map(link)}</h2>`;
}

const SIZES = {
  object: (node) => plural(count(node), "member"),
  array: (node) => plural(count(node), "element"),
  string: (node) => plural(node.raw.length - 2, "character"),
};

function Facts({ session, feed, place, node }) {
  const { commit, expires_at, searching } = useLastChange(session, feed, place.path);
  return html`<dl class="facts">
    <dt>Type</dt><dd>${node.kind}${SIZES[node.kind] && html`<span class="muted"> · ${SIZES[node.kind](node)}</span>`}</dd>
    <dt>Last change</dt><dd>${commit
      ? html`<span title=${fullTime(commit.at)}><${Ago} at=${commit.at} /></span> by <${Agent} name=${commit.agent} /> <a href=${href("timeline", session, { around: commit.revision })}>revision ${grouped(commit.revision)}</a>`
      : html`<span class="muted">${searching ? "looking through the audit…" : "older than the kept or searched audit"}</span>`}</dd>
    ${expires_at && html`<dt>Expires</dt><dd class="state-expires">${left(expires_at)} <span class="muted">(${fullTime(expires_at)})</span></dd>`}
  </dl>`;
}

function left(until) {
  const ms = new Date(until) - now.value;
  return ms > 0 ? `in ${span(ms)}` : "about to";
}

/** The last commit that changed a path: from the feed, then from the audit. */
function useLastChange(session, feed, path) {
  const version = feed.version.value;
  const [older, setOlder] = useState({});
  const recent = useMemo(() => lastChange([...feed.commits].reverse(), path), [feed, version, path]);
  const asked = useRef();
  const needed = !feed.loading.value && !recent.known && !feed.atOldest;
  useEffect(() => {
    if (!needed || asked.current === path) return undefined;
    const aborter = new AbortController();
    const timer = setTimeout(() => {
      asked.current = path;
      fromAudit(session, path, feed.first, aborter.signal).then((found) => setOlder({ path, ...found }), () => setOlder({ path }));
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      aborter.abort();
      asked.current = undefined;
    };
  }, [session, path, needed]);
  const before = older.path === path ? older : {};
  return { commit: recent.commit ?? before.commit, expires_at: recent.known ? recent.expires_at : before.expires_at, searching: needed && older.path !== path };
}

async function fromAudit(session, path, before, signal) {
  let found = {};
  let next = before;
  for (let page = 0; page < AUDIT_PAGES_MAX && !found.known; page += 1) {
    const { body } = await get(board(session, "audit"), { query: { order: "desc", before: next, limit: AUDIT_PAGE }, signal });
    found = lastChange(body.commits, path, found);
    if (!body.more) break;
    next = body.next;
  }
  return found;
}

function Actions({ session, place, node, onDo }) {
  const { path, sub } = place;
  const mine = rights.value.mayWrite && sub === "";
  const nested = node?.kind === "object" || node?.kind === "array";
  return html`<div class="row wrap">
    ${mine && html`<${Button} icon="edit" onClick=${() => onDo("edit")}>${node ? "Edit" : "Set a value"}<//>`}
    ${mine && nested && html`<${Button} icon="plus" onClick=${() => onDo("add")}>${node.kind === "object" ? "Add a member" : "Append"}<//>`}
    ${mine && node?.kind === "number" && html`<${Button} icon="plus" onClick=${() => onDo("number")}>Add to it<//>`}
    <${ButtonLink} icon="past" href=${href("past", session, { path: path === "" ? "state" : `state/${path}` })}>History<//>
    ${mine && node && html`<${Button} icon="trash" kind="danger" label=${path === "" ? "Clear" : "Delete"} onClick=${() => onDo("remove")} />`}
  </div>`;
}

function Value({ node }) {
  const [asked, setAsked] = useState(false);
  const shown = asked || node.size <= SIZE_SHOWN_MAX;
  const text = useMemo(() => (shown ? textOf(node) : ""), [node, shown]);
  return html`<section class="stack">
    <div class="row"><h3 class="grow">Value</h3><${Copy} label="Copy value" text=${() => textOf(node)}>Copy<//></div>
    ${shown ? html`<${Json} text=${text} />` : html`<div><${Button} onClick=${() => setAsked(true)}>Show all ${plural(node.size - 1, "value")}<//></div>`}
  </section>`;
}
