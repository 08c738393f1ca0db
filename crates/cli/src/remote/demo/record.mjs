// Makes recording.ndjson: the calls of the example run that `blackboard demo` plays, in their order.
//
//     npm --prefix tests/page ci && node crates/cli/src/remote/demo/record.mjs
//
// A line is a call: its agent, method, path and body. `keep` names values of the answer by JSON pointers, where there
// are some; later calls have them, and the names of the two sessions, as <name> in a path and as "<name>" in a body.
// `unless` is the code of a refusal that is as good as success. Chromium takes the screenshots.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../..", import.meta.url));
const { chromium } = createRequire(join(ROOT, "tests/page/harness.mjs"))("playwright-core");

const [HOST, EXCEL, WORD] = ["HostAgent", "ExcelAgent", "WordAgent"];
const APPLICATIONS = { [HOST]: "explorer.exe", [EXCEL]: "EXCEL.EXE", [WORD]: "WINWORD.EXE" };
const SESSION = "/v1/sessions/<session>";

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const screen = await browser.newPage({ viewport: { width: 640, height: 400 } });
const devtools = await screen.context().newCDPSession(screen);
const calls = [];
const claims = {};
const seen = {};
let [steps, shots] = [0, 0];

function call(agent, method, path, body, rest) {
  calls.push({ agent, method, path: path.startsWith("/") ? path : `${SESSION}/${path}`, body, ...rest });
}

const puts = (facts) => Object.entries(facts).map(([put, value]) => ({ put, value }));

/** Commits operations under the agent's claim, if it has one. */
function transact(agent, then) {
  const claim = claims[agent];
  call(agent, "POST", `transactions${claim ? `?claim=<${claim}>&fence=<${claim}-fence>` : ""}`, { then });
}

function register(agent, type) {
  const body = { type, platform: "windows", host: HOST, device: "desktop-4", status: "CONTINUE" };
  call(agent, "PUT", `agents/${agent}`, body);
}

const status = (agent, status) => call(agent, "PATCH", `agents/${agent}`, { status });

function request(from, key, agent, application, attempts, text, after = []) {
  const query = [after.length && `after=${after.map((key) => `<${key}>`)}`, `attempts=${attempts}`].filter(Boolean).join("&");
  call(from, "POST", `requests?${query}`, { request: text, agent, application }, { keep: { [key]: "/entries/0/seq" } });
}

function claim(agent, key) {
  claims[agent] = key;
  call(agent, "PUT", `requests/<${key}>/claim`, { ttl: "2h" }, { keep: { [`${key}-fence`]: "/claim/fence" } });
}

/** Ends the agent's claim: `done` with a result, or `failed` with a reason. */
function end(agent, verb, body) {
  call(agent, "PUT", `requests/<${claims[agent]}>/${verb}`, { fence: `<${claims[agent]}-fence>`, ...body });
  delete claims[agent];
}

const finish = (agent, result) => end(agent, "done", { result });

/** Takes a step: its trajectory, its agent's memory and status, and values of the state, in one commit. */
function step(agent, status, [cost, duration], subtask, observation, thought, action, facts = {}) {
  const outcome = status === "FAIL" ? "FAILURE" : "SUCCESS";
  const action_representation = `[Action] ${action}\n[Status] ResultStatus.${outcome}`;
  const step = ++steps;
  const screenshot = seen[agent];
  transact(agent, [
    { append: "trajectories", item: { step, agent, subtask, observation, thought, action, status, screenshot, cost, duration } },
    { append: `agents/${agent}/memory`, item: { step, subtask, action_representation, results: [{ status: outcome }], status, cost } },
    { status: agent, value: status },
    { add: "progress/steps", value: 1 },
    ...puts(facts),
  ]);
  delete seen[agent];
}

