// The state's document as a tree, live, with one value beside it.

import { board, curl, rights } from "../core/api.js";
import { place as address, setParams } from "../core/address.js";
import { html, useState } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { parseJson } from "../core/state/json-tree.js";
import { useStateDocument } from "../core/state/document.js";
import { nodeOf, ROOT } from "../core/state/tree.js";
import { Button, Command, Empty, Find, ProblemNote, Skeleton } from "../parts/basics.js";
import { AddValue } from "../parts/state/changes.js";
import { Detail } from "../parts/state/detail.js";
import { StateTree } from "../parts/state/tree.js";

export function State({ session }) {
  const feed = useFeed(session);
  const document = useStateDocument(session, feed);
  const { path = "", sub = "", text = "" } = address.value.params;
  const tree = document.tree.value;
  const selected = path === "" && sub === "" ? undefined : { path, sub };
  const error = document.error.value;
  const select = (place) => setParams({ path: place.path, sub: place.sub });
  const retry = () => {
    document.readWhole();
    if (feed.state.peek() === "ended") feed.retry();
  };
  const isEmpty = tree && tree.root.size === 1;
  return html`<div class="view whole state">
    <div class="bar">
      <${Find} label="Filter by path or value" />
    </div>
    ${error && html`<div class="view padded"><${ProblemNote} error=${error} retry=${retry} /></div>`}
    ${document.loading.value && html`<div class="view padded"><${Skeleton} lines=${10} /></div>`}
    ${isEmpty && html`<${Nothing} session=${session} />`}
    ${tree && (!isEmpty || selected) && html`<div class="state-body">
      <${StateTree} tree=${tree} filter=${text} selected=${selected} onSelect=${select} />
      <${Detail} key=${`${path} ${sub}`} session=${session} feed=${feed} place=${selected ?? ROOT} node=${nodeOf(tree.root, selected ?? ROOT)} onSelect=${select} />
    </div>`}
  </div>`;
}

const NOTHING = parseJson("{}");

function Nothing({ session }) {
  const [adding, setAdding] = useState(false);
  return html`<${Empty} title="The state is empty">
    <p>It is one JSON document of the session, written by path. To write the first value:</p>
    <${Command} text=${curl(board(session, "state", "plan", "title"), { method: "PUT", body: "Quarter report" })} />
    ${rights.value.mayWrite && html`<p><${Button} icon="plus" onClick=${() => setAdding(true)}>Add a member<//></p>`}
    ${adding && html`<${AddValue} session=${session} path="" node=${NOTHING} onClose=${() => setAdding(false)} onAdded=${() => {}} />`}
  <//>`;
}
