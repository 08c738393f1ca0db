// What one does with a revision: fork it, restore it, name the present one as a checkpoint, delete checkpoints.

import { board, post, remove, rights } from "../../core/api.js";
import { go, href, place, setParams } from "../../core/address.js";
import { html, useState } from "../../core/dom.js";
import { count, fullTime } from "../../core/format.js";
import { attempt, Button, ProblemNote, toast } from "../basics.js";
import { Confirm, Dialog } from "../dialog.js";
import { Save } from "./save.js";

/** The buttons of the view. */
export function Actions({ session, at, head, checkpoints }) {
  const [asked, setAsked] = useState();
  const close = () => setAsked(undefined);
  const saving = place.value.params.save !== undefined;
  const save = html`<${Button} icon="download" onClick=${() => setParams({ save: "html" })}>Save<//>
    ${saving && html`<${Save} session=${session} at=${at} onClose=${() => setParams({ save: null })} />`}`;
  if (!rights.value.mayWrite) return save;
  const shown = asked && { fork: Fork, restore: Restore, checkpoints: Checkpoints }[asked];
  return html`<div class="row wrap past-actions">
    <${Button} icon="pin" onClick=${() => setAsked("checkpoints")}>Checkpoints<//>
    <${Button} icon="fork" onClick=${() => setAsked("fork")}>Fork<//>
    <${Button} icon="restore" disabled=${at >= head} label=${at >= head ? "The slider is at the present board" : undefined} onClick=${() => setAsked("restore")}>Restore<//>
    ${save}
    ${shown && html`<${shown} session=${session} at=${at} head=${head} checkpoints=${checkpoints} onClose=${close} />`}
  </div>`;
}

function Fork({ session, at, onClose }) {
  const [name, setName] = useState(`${session}-at-${at}`.slice(0, 200));
  const [error, setError] = useState();
  const fork = async (event) => {
    event.preventDefault();
    try {
      const { body } = await post(`${board(session)}/fork`, { to: name, at });
      onClose();
      toast(`Forked as ${body.session}`);
      go(href("timeline", body.session));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${Dialog} title="Fork the session" onClose=${onClose}>
    <form class="stack" onSubmit=${fork}>
      <p>The new session begins with the board as it was at revision ${count(at)}, and owns its data. This session stays as it is.</p>
      <label class="labelled">Name of the new session<input class="field" autofocus required maxlength="256" value=${name} onInput=${(event) => setName(event.currentTarget.value)} /></label>
      <${ProblemNote} error=${error} />
      <div class="row"><span class="grow"></span><${Button} onClick=${onClose}>Cancel<//><${Button} type="submit" kind="primary" disabled=${name === ""}>Fork<//></div>
    </form>
  <//>`;
}

function Restore({ session, at, head, onClose }) {
  const restore = async () => {
    onClose();
    const done = await attempt(() => post(`${board(session)}/restore`, { at }));
    if (!done) return;
    toast(`Restored to revision ${count(at)}; revision ${count(head)} undoes it`);
    go(href("past", session));
  };
  return html`<${Confirm} title=${`Restore to revision ${count(at)}`} action="Restore" onDone=${restore} onClose=${onClose}>
    <p>The logs, memories, state and agents become what they were at revision ${count(at)}, for all agents at once. Claims end.</p>
    <p>This is a commit like any other: nothing is lost, and to restore revision ${count(head)} undoes it.</p>
  <//>`;
}

function Checkpoints({ session, head, checkpoints, onClose }) {
  const [name, setName] = useState("");
  const [error, setError] = useState();
  const make = async (event) => {
    event.preventDefault();
    try {
      const { body } = await post(board(session, "checkpoints"), { name });
      setName("");
      setError(undefined);
      toast(`Checkpoint ${body.name ?? name} names revision ${count(body.revision ?? head)}`);
    } catch (problem) {
      setError(problem);
    }
  };
  const drop = (one) => attempt(() => remove(board(session, "checkpoints", one.name)), `Checkpoint ${one.name} deleted`);
  return html`<${Dialog} title="Checkpoints" onClose=${onClose}>
    <form class="row wrap" onSubmit=${make}>
      <input class="field grow" autofocus required maxlength="256" aria-label="Name of the checkpoint" placeholder="Name, such as before-print" value=${name} onInput=${(event) => setName(event.currentTarget.value)} />
      <${Button} type="submit" kind="primary" disabled=${name === ""}>Name the present revision<//>
    </form>
    <p class="muted small">A checkpoint names the present revision. The same name again moves it.</p>
    <${ProblemNote} error=${error} />
    ${checkpoints.length === 0 && html`<p class="muted">No checkpoints yet.</p>`}
    <ul class="checkpoint-list">${checkpoints.map((one) => html`<li key=${one.name} class="row">
      <a class="grow truncate" href=${href("past", session, { at: one.name })} title=${one.name} onClick=${onClose}>${one.name}</a>
      <span class="muted small nowrap num" title=${fullTime(one.at)}>revision ${count(one.revision)}</span>
      <${Button} icon="trash" kind="quiet" label=${`Delete the checkpoint ${one.name}`} onClick=${() => drop(one)} />
    </li>`)}</ul>
  <//>`;
}