/** Takes a screenshot, which the agent's next step names. */
async function shot(agent, reason, content) {
  await screen.setContent(`<!doctype html><style>${STYLE}</style>${content}${TASKBAR}`);
  const image = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 80 });
  const metadata = { "screenshot application": APPLICATIONS[agent], "saving reason": reason };
  const body = { metadata, image_path: `logs/q3/screenshot_${steps}.webp`, image_str: `data:image/webp;base64,${image.data}` };
  seen[agent] = `<shot-${++shots}>`;
  call(agent, "POST", "screenshots", body, { keep: { [`shot-${shots}`]: "/entries/0/seq" } });
}

function ask(agent, key, question, options, unanswered, expires) {
  const query = new URLSearchParams({ expires, default: unanswered });
  call(agent, "POST", `questions?${query}`, { question, options }, { keep: { [key]: "/entries/0/seq" } });
}

const checkpoint = (agent, name) => call(agent, "POST", "checkpoints", { name });

// The screens: a desktop with a spreadsheet and a document.

const MONTHS = { Jul: "#9fd3b6", Aug: "#45a274", Sep: "#155c38" };
const SALES = { North: [42, 51, 63], South: [38, 36, 44], East: [29, 41, 52], West: [47, 45, 58] };
const STYLE = `
  * { box-sizing: border-box }
  body { margin: 0; height: 400px; overflow: hidden; background: #2b5f8c; font: 11px "Segoe UI", "DejaVu Sans", sans-serif; color: #1f2933 }
  .wall { position: absolute; inset: 0; background: #3a76a6; clip-path: polygon(0 100%, 62% 0, 100% 0, 100% 58%, 30% 100%) }
  .bar { position: absolute; inset: auto 0 0; height: 26px; background: #16283a; color: #dfe8f0; padding: 0 8px; display: flex; gap: 6px; align-items: center }
  .tile { width: 18px; height: 18px; border-radius: 4px; color: #fff; font-weight: bold; display: grid; place-items: center }
  .icon { position: absolute; left: 22px; width: 92px; text-align: center; color: #fff; text-shadow: 0 1px 2px #123 }
  .icon .tile { width: 44px; height: 44px; font-size: 24px; margin: 0 auto 5px; border: 1px solid #ffffff66 }
  .note { position: absolute; left: 352px; top: 50px; width: 240px; background: #fdf3c4; padding: 0 14px 16px; font-size: 15px; line-height: 1.5; box-shadow: 3px 4px 0 #1c4568 }
  .note b { display: block; margin: 0 -14px 10px; padding: 3px 14px; background: #f4df8a; font-size: 13px }
  .window { position: absolute; inset: 12px 18px 36px; background: #fff; border: 1px solid #10243a; border-radius: 6px; overflow: hidden; box-shadow: 0 3px 0 #173d60 }
  .title { height: 24px; color: #fff; display: flex; align-items: center; gap: 14px; padding: 0 10px }
  .title :first-child { margin-right: auto; font-weight: bold }
  .tabs { height: 24px; background: #f1f4f6; border-bottom: 1px solid #d5dbe1; display: flex; gap: 18px; align-items: center; padding: 0 12px }
  .tabs b { border-bottom: 2px solid; padding: 3px 0 }
  .formula { height: 21px; border-bottom: 1px solid #d5dbe1; color: #7b8794; padding: 3px 10px }
  table { border-collapse: collapse; table-layout: fixed; width: 100%; font-size: 15px }
  td, th { border: 1px solid #dfe4e9; height: 23px; padding: 0 7px; text-align: right; line-height: 1 }
  th { background: #eef1f4; color: #66727f; font-weight: normal; text-align: center; padding: 0 }
  td.text { text-align: left; white-space: nowrap }
  .total td { font-weight: bold; border-top-color: #1f2933 }
  td.chosen { background: #d9efe3; border-color: #a9d3bb }
  .chart { background: #fff; border: 1px solid #9aa7b3 }
  .window > .chart { position: absolute; left: 236px; top: 102px; outline: 2px solid #1d7044 }
  .dialog { position: absolute; left: 150px; top: 130px; width: 340px; background: #fff; border: 1px solid #52616f; border-radius: 6px; box-shadow: 0 0 0 900px #1118272e, 0 5px 0 #33415555; padding: 8px 12px 12px; font-size: 13px }
  .dialog div { display: flex; gap: 14px; align-items: center; margin: 12px 4px }
  .dialog i { flex: none; width: 34px; height: 34px; border-radius: 50%; background: #c93a3a; color: #fff; font: bold 22px/34px sans-serif; text-align: center }
  .dialog u { display: block; width: 76px; margin-left: auto; padding: 4px; border-radius: 4px; background: #1d7044; color: #fff; text-align: center; text-decoration: none }
  .desk { background: #d3dae0; height: 100% }
  .page { width: 430px; margin: 0 auto; height: 400px; background: #fff; border: 1px solid #b3bdc6; border-top: 0; padding: 16px 34px; font: 11px/1.45 "DejaVu Serif", serif }
  .page h1 { font: bold 17px "Segoe UI", "DejaVu Sans", sans-serif; color: #235a9e; margin: 0 0 6px }
  .page p { margin: 0 0 8px }
  .page small { color: #66727f; font-style: italic }
  .hole { border: 1px dashed #9aa7b3; background: #f6f8fa; color: #66727f; height: 92px; display: grid; place-items: center }`;
