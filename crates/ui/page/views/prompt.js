// The prompt as the model sees it: in any format, with its options, live, and its difference between two revisions.

import { board, curl, get, withQuery } from "../core/api.js";
import { place, setParams } from "../core/address.js";
import { cx, html, useEffect, useMemo, useRef, useState } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { bytes, count, plural } from "../core/format.js";
import { asText, partsOf, promptQuery, shares, viewQuery } from "../core/prompt/parts.js";
import { touches, useResource } from "../core/resource.js";
import { Button, Copy, Empty, ProblemNote, Skeleton, Tabs } from "../parts/basics.js";
import { Difference } from "../parts/prompt/difference.js";
import { Options } from "../parts/prompt/options.js";
import { Part } from "../parts/prompt/part.js";
import { Shares } from "../parts/prompt/shares.js";

/** A prompt of more characters is read again at most each so many milliseconds. */
const LARGE_CHARS = 500_000;
const LARGE_MS = 4000;

/** The most parts that are shown until one asks for more. */
const PARTS_SHOWN = 200;

const FORMATS = [["parts", "Parts"], ["responses", "Responses"], ["anthropic", "Anthropic"], ["gemini", "Gemini"], ["markdown", "Markdown"]];

export function Prompt({ session }) {
  const feed = useFeed(session);
  const { params } = place.value;
  const [paused, setPaused] = useState(false);
  const path = withQuery(board(session, "prompt"), promptQuery(params));
  const described = useResource(board(session), { feed, on: touches({ kinds: ["configured", "created"] }) });
  const profiles = described.data?.settings?.profiles ?? {};
  const preset = profiles[params.profile]?.format ?? "parts";
  const format = params.format || preset;
  const answer = useLive(withQuery(board(session, "prompt"), viewQuery(params)), feed, paused || Boolean(params.at));
  const { shown, error, loading } = answer;
  const parts = useMemo(() => (shown ? partsOf(shown.data, shown.text) : []), [shown]);
  return html`<div class="view prompt">
    <div class="bar">
      <${Tabs} label="Format" tabs=${FORMATS} value=${format} onChange=${(one) => setParams({ format: one === preset ? null : one })} />
      <span class="grow"></span>
      <${Live} answer=${answer} at=${params.at} paused=${paused} onPause=${() => { setPaused(!paused); if (paused) answer.refresh(); }} />
      <${Button} icon="columns" aria-pressed=${String(params.raw === "1")} label="Show texts as sent" onClick=${() => setParams({ raw: params.raw === "1" ? null : "1" })}>As sent<//>
      <${Copy} text=${() => asText(parts)} label="Copy as text">Text<//>
      <${Copy} text=${async () => (await get(path)).text} label=${format === "markdown" ? "Copy as Markdown" : "Copy as JSON"}>${format === "markdown" ? "Markdown" : "JSON"}<//>
      <${Copy} icon="terminal" text=${() => curl(path)} label="Copy as curl">curl<//>
    </div>
    <div class="prompt-body">
      <${Options} session=${session} feed=${feed} params=${params} profiles=${profiles} />
      <div class=${cx("prompt-main stack", loading && shown && "is-stale")} aria-busy=${String(loading)}>
        ${error && html`<${Refusal} error=${error} params=${params} retry=${answer.refresh} />`}
        ${!shown && !error && html`<${Skeleton} lines=${12} />`}
        ${shown && !error && html`<${Sum} answer=${shown} parts=${parts} params=${params} />`}
        ${shown && !error && (params.from
          ? html`<${Difference} session=${session} params=${params} parts=${parts} revision=${shown.revision} />`
          : html`<${Parts} session=${session} parts=${parts} raw=${params.raw === "1"} isEmpty=${shown.headers.get("Blackboard-Empty") === "true"} />`)}
      </div>
    </div>
  </div>`;
}

