// The options of a prompt, each a parameter of the address and of the API.

import { board } from "../../core/api.js";
import { listed, namesIn, setParams } from "../../core/address.js";
import { html, useState } from "../../core/dom.js";
import { touches, useResource } from "../../core/resource.js";
import { Agent, Button, Select } from "../basics.js";

const LOGS = [["questions", "Questions and answers"], ["requests", "Requests"], ["trajectories", "Trajectories"], ["screenshots", "Screenshots"]];
const LOG_NAMES = LOGS.map(([name]) => name);

/** The most agents that are listed; the prompt takes 100 memories. */
const AGENTS_MAX = 100;

const NAMES = ["include", "keys", "latest", "screenshots", "images", "max_px", "profile", "cache_marks", "tokenizer", "ascii", "max_tokens", "at", "from"];

/** `profiles` are those of the session's settings. */
export function Options({ session, feed, params, profiles }) {
  const [open, setOpen] = useState(() => matchMedia("(min-width: 901px)").matches);
  const set = NAMES.filter((name) => params[name]).length;
  const clear = () => setParams(Object.fromEntries(NAMES.map((name) => [name, null])));
  return html`<section class="prompt-options" aria-label="Options">
    <details open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>Options${set > 0 ? ` (${set})` : ""}</summary>
      <div class="stack">
        <${Include} session=${session} feed=${feed} params=${params} />
        <${Fields} params=${params} profiles=${profiles} />
        <${Revisions} session=${session} params=${params} />
        ${set > 0 && html`<div><${Button} kind="quiet" icon="close" onClick=${clear}>Clear options<//></div>`}
      </div>
    </details>
  </section>`;
}

function Include({ session, feed, params }) {
  const agents = useResource(`${board(session, "agents")}?limit=${AGENTS_MAX}`, { feed, on: touches({ agents: true }) });
  const names = (agents.data?.agents ?? []).map((one) => one.agent);
  const chosen = params.include ? namesIn(params.include) : undefined;
  const value = chosen ?? (params.profile ? [] : LOG_NAMES);
  const memories = [...new Set([...names, ...value.filter((name) => name.startsWith("memory:")).map((name) => name.slice(7))])];
  const order = [...LOG_NAMES, "state", ...memories.map((name) => `memory:${name}`)];
  const toggle = (name) => {
    const next = order.filter((one) => (one === name ? !value.includes(one) : value.includes(one)));
    const isDefault = !params.profile && next.length === LOG_NAMES.length && LOG_NAMES.every((one) => next.includes(one));
    if (next.length > 0) setParams({ include: isDefault ? null : listed(next) });
  };
  const check = (name, text) => html`<label class="check" key=${name}><input type="checkbox" checked=${value.includes(name)} disabled=${value.length === 1 && value[0] === name} onChange=${() => toggle(name)} />${text}</label>`;
  return html`<fieldset class="prompt-include"><legend>Include</legend>
    ${LOGS.map(([name, text]) => check(name, text))}
    ${check("state", "State")}
    ${memories.length > 0 && html`<p class="muted small">Memory of</p>${memories.map((name) => check(`memory:${name}`, html`<${Agent} name=${name} />`))}`}
    ${params.profile && !chosen && html`<p class="muted small">As the profile says.</p>`}
  </fieldset>`;
}

/** A field whose value goes into the address when one has written it. */
function Field({ name, label, params, hint, number }) {
  return html`<label class="labelled">${label}<input class="field" type=${number ? "number" : "text"} min=${number ? (name === "screenshots" ? 0 : 1) : undefined} placeholder=${hint} value=${params[name] ?? ""}
    onChange=${(event) => setParams({ [name]: event.currentTarget.value.trim() })} /></label>`;
}

const IMAGES = [["", "Default"], ["inline", "Inline"], ["url", "Address"], ["none", "None"]];
const TOKENIZERS = [["", "Default"], ["openai", "OpenAI"], ["anthropic", "Anthropic"], ["gemini", "Gemini"], ["other", "Other"]];
const CHARACTERS = [["", "Default"], ["false", "As they are"], ["true", "\\u escapes"]];

function Fields({ params, profiles }) {
  const profile = [["", "None"], ...[...new Set([...Object.keys(profiles), ...(params.profile ? [params.profile] : [])])].map((name) => [name, name])];
  return html`<div class="prompt-fields">
    <${Field} name="max_tokens" label="Token budget" hint="none" number params=${params} />
    <${Field} name="latest" label="Latest items" hint="all" number params=${params} />
    <${Field} name="screenshots" label="Last images" hint="all" number params=${params} />
    <${Field} name="max_px" label="Image side (px)" hint="as stored" number params=${params} />
    <${Select} label="Images" options=${IMAGES} value=${params.images ?? ""} onChange=${(images) => setParams({ images })} />
    <${Select} label="Tokens as of" options=${TOKENIZERS} value=${params.tokenizer ?? ""} onChange=${(tokenizer) => setParams({ tokenizer })} />
    <${Select} label="Characters" options=${CHARACTERS} value=${params.ascii ?? ""} onChange=${(ascii) => setParams({ ascii })} />
    <${Select} label="Profile" options=${profile} value=${params.profile ?? ""} onChange=${(value) => setParams({ profile: value })} />
    ${!params.images && !params.profile && html`<p class="wide muted small">By default images are inline. This page loads them by address; copies have them inline.</p>`}
    <div class="wide"><${Field} name="keys" label="Keys of steps and memories" hint="all; or step, thought" params=${params} /></div>
    <label class="check wide" title="Used by the format Anthropic"><input type="checkbox" checked=${params.cache_marks === "true"} onChange=${(event) => setParams({ cache_marks: event.currentTarget.checked ? "true" : null })} />Cache marks (Anthropic)</label>
  </div>`;
}

function Revisions({ session, params }) {
  const { data } = useResource(board(session, "checkpoints"));
  const names = (data?.checkpoints ?? []).map((one) => one.name ?? one.checkpoint).filter(Boolean);
  return html`<div class="prompt-fields">
    <${Field} name="at" label="At revision" hint="newest" params=${params} />
    <${Field} name="from" label="Difference from" hint="none" params=${params} />
    ${names.length > 0 && html`<div class="wide"><${Select} label="Difference from checkpoint" options=${[["", "None"], ...names.map((name) => [name, name])]} value=${names.includes(params.from) ? params.from : ""} onChange=${(from) => setParams({ from })} /></div>`}
  </div>`;
}