const tile = (letter, colour) => `<div class=tile style="background:${colour}">${letter}</div>`;
const [SHEETS, DOCUMENTS] = [tile("X", "#1d7044"), tile("W", "#235a9e")];
const TASKBAR = `<div class=bar>${tile("", "#4fa3e0")}${SHEETS}${DOCUMENTS}${tile("", "#d9a441")}<span style="margin-left:auto">10:24</span></div>`;

const icon = (top, tile, name) => `<div class=icon style="top:${top}px">${tile}${name}</div>`;
const DESKTOP = `<div class=wall></div>${icon(18, SHEETS, "sales-q3.xlsx")}${icon(104, DOCUMENTS, "report.docx")}
  ${icon(190, tile("", "#e0b055"), "Archive")}
  <div class=note><b>To do today</b>Make a chart of the quarter's sales and put it into the report</div>`;

function opened(name, colour, tabs, content) {
  const [tab, ...others] = tabs.split(" ").map((tab) => `<span>${tab}</span>`);
  return `<div class=wall></div><div class=window><div class=title style="background:${colour}"><span>${name}</span>
    <span>–</span><span>☐</span><span>✕</span></div><div class=tabs><b style="color:${colour}">${tab}</b>${others.join("")}</div>${content}</div>`;
}

/** Draws the sales as bars, grouped by region: the first ones of the four. */
function chart(width, height, regions, title) {
  const [left, top, bottom] = [32, title ? 30 : 10, height - 44];
  const y = (value) => bottom - (value * (bottom - top)) / 70;
  const group = (width - left - 12) / 4;
  const lines = [0, 20, 40, 60].map((value) => `<path d="M${left} ${y(value)}H${width - 10}" stroke="#d5dbe1"/>
    <text x=${left - 6} y=${y(value) + 4} text-anchor=end fill="#66727f">${value}</text>`);
  const bars = Object.entries(SALES).slice(0, regions).map(([region, sales], n) =>
    Object.values(MONTHS).map((colour, month) => {
      const bar = (group - 16) / 3;
      return `<rect x=${left + n * group + 8 + month * bar} y=${y(sales[month])} width=${bar - 2} height=${bottom - y(sales[month])} fill="${colour}"/>`;
    }).join("") + `<text x=${left + (n + 0.5) * group} y=${bottom + 15} text-anchor=middle>${region}</text>`);
  const legend = Object.entries(MONTHS).map(([name, colour], n) => `<rect x=${width / 2 - 78 + 60 * n} y=${height - 18} width=10 height=10 fill="${colour}"/>
    <text x=${width / 2 - 63 + 60 * n} y=${height - 9}>${name}</text>`);
  return `<svg class=chart width=${width} height=${height} font-family="Segoe UI, DejaVu Sans, sans-serif" font-size=11>
    <text x=12 y=19 font-size=13 font-weight=bold>${title}</text>${[...lines, ...bars, ...legend].join("")}</svg>`;
}