/** The answer of a path, read again after each commit unless it is held; the last one stays shown while another is read. */
function useLive(path, feed, held) {
  const isHeld = useRef(held);
  isHeld.current = held;
  const later = useRef();
  // A large prompt waits for the end of a burst of commits.
  const on = () => {
    if (isHeld.current || (last.current?.text.length ?? 0) < LARGE_CHARS) return !isHeld.current;
    later.current ??= setTimeout(() => {
      later.current = undefined;
      if (!isHeld.current) refresh.current();
    }, LARGE_MS);
    return false;
  };
  const resource = useResource(path, { feed, on });
  const refresh = useRef();
  refresh.current = resource.refresh;
  useEffect(() => () => clearTimeout(later.current), []);
  const last = useRef();
  if (resource.headers && !resource.error) last.current = { data: resource.data, text: resource.text, revision: resource.revision, headers: resource.headers };
  const shown = useMemo(() => last.current, [resource.text, resource.revision, resource.error, resource.headers]);
  const again = () => {
    resource.refresh();
    if (feed.state.peek() === "ended") feed.retry();
  };
  return { shown, error: resource.error, loading: resource.loading, refresh: again };
}

function Live({ answer, at, paused, onPause }) {
  const revision = answer.shown?.revision;
  if (at) return html`<span class="muted small nowrap">at ${at}</span>`;
  return html`<span class="muted small nowrap num">${revision === undefined ? "" : `revision ${count(revision)}`}</span>
    <${Button} icon=${paused ? "play" : "pause"} aria-pressed=${String(paused)} onClick=${onPause}>${paused ? "Go on" : "Pause"}<//>`;
}

function Sum({ answer, parts, params }) {
  const { headers } = answer;
  const total = headers.get("Blackboard-Tokens") === null ? undefined : Number(headers.get("Blackboard-Tokens"));
  const truncated = Number(headers.get("Blackboard-Truncated") ?? 0);
  const shared = useMemo(() => shares(parts, total), [parts, total]);
  const images = parts.filter((part) => part.kind === "image").length;
  const texts = parts.reduce((sum, part) => sum + (part.kind === "text" ? part.bytes : 0), 0);
  return html`<section class="card prompt-sum" aria-label="Tokens">
    <div class="row wrap"><strong class="prompt-total num">${total === undefined ? "no estimate" : `${count(total)} tokens`}</strong>
      <span class="muted small">estimated · ${plural(parts.length, parts[0]?.isMarkdown ? "section" : "part")}${images > 0 ? ` · ${plural(images, "image")}` : ""} · ${bytes(texts)} of text</span>
      ${truncated > 0 && html`<span class="badge warn">${plural(truncated, "item")} left out to stay within ${count(Number(params.max_tokens))} tokens</span>`}
    </div>
    <${Shares} shares=${shared} />
    <p class="muted small">The total is the server's estimate. It is divided among texts by their length${images > 0 ? "; images have what remains" : ""}.</p>
  </section>`;
}

function Parts({ session, parts, raw, isEmpty }) {
  const [all, setAll] = useState(false);
  useEffect(() => setAll(false), [session]);
  const shown = all ? parts : parts.slice(0, PARTS_SHOWN);
  return html`
    ${isEmpty && html`<${Empty} title="The four logs are empty"><p>The prompt has only its headings. State and memories are in the options.</p><//>`}
    <ol class="prompt-parts stack" aria-label="Parts">${shown.map((part, index) => html`<li key=${`${index} ${part.heading ?? part.kind}`}><${Part} part=${part} index=${index} raw=${raw} /></li>`)}</ol>
    ${shown.length < parts.length && html`<div><${Button} onClick=${() => setAll(true)}>Show all ${count(parts.length)} parts<//></div>`}`;
}

function Refusal({ error, params, retry }) {
  if (error.code === "budget-too-small") {
    return html`<div class="problem" role="alert"><div class="grow stack">
      <strong>The budget of ${count(Number(params.max_tokens))} tokens is too small</strong>
      <p>${needed(error) ? `What may not be left out takes ${count(needed(error))} tokens` : error.message}. Open questions and the state are never left out; a larger budget, or an include list without the state, helps.</p>
      <div class="row wrap"><${Button} onClick=${() => setParams({ max_tokens: needed(error) })}>${needed(error) ? `Use ${count(needed(error))} tokens` : "No budget"}<//></div>
    </div></div>`;
  }
  if (error.status === 403) return html`<div class="problem prompt-calm" role="status"><div class="grow">${error.message}. Another agent's memory needs a token with <code>memory:read</code>.</div></div>`;
  return html`<${ProblemNote} error=${error} retry=${retry} />`;
}

/** The tokens that a refusal asks for. */
function needed(error) {
  const found = /take (\d+) tokens/.exec(error.message);
  return found ? Number(found[1]) : undefined;
}
