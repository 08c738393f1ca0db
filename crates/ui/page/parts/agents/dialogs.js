// The dialog that registers an agent.

import { board, put } from "../../core/api.js";
import { setParams } from "../../core/address.js";
import { html, useState } from "../../core/dom.js";
import { FIRST, statuses } from "../../core/statuses.js";
import { Button, ProblemNote, Select } from "../basics.js";
import { Dialog } from "../dialog.js";

const FIELDS = [["type", "Type", "AppAgent"], ["platform", "Platform", "linux"], ["host", "Host", "HostAgent"]];

export function RegisterAgent({ session, states, onMade, onClose }) {
  const [name, setName] = useState("");
  const [status, setStatus] = useState(FIRST);
  const [profile, setProfile] = useState({});
  const [error, setError] = useState();
  const register = async (event) => {
    event.preventDefault();
    const filled = Object.fromEntries(Object.entries(profile).filter(([, value]) => value.trim() !== ""));
    try {
      await put(board(session, "agents", name), { ...filled, status }, { headers: { "If-None-Match": "*" } });
      onMade();
      onClose();
      setParams({ agent: name, before: null });
    } catch (problem) {
      setError(problem.status === 412 ? Object.assign(problem, { message: "an agent of this name is registered" }) : problem);
    }
  };
  return html`<${Dialog} title="Register an agent" onClose=${onClose}>
    <form class="stack" onSubmit=${register}>
      <label class="labelled">Name<input class="field" autofocus required value=${name} onInput=${(event) => setName(event.currentTarget.value)} /></label>
      ${FIELDS.map(([field, label, example]) => html`<label class="labelled" key=${field}>${label} (optional)<input class="field" placeholder=${example} value=${profile[field] ?? ""} onInput=${(event) => setProfile({ ...profile, [field]: event.currentTarget.value })} /></label>`)}
      <${Select} label="Status" options=${statuses(states).map((one) => [one, one])} value=${status} onChange=${setStatus} />
      <${ProblemNote} error=${error} />
      <div class="row"><span class="grow"></span><${Button} onClick=${onClose}>Cancel<//><${Button} type="submit" kind="primary" disabled=${name === ""}>Register<//></div>
    </form>
  <//>`;
}