function sheet({ chosen, above = "" } = {}) {
  const sum = (values) => values.reduce((sum, value) => sum + value, 0);
  const rows = [["Sales, thousands"], ["Region", ...Object.keys(MONTHS), "Total"]];
  rows.push(...Object.entries(SALES).map(([region, sales]) => [region, ...sales, sum(sales)]));
  const months = Object.keys(MONTHS).map((_, month) => sum(Object.values(SALES).map((sales) => sales[month])));
  rows.push(["Total", ...months, sum(months)]);
  const row = (n) => `<tr class=${n === 6 ? "total" : ""}><th>${n + 1}</th>${[..."ABCDEF"].map((_, column) => {
    const is_chosen = chosen && n >= 1 && n <= 5 && column <= 3;
    return `<td class="${column ? "" : "text"} ${is_chosen ? "chosen" : ""}">${rows[n]?.[column] ?? ""}</td>`;
  }).join("")}</tr>`;
  const head = `<tr><th style="width:28px"></th>${[..."ABCDEF"].map((name) => `<th>${name}</th>`).join("")}</tr>`;
  return opened("sales-q3.xlsx", "#1d7044", "Home Insert Data Review", `<div class=formula>${chosen ? "A2:D6" : "A1"} &nbsp; <i>fx</i></div>
    <table>${head}${[...Array(12).keys()].map(row).join("")}</table>${above}`);
}

const charted = (regions, title) => sheet({ above: chart(352, 236, regions, title) });
const DIALOG = `<div class=dialog><b>Excel</b><div><i>!</i><span>The sheet is protected. Unprotect it to make changes.</span></div><u>OK</u></div>`;

const report = (content) => opened("report.docx", "#235a9e", "Home Insert Layout Review",
  `<div class=desk><div class=page><h1>3 Sales</h1>${content}</div></div>`);
const DRAFTED = report(`<p>Sales rose in every month of the quarter. July closed at 156 thousand, August at 173 and September at 217,
  which makes 546 for the quarter. North contributed most, followed by West.</p><p>North sold 42, 51 and 63 thousand, South 38, 36
  and 44, East 29, 41 and 52, West 47, 45 and 58. The growth from July to September is 39 percent.</p><div class=hole>[ chart of the quarter ]</div>`);
const REPORTED = report(`<p>Sales rose in every month of the quarter, to 217 thousand in September. North contributed most, followed
  by West.</p>${chart(360, 168, 4, "")}<br><small>Figure 2: Sales by region</small>`);

// The story: agents make a chart of the quarter's sales and put it into the report.

call(undefined, "PUT", SESSION, { settings: { cost_max: 1.0 }, labels: { demo: "blackboard", team: "reports" } });
// The user asks; the agents come.
request("User", "goal", HOST, "desktop", 2, "Make a chart of the quarter's sales and put it into the report");
register(HOST, "HostAgent");
register(EXCEL, "AppAgent");
register(WORD, "AppAgent");
transact(HOST, puts({
  "devices/desktop-4/platform": "windows", "devices/desktop-4/screen": "640x400", "devices/desktop-4/ready": true,
  "devices/desktop-4/excel/ready": false, "devices/desktop-4/excel/version": "16.0",
  "devices/desktop-4/word/ready": false, "devices/desktop-4/word/version": "16.0",
  "progress/steps": 0, "progress/percent": 0,
}));
claim(HOST, "goal");
// HostAgent looks at the desktop and plans.
await shot(HOST, "Both files of the task are on the desktop", DESKTOP);
step(HOST, "CONTINUE", [0.021, 3.8], "Plan the work",
  "The desktop shows sales-q3.xlsx and report.docx, and a note with the task.",
  "Excel can make the chart, Word takes it into the report. Reading the figures and preparing the section do not depend on each other.",
  "plan(subtasks=5)", {
    "plan/goal": "Chart of the quarter in the report", "plan/figures": "waiting", "plan/chart": "waiting", "plan/section": "waiting",
    "plan/insert": "waiting", "plan/export": "waiting",
    "facts/workbook": "sales-q3.xlsx", "facts/report": "report.docx", "facts/quarter": "2026-Q3",
  });
