//! The story: agents make a chart of the quarter's sales and put it into the report.
//!
//! One deed after the other, each with the agent that does it. The times between them are equal.

use super::deed::Deed::{
    self, Ask, Await, Checkpoint, Claim, Facts, Fail, Finish, Fork, Register, Request as Requested,
    Screenshot, Status, Step as Stepped,
};
use super::deed::{Question, Request, Step};
use super::picture::Picture;

const USER: &str = "User";
const HOST: &str = "HostAgent";
const EXCEL: &str = "ExcelAgent";
const WORD: &str = "WordAgent";

/// The settings and labels of the session.
pub(super) const SESSION: &str =
    r#"{"settings":{"cost_max":1.0},"labels":{"demo":"blackboard","team":"reports"}}"#;

/// The labels of the fork.
pub(super) const DRAFT: &str = r#"{"labels":{"demo":"blackboard","team":"drafts"}}"#;

/// The deeds in their order.
pub(super) const STORY: &[(&str, Deed)] = &[
    // The user asks; the agents come.
    (
        USER,
        Requested(Request {
            key: "goal",
            text: "Make a chart of the quarter's sales and put it into the report",
            agent: HOST,
            application: "desktop",
            after: &[],
            attempts: 2,
        }),
    ),
    (HOST, Register { kind: "HostAgent", host: HOST, device: "desktop-4" }),
    (EXCEL, Register { kind: "AppAgent", host: HOST, device: "desktop-4" }),
    (WORD, Register { kind: "AppAgent", host: HOST, device: "desktop-4" }),
    (
        HOST,
        Facts(&[
            ("devices/desktop-4/platform", r#""windows""#),
            ("devices/desktop-4/screen", r#""640x400""#),
            ("devices/desktop-4/ready", "true"),
            ("devices/desktop-4/excel/ready", "false"),
            ("devices/desktop-4/excel/version", r#""16.0""#),
            ("devices/desktop-4/word/ready", "false"),
            ("devices/desktop-4/word/version", r#""16.0""#),
            ("progress/steps", "0"),
            ("progress/percent", "0"),
        ]),
    ),
    (HOST, Claim("goal")),
    // HostAgent looks at the desktop and plans.
    (
        HOST,
        Screenshot {
            picture: Picture::Desktop,
            application: "explorer.exe",
            reason: "Both files of the task are on the desktop",
        },
    ),
    (
        HOST,
        Stepped(Step {
            subtask: "Plan the work",
            observation: "The desktop shows sales-q3.xlsx and report.docx, and a note with the task.",
            thought: "Excel can make the chart, Word takes it into the report. Reading the figures and preparing the section do not depend on each other.",
            action: "plan(subtasks=5)",
            status: "CONTINUE",
            cost: 0.021,
            duration: 3.8,
            facts: &[
                ("plan/goal", r#""Chart of the quarter in the report""#),
                ("plan/figures", r#""waiting""#),
                ("plan/chart", r#""waiting""#),
                ("plan/section", r#""waiting""#),
                ("plan/insert", r#""waiting""#),
                ("plan/export", r#""waiting""#),
                ("facts/workbook", r#""sales-q3.xlsx""#),
                ("facts/report", r#""report.docx""#),
                ("facts/quarter", r#""2026-Q3""#),
            ],
        }),
    ),
    (
        HOST,
        Requested(Request {
            key: "figures",
            text: "Open the workbook and read the quarter's sales",
            agent: EXCEL,
            application: "EXCEL.EXE",
            after: &[],
            attempts: 2,
        }),
    ),
    (
        HOST,
        Requested(Request {
            key: "chart",
            text: "Make a bar chart of the sales beside the figures",
            agent: EXCEL,
            application: "EXCEL.EXE",
            after: &["figures"],
            attempts: 3,
        }),
    ),
    (
        HOST,
        Requested(Request {
            key: "section",
            text: "Open the report and prepare the section on sales",
            agent: WORD,
            application: "WINWORD.EXE",
            after: &[],
            attempts: 2,
        }),
    ),
    (
        HOST,
        Requested(Request {
            key: "insert",
            text: "Put the chart into the section, with a caption",
            agent: WORD,
            application: "WINWORD.EXE",
            after: &["chart", "section"],
            attempts: 3,
        }),
    ),
    (
        HOST,
        Requested(Request {
            key: "export",
            text: "Export the report as PDF",
            agent: WORD,
            application: "WINWORD.EXE",
            after: &["insert"],
            attempts: 2,
        }),
    ),
    (HOST, Checkpoint("planned")),
    (HOST, Status("PENDING")),
    // ExcelAgent reads the figures, WordAgent opens the report.
    (EXCEL, Claim("figures")),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Open the workbook",
            observation: "Excel is not running. The file is on the desktop.",
            thought: "Opening the file starts Excel.",
            action: "open_file(path='sales-q3.xlsx')",
            status: "SCREENSHOT",
            cost: 0.014,
            duration: 4.6,
            facts: &[("plan/figures", r#""running""#), ("devices/desktop-4/excel/ready", "true")],
        }),
    ),
    (
        EXCEL,
        Screenshot {
            picture: Picture::Sheet,
            application: "EXCEL.EXE",
            reason: "The figures to be charted",
        },
    ),
    (WORD, Claim("section")),
    (
        WORD,
        Stepped(Step {
            subtask: "Open the report",
            observation: "Word is not running. The file is on the desktop.",
            thought: "Opening the file starts Word.",
            action: "open_file(path='report.docx')",
            status: "SCREENSHOT",
            cost: 0.012,
            duration: 5.1,
            facts: &[("plan/section", r#""running""#), ("devices/desktop-4/word/ready", "true")],
        }),
    ),
    (
        WORD,
        Screenshot {
            picture: Picture::Document,
            application: "WINWORD.EXE",
            reason: "The section where the chart belongs",
        },
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Read the table",
            observation: "A table with four regions in rows 3 to 6 and three months in columns B to D.",
            thought: "The table has a head and a row of totals, which the chart must leave out.",
            action: "get_range(address='A2:E7')",
            status: "CONTINUE",
            cost: 0.018,
            duration: 1.9,
            facts: &[
                ("facts/sheet", r#""Sales""#),
                ("facts/range", r#""A2:D6""#),
                ("facts/regions", r#"["North","South","East","West"]"#),
                ("facts/unit", r#""thousands""#),
            ],
        }),
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Check the totals",
            observation: "Totals by month are 156, 173 and 217, by region 156, 118, 122 and 150.",
            thought: "Both sums are 546, so the table is consistent.",
            action: "evaluate(formula='=SUM(B3:D6)')",
            status: "CONTINUE",
            cost: 0.011,
            duration: 0.8,
            facts: &[
                ("facts/total", "546"),
                ("facts/best/region", r#""North""#),
                ("facts/best/month", r#""September""#),
                ("facts/growth_percent", "39"),
                ("plan/figures", r#""done""#),
                ("progress/percent", "15"),
            ],
        }),
    ),
    (EXCEL, Finish("figures", r#"{"range":"A2:D6","total":546}"#)),
    (
        WORD,
        Stepped(Step {
            subtask: "Find the section",
            observation: "Headings 1 Summary, 2 Market, 3 Sales. Section 3 has text and a placeholder for a chart.",
            thought: "The placeholder marks the place. It is to be replaced, not the text above it.",
            action: "find_text(text='[ chart of the quarter ]')",
            status: "CONTINUE",
            cost: 0.016,
            duration: 2.2,
            facts: &[("facts/section", r#""3 Sales""#), ("facts/page", "4")],
        }),
    ),
    // The chart fails: the sheet is protected.
    (EXCEL, Claim("chart")),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Select the table",
            observation: "The sheet Sales is active, no cell is selected.",
            thought: "The chart takes the selection as its data, so the totals stay out of it.",
            action: "select_range(address='A2:D6')",
            status: "CONTINUE",
            cost: 0.013,
            duration: 1.1,
            facts: &[("plan/chart", r#""running""#)],
        }),
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Insert the chart",
            observation: "A dialog says: The sheet is protected. Unprotect it to make changes.",
            thought: "I may not lift a protection that I was not told about. HostAgent has to decide.",
            action: "insert_chart(type='column', range='A2:D6')",
            status: "FAIL",
            cost: 0.019,
            duration: 2.7,
            facts: &[("facts/protected", "true"), ("plan/chart", r#""blocked""#)],
        }),
    ),
    (
        EXCEL,
        Screenshot {
            picture: Picture::Protected,
            application: "EXCEL.EXE",
            reason: "Excel refuses to insert the chart",
        },
    ),
    (
        EXCEL,
        Fail(
            "chart",
            r#"{"error":"the sheet is protected","sheet":"Sales","action":"insert_chart"}"#,
        ),
    ),
    (
        WORD,
        Stepped(Step {
            subtask: "Shorten the text",
            observation: "Section 3 repeats the monthly figures that the chart will show.",
            thought: "Two lines are enough above a chart.",
            action: "set_text(section='3 Sales', paragraphs=1)",
            status: "CONTINUE",
            cost: 0.022,
            duration: 3.3,
            facts: &[("facts/paragraphs", "1")],
        }),
    ),
    (HOST, Status("CONTINUE")),
    (
        HOST,
        Stepped(Step {
            subtask: "Clear the obstacle",
            observation: "Request chart failed once: the sheet is protected. Two attempts are left.",
            thought: "The sheet notes say that it is protected against slips, without a password. Lifting it for the chart and setting it again keeps the intent.",
            action: "send_message(agent='ExcelAgent', text='Unprotect, make the chart, protect again')",
            status: "PENDING",
            cost: 0.024,
            duration: 4.1,
            facts: &[("facts/password", "false"), ("plan/chart", r#""waiting""#)],
        }),
    ),
    // ExcelAgent tries again and asks how to group the bars.
    (EXCEL, Status("CONTINUE")),
    (EXCEL, Claim("chart")),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Unprotect the sheet",
            observation: "The tab Review offers Unprotect Sheet.",
            thought: "There is no password, so the command takes effect at once.",
            action: "unprotect_sheet(sheet='Sales')",
            status: "CONTINUE",
            cost: 0.012,
            duration: 1.4,
            facts: &[("facts/protected", "false"), ("plan/chart", r#""running""#)],
        }),
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Select the table again",
            observation: "The dialog is gone and the sheet accepts changes.",
            thought: "The same range as before.",
            action: "select_range(address='A2:D6')",
            status: "SCREENSHOT",
            cost: 0.011,
            duration: 1.0,
            facts: &[],
        }),
    ),
    (
        EXCEL,
        Screenshot {
            picture: Picture::Selection,
            application: "EXCEL.EXE",
            reason: "The range that the chart shows",
        },
    ),
    (EXCEL, Status("CONTINUE")),
    (
        EXCEL,
        Ask(Question {
            key: "grouping",
            text: "Group the bars by region or by month?",
            options: &["by region", "by month"],
            default: "by region",
            expires: "15m",
        }),
    ),
    (EXCEL, Status("PENDING")),
    (
        WORD,
        Stepped(Step {
            subtask: "Proofread the section",
            observation: "One paragraph of two lines, one placeholder, no spelling marks.",
            thought: "The section is ready for the chart.",
            action: "check_spelling(section='3 Sales')",
            status: "CONTINUE",
            cost: 0.012,
            duration: 1.7,
            facts: &[("plan/section", r#""done""#), ("progress/percent", "35")],
        }),
    ),
    (WORD, Finish("section", r#"{"section":"3 Sales","page":4}"#)),
    (WORD, Status("PENDING")),
    (EXCEL, Await { question: "grouping", fact: "facts/chart/grouping" }),
    (EXCEL, Status("CONTINUE")),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Insert the chart",
            observation: "The range is selected and the question is answered.",
            thought: "Clustered columns compare the months within each region.",
            action: "insert_chart(type='column', range='A2:D6')",
            status: "SCREENSHOT",
            cost: 0.019,
            duration: 2.5,
            facts: &[("facts/chart/type", r#""column""#), ("progress/percent", "50")],
        }),
    ),
    (
        EXCEL,
        Screenshot {
            picture: Picture::Chart(2),
            application: "EXCEL.EXE",
            reason: "The chart while Excel draws it",
        },
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Format the chart",
            observation: "The chart has default colours and no title.",
            thought: "Shades of one colour show the order of the months.",
            action: "format_chart(title='Sales by region', palette='green')",
            status: "SCREENSHOT",
            cost: 0.017,
            duration: 2.1,
            facts: &[
                ("facts/chart/title", r#""Sales by region""#),
                ("facts/chart/palette", r#""green""#),
            ],
        }),
    ),
    (
        EXCEL,
        Screenshot {
            picture: Picture::Chart(4),
            application: "EXCEL.EXE",
            reason: "The finished chart beside the figures",
        },
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Protect the sheet",
            observation: "The chart is complete. The sheet is still unprotected.",
            thought: "HostAgent asked for the protection to be set again.",
            action: "protect_sheet(sheet='Sales'); save()",
            status: "CONTINUE",
            cost: 0.012,
            duration: 1.6,
            facts: &[("facts/protected", "true")],
        }),
    ),
    (
        EXCEL,
        Stepped(Step {
            subtask: "Copy the chart",
            observation: "The workbook is saved. The chart is selected.",
            thought: "Word takes the chart from the clipboard as a picture.",
            action: "copy(object='Chart 1', format='picture')",
            status: "FINISH",
            cost: 0.01,
            duration: 0.7,
            facts: &[("plan/chart", r#""done""#), ("progress/percent", "60")],
        }),
    ),
    (EXCEL, Finish("chart", r#"{"chart":"Chart 1","clipboard":true}"#)),
    (HOST, Checkpoint("charted")),
    (HOST, Fork { checkpoint: "charted", fact: ("facts/chart/type", r#""line""#) }),
    // The requests that waited go on in Word.
    (WORD, Status("CONTINUE")),
    (WORD, Claim("insert")),
    (
        WORD,
        Stepped(Step {
            subtask: "Go to the placeholder",
            observation: "The placeholder is on page 4, below the paragraph.",
            thought: "Selecting it lets the chart replace it.",
            action: "select_text(text='[ chart of the quarter ]')",
            status: "CONTINUE",
            cost: 0.012,
            duration: 1.2,
            facts: &[("plan/insert", r#""running""#)],
        }),
    ),
    (
        WORD,
        Stepped(Step {
            subtask: "Paste the chart",
            observation: "The placeholder is selected.",
            thought: "A picture keeps its look if the workbook changes later.",
            action: "paste(format='picture', width='15cm')",
            status: "SCREENSHOT",
            cost: 0.016,
            duration: 2.4,
            facts: &[("facts/figure", "2"), ("progress/percent", "75")],
        }),
    ),
    (
        WORD,
        Screenshot {
            picture: Picture::Report,
            application: "WINWORD.EXE",
            reason: "The chart in the report",
        },
    ),
    (
        WORD,
        Stepped(Step {
            subtask: "Add the caption",
            observation: "The chart stands in section 3 without a caption.",
            thought: "Figure 1 is in section 2, so this is figure 2.",
            action: "insert_caption(text='Figure 2: Sales by region')",
            status: "CONTINUE",
            cost: 0.014,
            duration: 1.5,
            facts: &[("facts/caption", r#""Figure 2: Sales by region""#)],
        }),
    ),
    (
        WORD,
        Stepped(Step {
            subtask: "Save the report",
            observation: "Saving replaces report.docx.",
            thought: "The plan allows it; the action still needs to be confirmed.",
            action: "save(path='report.docx')",
            status: "CONFIRM",
            cost: 0.011,
            duration: 0.9,
            facts: &[("plan/insert", r#""done""#)],
        }),
    ),
    (WORD, Status("CONTINUE")),
    (WORD, Finish("insert", r#"{"figure":2,"saved":true}"#)),
    (WORD, Claim("export")),
    (
        WORD,
        Stepped(Step {
            subtask: "Export the PDF",
            observation: "The report is saved.",
            thought: "The export takes the settings of the last one.",
            action: "export(path='report.pdf', format='pdf')",
            status: "FINISH",
            cost: 0.013,
            duration: 3.9,
            facts: &[
                ("plan/export", r#""done""#),
                ("facts/pdf", r#""report.pdf""#),
                ("progress/percent", "90"),
            ],
        }),
    ),
    (WORD, Finish("export", r#"{"file":"report.pdf","pages":7}"#)),
    (HOST, Status("CONTINUE")),
    (
        HOST,
        Stepped(Step {
            subtask: "Check the result",
            observation: "All subtasks are done. Page 4 of report.pdf has figure 2.",
            thought: "The goal is reached. Sending the report is for a person to decide.",
            action: "verify(file='report.pdf', contains='Figure 2')",
            status: "FINISH",
            cost: 0.02,
            duration: 3.0,
            facts: &[("progress/percent", "100"), ("plan/goal", r#""done""#)],
        }),
    ),
    (HOST, Finish("goal", r#"{"report":"report.docx","pdf":"report.pdf"}"#)),
    (HOST, Checkpoint("reported")),
    (
        HOST,
        Ask(Question {
            key: "sending",
            text: "Send report.pdf to the sales team now?",
            options: &["Send it", "Not yet"],
            default: "Not yet",
            expires: "30m",
        }),
    ),
];
