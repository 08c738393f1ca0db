// A value of the state under edit: written only if nobody has changed it since it was read.

import { get, request, statePath } from "../../core/api.js";
import { html, useEffect, useMemo, useState } from "../../core/dom.js";
import { compareLines } from "../../core/lines.js";
import { parseJson } from "../../core/state/json-tree.js";
import { touchesPath } from "../../core/state/tree.js";
import { Agent, Button, Field, ProblemNote, Skeleton, toast } from "../basics.js";
import { Dialog } from "../dialog.js";
import { indent } from "../json.js";

/** The time that a comparison of two values may take; beyond, both are shown plain. */
const DIFF_MS = 400;

/** Reads a value with its tag; a path without value has neither. */
export async function readValue(session, path) {
  try {
    const { text, etag } = await get(statePath(session, path));
    return { text: indent(text), etag };
  } catch (error) {
    if (error.code === "path-not-found" || error.code === "session-not-found") return { text: undefined, etag: undefined };
    throw error;
  }
}

/** A dialog that writes the JSON text of a path by compare-and-set. */
export function Editor({ session, feed, path, onClose }) {
  const edit = useEdit(session, feed, path, onClose);
  const { base, text, theirs, problem, fault, isDirty, asksToLeave } = edit;
  const isLost = theirs && !edit.isHidden;
  const foot = isLost
    ? html`<${Button} onClick=${edit.goOn}>Continue editing<//><${Button} onClick=${edit.takeTheirs}>Take theirs<//><${Button} kind="danger" disabled=${fault !== undefined} onClick=${edit.overwrite}>Overwrite theirs<//>`
    : html`<${Button} onClick=${edit.leave}>Cancel<//><${Button} kind="primary" disabled=${!base || fault !== undefined || edit.isBusy} onClick=${edit.save}>Save<//>`;
  return html`<${Dialog} title=${`Edit ${path || "the document"}`} wide onClose=${edit.leave} foot=${asksToLeave ? html`<${Button} onClick=${edit.stay}>Continue editing<//><${Button} kind="danger" onClick=${onClose}>Discard<//>` : foot}>
    ${asksToLeave && html`<p role="alert">The changes are not saved.</p>`}
    ${edit.news && html`<${News} news=${edit.news} isHidden=${edit.isHidden} onCompare=${edit.compare} />`}
    ${!base && !problem && html`<${Skeleton} />`}
    ${base && isLost && html`<${Sides} theirs=${theirs.text} mine=${text} />`}
    ${base && !isLost && html`
      <${Field} label="Value as JSON" mono rows="14" spellcheck=${false} autofocus aria-invalid=${String(fault !== undefined)} aria-describedby="state-fault" value=${text}
        onText=${edit.setText} onKeyDown=${(event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && fault === undefined && edit.save()} />
      <p id="state-fault" class="state-fault" role="status">${fault ?? ""}</p>
      <${Field} class="state-ttl" label="Expires after (optional)" placeholder="never; or 30s, 10m, 2h" value=${edit.ttl} onText=${edit.setTtl} />
      <p class="muted small">Saved only if the value is still the one that was read${isDirty ? "" : "; so far it is unchanged"}. Saving removes an earlier expiry.</p>`}
    <${ProblemNote} error=${problem} />
  <//>`;
}

/** The edit's state: `base` as read, `text` as written, `theirs` where another write came between. */
function useEdit(session, feed, path, onClose) {
  const [base, setBase] = useState();
  const [text, setText] = useState("");
  const [ttl, setTtl] = useState("");
  const [theirs, setTheirs] = useState();
  const [isHidden, setHidden] = useState(false);
  const [news, setNews] = useState();
  const [problem, setProblem] = useState();
  const [isBusy, setBusy] = useState(false);
  const [asksToLeave, setAsks] = useState(false);
  const fault = useMemo(() => (base ? faultOf(text, path) : undefined), [text, base]);
  useEffect(() => {
    readValue(session, path).then((read) => {
      setBase(read);
      setText(read.text ?? "");
    }, setProblem);
  }, []);
  useEffect(() => feed.listen((commits) => {
    const commit = commits.findLast((one) => one.changes.some((change) => touchesPath(change, path)));
    if (!commit || !base || isBusy) return;
    readValue(session, path).then((read) => {
      if (read.etag === base.etag) return;
      setTheirs(read);
      // The dialog says it at once, and shows the comparison when one asks or saves.
      setHidden((before) => (theirs ? before : true));
      setNews(commit);
    }, setProblem);
  }), [feed, base, isBusy, theirs]);
  const send = async (etag) => {
    setBusy(true);
    setProblem(undefined);
    try {
      const headers = etag ? { "If-Match": etag } : { "If-None-Match": "*" };
      await request("PUT", statePath(session, path), { text, headers, query: { ttl: ttl.trim() || undefined } });
      toast(`Saved ${path || "the document"}`);
      onClose();
    } catch (error) {
      if (error.status === 412) await lost(error);
      else setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const lost = async (error) => {
    const current = error.current === undefined ? undefined : indent(JSON.stringify(error.current));
    // The answer's `current` has lost the numbers' texts in JavaScript; the value is read once more with its tag.
    setTheirs(await readValue(session, path).catch(() => ({ text: current })));
    setHidden(false);
  };
  const isDirty = base !== undefined && text !== (base.text ?? "");
  return {
    base, text, ttl, theirs, news, problem, fault, isBusy, isHidden, isDirty, asksToLeave, setText, setTtl,
    save: () => send(base.etag),
    overwrite: () => send(theirs.etag),
    compare: () => setHidden(false),
    goOn: () => setHidden(true),
    takeTheirs: () => {
      setBase(theirs);
      setText(theirs.text ?? "");
      setTheirs(undefined);
      setNews(undefined);
    },
    leave: () => (isDirty && !asksToLeave ? setAsks(true) : onClose()),
    stay: () => setAsks(false),
  };
}

/** A fault of a JSON text with line and column, or undefined. */
export function faultOf(text, path) {
  try {
    const { kind } = parseJson(text);
    return path === "" && kind !== "object" ? "the document is an object" : undefined;
  } catch (error) {
    return error.message;
  }
}

function News({ news, isHidden, onCompare }) {
  return html`<div class="problem state-news" role="alert"><div class="grow">The value changed while you edit: revision ${news.revision}${news.agent && html`, by <${Agent} name=${news.agent} />`}.</div>
    ${isHidden && html`<${Button} onClick=${onCompare}>Compare<//>`}</div>`;
}

/** Both values side by side, with what differs marked. */
function Sides({ theirs, mine }) {
  const { runs } = useMemo(() => compareLines((theirs ?? "").split("\n"), mine.split("\n"), DIFF_MS), [theirs, mine]);
  const side = (skipped, mark) => runs.filter(({ kind }) => kind !== skipped).map(({ kind, lines }, i) => {
    const text = `${i > 0 ? "\n" : ""}${lines.join("\n")}`;
    return kind === mark ? html`<mark class=${mark}>${text}</mark>` : text;
  });
  return html`<p role="alert">Somebody else wrote in between. Your change is not written yet.</p>
    <div class="state-sides">
      <section><h3>Theirs</h3>${theirs === undefined ? html`<p class="muted">The value was deleted.</p>` : html`<pre class="codebox" tabindex="0" aria-label="Theirs">${side("added", "removed")}</pre>`}</section>
      <section><h3>Mine</h3><pre class="codebox" tabindex="0" aria-label="Mine">${side("removed", "added")}</pre></section>
    </div>`;
}