request(HOST, "figures", EXCEL, APPLICATIONS[EXCEL], 2, "Open the workbook and read the quarter's sales");
request(HOST, "chart", EXCEL, APPLICATIONS[EXCEL], 3, "Make a bar chart of the sales beside the figures", ["figures"]);
request(HOST, "section", WORD, APPLICATIONS[WORD], 2, "Open the report and prepare the section on sales");
request(HOST, "insert", WORD, APPLICATIONS[WORD], 3, "Put the chart into the section, with a caption", ["chart", "section"]);
request(HOST, "export", WORD, APPLICATIONS[WORD], 2, "Export the report as PDF", ["insert"]);
checkpoint(HOST, "planned");
status(HOST, "PENDING");
// ExcelAgent reads the figures, WordAgent opens the report.
claim(EXCEL, "figures");
step(EXCEL, "SCREENSHOT", [0.014, 4.6], "Open the workbook",
  "Excel is not running. The file is on the desktop.", "Opening the file starts Excel.", "open_file(path='sales-q3.xlsx')",
  { "plan/figures": "running", "devices/desktop-4/excel/ready": true });
await shot(EXCEL, "The figures to be charted", sheet());
claim(WORD, "section");
step(WORD, "SCREENSHOT", [0.012, 5.1], "Open the report",
  "Word is not running. The file is on the desktop.", "Opening the file starts Word.", "open_file(path='report.docx')",
  { "plan/section": "running", "devices/desktop-4/word/ready": true });
await shot(WORD, "The section where the chart belongs", DRAFTED);
step(EXCEL, "CONTINUE", [0.018, 1.9], "Read the table",
  "A table with four regions in rows 3 to 6 and three months in columns B to D.",
  "The table has a head and a row of totals, which the chart must leave out.", "get_range(address='A2:E7')",
  { "facts/sheet": "Sales", "facts/range": "A2:D6", "facts/regions": Object.keys(SALES), "facts/unit": "thousands" });
step(EXCEL, "CONTINUE", [0.011, 0.8], "Check the totals",
  "Totals by month are 156, 173 and 217, by region 156, 118, 122 and 150.",
  "Both sums are 546, so the table is consistent.", "evaluate(formula='=SUM(B3:D6)')", {
    "facts/total": 546, "facts/best/region": "North", "facts/best/month": "September", "facts/growth_percent": 39,
    "plan/figures": "done", "progress/percent": 15,
  });
finish(EXCEL, { range: "A2:D6", total: 546 });
step(WORD, "CONTINUE", [0.016, 2.2], "Find the section",
  "Headings 1 Summary, 2 Market, 3 Sales. Section 3 has text and a placeholder for a chart.",
  "The placeholder marks the place. It is to be replaced, not the text above it.", "find_text(text='[ chart of the quarter ]')",
  { "facts/section": "3 Sales", "facts/page": 4 });
// The chart fails: the sheet is protected.
claim(EXCEL, "chart");
step(EXCEL, "CONTINUE", [0.013, 1.1], "Select the table",
  "The sheet Sales is active, no cell is selected.",
  "The chart takes the selection as its data, so the totals stay out of it.", "select_range(address='A2:D6')",
  { "plan/chart": "running" });
