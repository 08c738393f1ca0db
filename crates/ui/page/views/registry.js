// The views by name: their titles, icons, and modules, each loaded when it is shown for the first time.

export const VIEWS = {
  sessions: { title: "Sessions", icon: "sessions", load: () => import("./sessions.js").then((of) => of.Sessions) },
  questions: { title: "Questions", icon: "question", load: () => import("./questions.js").then((of) => of.Questions) },
  search: { title: "Search", icon: "search", load: () => import("./search.js").then((of) => of.Search) },
  timeline: { title: "Timeline", icon: "timeline", load: () => import("./timeline.js").then((of) => of.Timeline) },
  screenshots: { title: "Screenshots", icon: "screenshot", load: () => import("./screenshots.js").then((of) => of.Screenshots) },
  state: { title: "State", icon: "state", load: () => import("./state.js").then((of) => of.State) },
  prompt: { title: "Prompt", icon: "prompt", load: () => import("./prompt.js").then((of) => of.Prompt) },
  past: { title: "Past", icon: "past", load: () => import("./past.js").then((of) => of.Past) },
  agents: { title: "Agents", icon: "agents", load: () => import("./agents.js").then((of) => of.Agents) },
  tasks: { title: "Tasks", icon: "tasks", load: () => import("./tasks.js").then((of) => of.Tasks) },
};
