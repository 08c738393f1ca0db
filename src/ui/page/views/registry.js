// The views by name: their titles, icons and components.

import { Agents } from "./agents.js";
import { Past } from "./past.js";
import { Prompt } from "./prompt.js";
import { Questions } from "./questions.js";
import { Screenshots } from "./screenshots.js";
import { Search } from "./search.js";
import { Sessions } from "./sessions.js";
import { State } from "./state.js";
import { Tasks } from "./tasks.js";
import { Timeline } from "./timeline.js";

export const VIEWS = {
  sessions: { title: "Sessions", icon: "sessions", component: Sessions },
  questions: { title: "Questions", icon: "question", component: Questions },
  search: { title: "Search", icon: "search", component: Search },
  timeline: { title: "Timeline", icon: "timeline", component: Timeline },
  screenshots: { title: "Screenshots", icon: "screenshot", component: Screenshots },
  state: { title: "State", icon: "state", component: State },
  prompt: { title: "Prompt", icon: "prompt", component: Prompt },
  past: { title: "Past", icon: "past", component: Past },
  agents: { title: "Agents", icon: "agents", component: Agents },
  tasks: { title: "Tasks", icon: "tasks", component: Tasks },
};