step(EXCEL, "FAIL", [0.019, 2.7], "Insert the chart",
  "A dialog says: The sheet is protected. Unprotect it to make changes.",
  "I may not lift a protection that I was not told about. HostAgent has to decide.", "insert_chart(type='column', range='A2:D6')",
  { "facts/protected": true, "plan/chart": "blocked" });
await shot(EXCEL, "Excel refuses to insert the chart", sheet({ chosen: true, above: DIALOG }));
end(EXCEL, "failed", { reason: { error: "the sheet is protected", sheet: "Sales", action: "insert_chart" } });
step(WORD, "CONTINUE", [0.022, 3.3], "Shorten the text",
  "Section 3 repeats the monthly figures that the chart will show.",
  "Two lines are enough above a chart.", "set_text(section='3 Sales', paragraphs=1)", { "facts/paragraphs": 1 });
status(HOST, "CONTINUE");
step(HOST, "PENDING", [0.024, 4.1], "Clear the obstacle",
  "Request chart failed once: the sheet is protected. Two attempts are left.",
  "The sheet notes say that it is protected against slips, without a password. Lifting it for the chart and setting it again keeps the intent.",
  "send_message(agent='ExcelAgent', text='Unprotect, make the chart, protect again')", { "facts/password": false, "plan/chart": "waiting" });
// ExcelAgent tries again and asks how to group the bars.
status(EXCEL, "CONTINUE");
claim(EXCEL, "chart");
step(EXCEL, "CONTINUE", [0.012, 1.4], "Unprotect the sheet",
  "The tab Review offers Unprotect Sheet.", "There is no password, so the command takes effect at once.",
  "unprotect_sheet(sheet='Sales')", { "facts/protected": false, "plan/chart": "running" });
step(EXCEL, "SCREENSHOT", [0.011, 1.0], "Select the table again",
  "The dialog is gone and the sheet accepts changes.", "The same range as before.", "select_range(address='A2:D6')");
await shot(EXCEL, "The range that the chart shows", sheet({ chosen: true }));
status(EXCEL, "CONTINUE");
ask(EXCEL, "grouping", "Group the bars by region or by month?", ["by region", "by month"], "by region", "15m");
status(EXCEL, "PENDING");
step(WORD, "CONTINUE", [0.012, 1.7], "Proofread the section",
  "One paragraph of two lines, one placeholder, no spelling marks.", "The section is ready for the chart.",
  "check_spelling(section='3 Sales')", { "plan/section": "done", "progress/percent": 35 });
finish(WORD, { section: "3 Sales", page: 4 });
status(WORD, "PENDING");
// A person has time to answer; otherwise the command does. The first option counts if somebody skips the question.
call(EXCEL, "GET", "questions/<grouping>", undefined, { keep: { answer: "/item/options/0" } });
call(EXCEL, "GET", "questions/<grouping>?until=answered&wait=<time>", undefined, { unless: "condition-not-met" });
call(EXCEL, "PUT", "questions/<grouping>/answer", { answer: "by region" }, { unless: "already-answered" });
call(EXCEL, "GET", "questions/<grouping>", undefined, { keep: { answer: "/item/answer" } });
call(EXCEL, "PUT", "state/facts/chart/grouping", "<answer>");
status(EXCEL, "CONTINUE");
step(EXCEL, "SCREENSHOT", [0.019, 2.5], "Insert the chart",
  "The range is selected and the question is answered.",
  "Clustered columns compare the months within each region.", "insert_chart(type='column', range='A2:D6')",
  { "facts/chart/type": "column", "progress/percent": 50 });
