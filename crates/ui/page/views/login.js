// Log-in with a token, which becomes a cookie that scripts cannot read.

import { loadRights, post } from "../core/api.js";
import { html, useEffect, useRef, useState } from "../core/dom.js";
import { reopenFeeds } from "../core/feed.js";
import { Button, Field, ProblemNote } from "../parts/basics.js";

export function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState();
  const [busy, setBusy] = useState(false);
  const form = useRef();
  useEffect(() => form.current.querySelector("input").focus(), []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await post("/ui/session", { token: token.trim() });
      await loadRights();
      reopenFeeds();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<div class="login">
    <form class="card" ref=${form} onSubmit=${submit} aria-label="Log in">
      <div class="body stack">
        <h2>Log in</h2>
        <p class="muted">This server needs a token. On its machine, with its <code>--data</code> or <code>--store</code>, make one with</p>
        <code class="codebox">blackboard token create --name page --scopes read,write</code>
        <${Field} label="Token" mono type="password" autocomplete="current-password" required placeholder="bb_…" value=${token} onText=${setToken} />
        <${ProblemNote} error=${error} />
        <${Button} type="submit" kind="primary" disabled=${busy || token.trim() === ""}>Log in<//>
      </div>
    </form>
  </div>`;
}
