// Who one is on this page: the name beside what one writes, and the log-out.

import { loadRights, remove, rights, writer } from "../core/api.js";
import { href, place } from "../core/address.js";
import { html, useState } from "../core/dom.js";
import { givenName, giveName, nameFault } from "../core/settings.js";
import { Agent, attempt, Button, Field } from "./basics.js";
import { Dialog, FormDialog } from "./dialog.js";

/** A field for a name, with what is wrong with it. */
export function NameField({ label, value, onText, ...rest }) {
  const fault = nameFault(value.trim());
  return html`<${Field} label=${label} value=${value} onText=${onText} aria-invalid=${String(fault !== undefined)} ...${rest} /><p class="small wrong" role="status">${fault}</p>`;
}

/** The button that shows the name and opens the dialog. */
export function You() {
  const [open, setOpen] = useState(false);
  const { login, mayWrite, known } = rights.value;
  const name = writer();
  if (!known || (!login && !mayWrite)) return null;
  const shown = name ? html`<${Agent} name=${name} />` : mayWrite && html`<span class="muted">Your name</span>`;
  return html`<${Button} icon="user" kind="quiet" class="you" aria-label=${name ? `Your name: ${name}` : "Your name"} onClick=${() => setOpen(true)}>${shown}<//>
    ${open && html`<${Who} onClose=${() => setOpen(false)} />`}`;
}

function Who({ onClose }) {
  const { agent, login, mayWrite } = rights.value;
  const { session } = place.value;
  const [name, setName] = useState(givenName());
  const leave = () => attempt(async () => {
    await remove("/ui/session");
    await loadRights();
    onClose();
  });
  const save = async () => {
    giveName(name.trim());
    onClose();
  };
  const own = writer();
  const rest = html`
    ${session && own && html`<p><a href=${href("agents", session, { agent: own })} onClick=${onClose}>Messages to ${own} in ${session}</a></p>`}
    ${login && html`<p class="row wrap"><span class="grow muted">Logged in with the token ${login.token.name}${!mayWrite && ", which may only read"}.</span><${Button} onClick=${leave}>Log out<//></p>`}`;
  if (agent !== undefined || !mayWrite) {
    return html`<${Dialog} title="You" onClose=${onClose}>
      ${agent !== undefined && html`<p>The token is that of the agent <${Agent} name=${agent} />. Its name stands beside what you write.</p>`}
      ${rest}
    <//>`;
  }
  return html`<${FormDialog} title="You" action="Save" disabled=${nameFault(name.trim()) !== undefined} onSend=${save} onClose=${onClose}>
    <${NameField} label="Your name" autofocus autocomplete="nickname" value=${name} onText=${setName} />
    <p class="muted small">It stands beside what you answer, edit and send. Agents write to you under it, so take one that no agent has. Without a name, nobody is named.</p>
    ${rest}
  <//>`;
}
