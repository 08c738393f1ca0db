// Saving a revision as one HTML file.

import { html, useEffect, useState } from "../../core/dom.js";
import { count } from "../../core/format.js";
import { snapshotDocument } from "../../core/snapshot/document.js";
import { IMAGE_BYTES_MAX, readSession } from "../../core/snapshot/read.js";
import { Button, ProblemNote, toast } from "../basics.js";
import { Dialog } from "../dialog.js";

/** Reads the session and saves it; closing the dialog ends that. */
export function Save({ session, at, onClose }) {
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
    <p>The board at revision ${count(at)}: entries, state, agents, and images up to ${IMAGE_BYTES_MAX / 1e6} MB. It has no script and fetches nothing. Memories are left out.</p>
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
