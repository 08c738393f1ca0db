// Pause, resume and stop: as asked for in the state, and as obeyed by the agent.

import { put, remove, rights, statePath, withQuery } from "../../core/api.js";
import { cx, html, useEffect, useRef, useState } from "../../core/dom.js";
import { askedAt, directive, segment, wantedOf } from "../../core/agents/directives.js";
import { touches, useResource } from "../../core/resource.js";
import { Agent, Ago, attempt, Button, Select } from "../basics.js";
import { openHref } from "../entry.js";

const TIMES = [["", "Until resumed"], ["1m", "For 1 min"], ["10m", "For 10 min"], ["1h", "For 1 h"]];

export function Directives({ session, profile, feed }) {
  const name = profile.agent;
  const [ttl, setTtl] = useState("");
  // Nothing is asked of most agents: a condition that holds is no failure in the console, as the 404 of an absent value is.
  const [until, setUntil] = useState(profile.paused || profile.stopped ? undefined : "absent");
  const state = useResource(withQuery(statePath(session, `agents/${segment(name)}`), { until }), { feed, on: touches({ state: true }) });
  const held = useRef({});
  const wanted = (held.current = wantedOf(state, held.current));
  useEffect(() => {
    // A problem has no large value.
    if (state.error?.code === "condition-not-met" && state.error.current === undefined) setUntil(undefined);
  }, [state.error]);
  const isGone = Object.keys(wanted).length === 0;
  const pause = directive(wanted.paused, profile.paused);
  const stop = directive(wanted.stopped, profile.stopped);
  const path = (what) => statePath(session, `agents/${segment(name)}/${what}`);
  const ask = (what) => attempt(async () => {
    await put(path(what), true, { query: { ttl: (what === "paused" && ttl) || undefined } });
    state.refresh();
  });
  const withdraw = (what) => attempt(async () => {
    await removed(path(what));
    state.refresh();
  });
  const { mayWrite } = rights.value;
  feed.version.value;
  return html`<section class="card directives">
    <header><h3 class="grow">Pause and stop</h3>${!isGone && html`<a class="small" href=${openHref(`state/agents/${segment(name)}`)}>In the state</a>`}</header>
    <div class="body stack">
      <table class="table directives-table">
        <thead><tr><th scope="col"><span class="sr-only">Directive</span></th><th scope="col">As asked for</th><th scope="col">As obeyed</th></tr></thead>
        <tbody>
          <${Line} title="Pause" one=${pause} since=${askedAt(feed.commits, name, "paused")} obeyed="Paused" free="Not paused" />
          <${Line} title="Stop" one=${stop} since=${askedAt(feed.commits, name, "stopped")} obeyed="Stopped" free="Not stopped" />
        </tbody>
      </table>
      <${Unheard} profile=${profile} pause=${pause} stop=${stop} since=${askedAt(feed.commits, name, pause.phase === "asked" ? "paused" : "stopped")} />
      ${mayWrite && html`<div class="row wrap">
        ${pause.asked
          ? html`<${Button} icon="play" onClick=${() => withdraw("paused")}>Resume<//>`
          : html`<${Button} icon="pause" onClick=${() => ask("paused")}>Pause<//><${Select} label="Time of the pause" hideLabel options=${TIMES} value=${ttl} onChange=${setTtl} />`}
        <span class="grow"></span>
        ${stop.asked
          ? html`<${Button} icon="play" onClick=${() => withdraw("stopped")}>Withdraw stop<//>`
          : html`<${Button} icon="stop" kind="danger" onClick=${() => ask("stopped")}>Stop<//>`}
      </div>`}
      <p class="muted small">A cooperating agent checks these values between two steps. One that does not check them is not stopped.</p>
    </div>
  </section>`;
}

function Line({ title, one, since, obeyed, free }) {
  return html`<tr>
    <th scope="row">${title}</th>
    <td>${one.asked ? html`<span class="badge asked">${title === "Pause" ? "Pause" : "Stop"}${one.asked.request !== undefined && ` of request ${one.asked.request}`}</span>${since && html`<div class="small muted"><${Ago} at=${since.at} />${since.by && html` by <${Agent} name=${since.by} />`}</div>`}` : html`<span class="muted">Nothing</span>`}</td>
    <td><span class=${cx("badge", one.phase)}>${one.obeyed ? obeyed : free}</span>${one.phase === "asked" && html`<div class="small muted">not yet</div>`}${one.phase === "leaving" && html`<div class="small muted">about to go on</div>`}</td>
  </tr>`;
}

/** Says that an agent has written since it was asked, and does not obey. */
function Unheard({ profile, pause, stop, since }) {
  const waits = pause.phase === "asked" || stop.phase === "asked";
  if (!waits || !since || !profile.last_seen || new Date(profile.last_seen) <= new Date(since.at)) return null;
  return html`<p class="small unheard">The agent has written since. It is between two checks, or does not check.</p>`;
}

async function removed(path) {
  try {
    await remove(path);
  } catch (error) {
    // What has gone by itself is as wanted.
    if (error.status !== 404) throw error;
  }
}