await shot(EXCEL, "The chart while Excel draws it", charted(2, "Chart title"));
step(EXCEL, "SCREENSHOT", [0.017, 2.1], "Format the chart",
  "The chart has default colours and no title.",
  "Shades of one colour show the order of the months.", "format_chart(title='Sales by region', palette='green')",
  { "facts/chart/title": "Sales by region", "facts/chart/palette": "green" });
await shot(EXCEL, "The finished chart beside the figures", charted(4, "Sales by region"));
step(EXCEL, "CONTINUE", [0.012, 1.6], "Protect the sheet",
  "The chart is complete. The sheet is still unprotected.", "HostAgent asked for the protection to be set again.",
  "protect_sheet(sheet='Sales'); save()", { "facts/protected": true });
step(EXCEL, "FINISH", [0.01, 0.7], "Copy the chart",
  "The workbook is saved. The chart is selected.", "Word takes the chart from the clipboard as a picture.",
  "copy(object='Chart 1', format='picture')", { "plan/chart": "done", "progress/percent": 60 });
finish(EXCEL, { chart: "Chart 1", clipboard: true });
checkpoint(HOST, "charted");
call(HOST, "POST", "fork", { to: "<draft>", at: "charted" });
call(HOST, "PUT", "/v1/sessions/<draft>", { labels: { demo: "blackboard", team: "drafts" } });
call(HOST, "POST", "/v1/sessions/<draft>/transactions", { then: puts({ "facts/chart/type": "line" }) });
// The requests that waited go on in Word.
status(WORD, "CONTINUE");
claim(WORD, "insert");
step(WORD, "CONTINUE", [0.012, 1.2], "Go to the placeholder",
  "The placeholder is on page 4, below the paragraph.", "Selecting it lets the chart replace it.",
  "select_text(text='[ chart of the quarter ]')", { "plan/insert": "running" });
step(WORD, "SCREENSHOT", [0.016, 2.4], "Paste the chart",
  "The placeholder is selected.", "A picture keeps its look if the workbook changes later.",
  "paste(format='picture', width='15cm')", { "facts/figure": 2, "progress/percent": 75 });
await shot(WORD, "The chart in the report", REPORTED);
step(WORD, "CONTINUE", [0.014, 1.5], "Add the caption",
  "The chart stands in section 3 without a caption.", "Figure 1 is in section 2, so this is figure 2.",
  "insert_caption(text='Figure 2: Sales by region')", { "facts/caption": "Figure 2: Sales by region" });
step(WORD, "CONFIRM", [0.011, 0.9], "Save the report",
  "Saving replaces report.docx.", "The plan allows it; the action still needs to be confirmed.",
  "save(path='report.docx')", { "plan/insert": "done" });
status(WORD, "CONTINUE");
finish(WORD, { figure: 2, saved: true });
claim(WORD, "export");
step(WORD, "FINISH", [0.013, 3.9], "Export the PDF",
  "The report is saved.", "The export takes the settings of the last one.",
  "export(path='report.pdf', format='pdf')", { "plan/export": "done", "facts/pdf": "report.pdf", "progress/percent": 90 });
finish(WORD, { file: "report.pdf", pages: 7 });
status(HOST, "CONTINUE");
step(HOST, "FINISH", [0.02, 3.0], "Check the result",
  "All subtasks are done. Page 4 of report.pdf has figure 2.",
  "The goal is reached. Sending the report is for a person to decide.", "verify(file='report.pdf', contains='Figure 2')",
  { "progress/percent": 100, "plan/goal": "done" });
finish(HOST, { report: "report.docx", pdf: "report.pdf" });
checkpoint(HOST, "reported");
ask(HOST, "sending", "Send report.pdf to the sales team now?", ["Send it", "Not yet"], "Not yet", "30m");

await browser.close();
const recording = calls.map((call) => `${JSON.stringify(call)}\n`).join("");
if (recording.length > 200_000) throw new Error(`${recording.length} bytes are too many for every binary`);
writeFileSync(new URL("recording.ndjson", import.meta.url), recording);
