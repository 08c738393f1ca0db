// What one does with a revision: fork it, restore it, save it as one HTML file; name the present one as a checkpoint.

import { board, post, remove, rights } from "../../core/api.js";
import { go, href, place, setParams } from "../../core/address.js";
import { html, useEffect, useState } from "../../core/dom.js";
import { count, fullTime } from "../../core/format.js";
import { snapshotDocument } from "../../core/snapshot/document.js";
import { IMAGE_BYTES_MAX, readSession } from "../../core/snapshot/read.js";
import { attempt, Button, Field, ProblemNote, toast } from "../basics.js";
import { Confirm, Dialog, FormDialog } from "../dialog.js";

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
  const fork = async () => {
    const { body } = await post(`${board(session)}/fork`, { to: name, at });
    onClose();
    toast(`Forked as ${body.session}`);
    go(href("timeline", body.session));
  };
  return html`<${FormDialog} title="Fork the session" action="Fork" disabled=${name === ""} onSend=${fork} onClose=${onClose}>
    <p>The new session begins with the board as it was at revision ${count(at)}, and owns its data. This session stays as it is.</p>
    <${Field} label="Name of the new session" autofocus required maxlength="256" value=${name} onText=${setName} />
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

/** Reads the session and saves it; closing the dialog ends that. */
function Save({ session, at, onClose }) {
  const [doing, setDoing] = useState("");
  const [error, setError] = useState();
  useEffect(() => {
    const aborter = new AbortController();
    save(session, at, { signal: aborter.signal, onProgress: setDoing })
      .then(onClose)
      .catch((problem) => aborter.signal.aborted || setError(problem));
    return () => aborter.abort();
  }, []);
  return html`<${Dialog} title="Save as one HTML file" onClose=${onClose} foot=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
    <p>The board at revision ${count(at)}: entries, state, agents, and images up to ${IMAGE_BYTES_MAX / 1e6} MB. It has no script and fetches nothing. Memories and messages are left out.</p>
    ${error ? html`<${ProblemNote} error=${error} />` : html`<p class="muted" role="status">${doing}</p>`}
  <//>`;
}

async function save(session, at, options) {
  const read = await readSession(session, at, options);
  const text = snapshotDocument({ session, revision: at, server: location.origin, made: new Date().toISOString(), read });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  link.download = `${session.replaceAll(/[^\w.-]+/g, "-").slice(0, 100)}-at-${at}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  toast(`Saved ${link.download}`);
}
