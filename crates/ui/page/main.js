// The page: rights first, then the shell.

import { loadRights } from "./core/api.js";
import { html, render } from "./core/dom.js";
import { theme } from "./core/settings.js";
import { ProblemNote } from "./parts/basics.js";
import { loadViews, Shell, shortcuts } from "./parts/shell.js";

const root = document.getElementById("page");

async function start() {
  try {
    await loadRights();
    root.replaceChildren();
    render(html`<${Shell} />`, root);
  } catch (error) {
    root.replaceChildren();
    render(html`<div class="view padded"><${ProblemNote} error=${error} retry=${start} /></div>`, root);
  }
}

theme.subscribe((value) => {
  if (value === "light" || value === "dark") document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
});
shortcuts();
loadViews();
start();

