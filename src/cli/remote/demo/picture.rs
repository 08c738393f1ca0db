//! The screenshots of the demonstration: a desktop with a spreadsheet and a document, drawn by code.

use super::canvas::{Area, Canvas, Colour};
use super::unwritable::Unwritable;

/// The size of a screenshot.
const SCREEN: Area = Area::new(0, 0, 640, 400);

const INK: Colour = 0x001f_2933;
const MUTED: Colour = 0x007b_8794;
const LINE: Colour = 0x00d5_dbe1;
const PAPER: Colour = 0x00ff_ffff;
const EXCEL: Colour = 0x001d_7044;
const WORD: Colour = 0x0023_5a9e;
const SELECTED: Colour = 0x00d8_efe2;

/// The colours of the months in the chart.
const MONTHS: [(&str, Colour); 3] =
    [("Jul", 0x008e_c5a6), ("Aug", 0x003f_9b6b), ("Sep", 0x0016_5c38)];

/// The quarter's sales in thousands, by region and month.
pub(super) const SALES: [(&str, [u32; 3]); 4] = [
    ("North", [42, 51, 63]),
    ("South", [38, 36, 44]),
    ("East", [29, 41, 52]),
    ("West", [47, 45, 58]),
];

/// A picture of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picture {
    Desktop,
    Sheet,
    Protected,
    Selection,
    /// The chart beside the figures, with its first regions.
    Chart(usize),
    Document,
    Report,
}

impl Picture {
    /// Draws the picture as a PNG.
    pub(super) fn png(self) -> Result<Vec<u8>, Unwritable> {
        let mut canvas = Canvas::new(SCREEN.width, SCREEN.height);
        desktop(&mut canvas);
        match self {
            Self::Desktop => icons(&mut canvas),
            Self::Sheet => sheet(&mut canvas, false),
            Self::Protected => {
                sheet(&mut canvas, true);
                dialog(&mut canvas);
            }
            Self::Selection => sheet(&mut canvas, true),
            Self::Chart(regions) => {
                sheet(&mut canvas, false);
                let place = Area::new(248, 100, 358, 232);
                chart(&mut canvas, place, regions);
                handles(&mut canvas, place);
            }
            Self::Document => document(&mut canvas, false),
            Self::Report => document(&mut canvas, true),
        }
        Ok(canvas.png()?)
    }
}

fn desktop(canvas: &mut Canvas) {
    canvas.shade(SCREEN, 0x0028_4a6e, 0x005f_8fb0);
    canvas.fill(Area::new(0, 374, SCREEN.width, 26), 0x0014_2433);
    let task = Area::new(8, 379, 16, 16);
    for (n, colour) in [0x004f_a3e0, EXCEL, WORD, 0x00d9_a441].into_iter().enumerate() {
        canvas.fill(task.moved(26 * n, 0), colour);
    }
    canvas.text_to((630, 380), 2, 0x00c9_d6e2, "10:24");
}

fn icons(canvas: &mut Canvas) {
    for (n, (colour, letter, name)) in
        [(EXCEL, "X", "sales-q3.xlsx"), (WORD, "W", "report.docx")].into_iter().enumerate()
    {
        let sheet = Area::new(64, 32 + 104 * n, 52, 60);
        canvas.framed(sheet, PAPER, LINE);
        for line in 0..4 {
            canvas.fill(Area::new(sheet.x + 22, sheet.y + 12 + 10 * line, 22, 3), LINE);
        }
        let tile = Area::new(sheet.x - 8, sheet.y + 18, 28, 28);
        canvas.fill(tile, colour);
        canvas.centred(tile, 3, PAPER, letter);
        canvas.centred(Area::new(15, sheet.y + 67, 152, 14), 2, 0x0014_2433, name);
        canvas.centred(Area::new(14, sheet.y + 66, 152, 14), 2, PAPER, name);
    }
    canvas.fill(Area::new(64, 248, 26, 10), 0x00c8_9435);
    canvas.fill(Area::new(64, 254, 56, 40), 0x00e0_b055);
    canvas.centred(Area::new(14, 306, 152, 14), 2, PAPER, "Archive");
    let note = Area::new(316, 60, 276, 124);
    canvas.fill(note.moved(4, 4), 0x0021_3d59);
    canvas.fill(note, 0x00fd_f3c4);
    canvas.fill(Area { height: 22, ..note }, 0x00f2_dd86);
    canvas.text((330, 64), 2, INK, "To do today");
    for (n, line) in
        ["Chart of the quarter's", "sales, put it into the", "report"].iter().enumerate()
    {
        canvas.text((330, 98 + 26 * n), 2, INK, line);
    }
}

/// Draws a window with its title and its tabs; returns the area of its content.
fn window(canvas: &mut Canvas, title: &str, tabs: &str, colour: Colour) -> Area {
    let frame = Area::new(20, 14, 600, 348);
    canvas.fill(frame.moved(5, 5), 0x001d_3650);
    canvas.framed(frame, PAPER, 0x0010_2030);
    canvas.fill(Area { height: 26, ..frame }, colour);
    canvas.text((32, 20), 2, PAPER, title);
    canvas.fill(Area::new(552, 28, 10, 2), PAPER);
    canvas.framed(Area::new(574, 21, 11, 11), colour, PAPER);
    canvas.text((598, 20), 2, PAPER, "x");
    canvas.fill(Area::new(21, 40, 598, 26), 0x00ee_f2f5);
    canvas.fill(Area::new(21, 66, 598, 1), LINE);
    canvas.text((34, 46), 2, INK, tabs);
    Area::new(21, 67, 598, 294)
}

fn sheet(canvas: &mut Canvas, is_selected: bool) {
    const LABELS: usize = 26;
    const COLUMN: usize = 94;
    const ROW: usize = 26;
    let tabs = "Home   Insert   Data   Review";
    let content = window(canvas, "sales-q3.xlsx", tabs, EXCEL);
    canvas.fill(Area { height: 20, ..content }, 0x00e4_e9ed);
    canvas.fill(Area { width: LABELS, ..content }, 0x00e4_e9ed);
    let (left, top) = (content.x + LABELS, content.y + 20);
    if is_selected {
        let range = Area::new(left, top + ROW, 4 * COLUMN, 5 * ROW);
        canvas.fill(range, EXCEL);
        canvas.fill(range.inside(2), SELECTED);
    }
    for (n, name) in ["A", "B", "C", "D", "E", "F"].iter().enumerate() {
        let head = Area::new(left + n * COLUMN, content.y, COLUMN, 20);
        canvas.centred(head, 2, MUTED, name);
        canvas.fill(Area::new(head.x + COLUMN, content.y, 1, content.height), LINE);
    }
    for row in 1..=10 {
        canvas.fill(Area::new(content.x, top + row * ROW, content.width, 1), LINE);
        let head = Area::new(content.x, top + (row - 1) * ROW, LABELS, ROW);
        canvas.centred(head, 2, MUTED, &row.to_string());
    }
    canvas.text((left + 6, top + 6), 2, INK, "Sales, thousands");
    let mut line = |row: usize, name: &str, cells: &[String]| {
        let y = top + row * ROW + 6;
        canvas.text((left + 6, y), 2, INK, name);
        for (n, cell) in cells.iter().enumerate() {
            canvas.text_to((left + (n + 2) * COLUMN - 8, y), 2, INK, cell);
        }
    };
    let months = MONTHS.map(|(name, _)| name.to_owned());
    line(1, "Region", &[&months[..], &["Total".to_owned()]].concat());
    let mut sums = [0; 4];
    for (n, (region, sales)) in SALES.into_iter().enumerate() {
        let [july, august, september] = sales;
        let cells = [july, august, september, july + august + september];
        for (sum, cell) in sums.iter_mut().zip(cells) {
            *sum += cell;
        }
        line(n + 2, region, &cells.map(|cell| cell.to_string()));
    }
    line(6, "Total", &sums.map(|sum| sum.to_string()));
}

fn dialog(canvas: &mut Canvas) {
    let frame = Area::new(130, 128, 380, 140);
    canvas.fill(frame.moved(6, 6), 0x0055_6572);
    canvas.framed(frame, 0x00fb_fcfd, 0x0044_5566);
    canvas.fill(Area { height: 24, ..frame }.inside(1), 0x00e4_e9ed);
    canvas.text((142, 133), 2, INK, "Excel");
    let sign = Area::new(150, 170, 36, 36);
    canvas.fill(sign, 0x00c9_3a3a);
    canvas.fill(Area::new(165, 177, 6, 14), PAPER);
    canvas.fill(Area::new(165, 195, 6, 5), PAPER);
    canvas.text((204, 170), 2, INK, "The sheet is protected.");
    canvas.text((204, 192), 2, INK, "Unprotect it to make");
    canvas.text((204, 214), 2, INK, "changes.");
    let button = Area::new(410, 232, 84, 26);
    canvas.framed(button, EXCEL, 0x0010_4028);
    canvas.centred(button, 2, PAPER, "OK");
}

/// Draws a chart of bars, grouped by region.
fn chart(canvas: &mut Canvas, place: Area, regions: usize) {
    const SCALE: usize = 70;
    canvas.fill(place.moved(3, 3), 0x00b8_c2cb);
    canvas.framed(place, PAPER, 0x009a_a7b3);
    canvas.text((place.x + 12, place.y + 9), 2, INK, "Sales by region");
    let plot = Area::new(place.x + 36, place.y + 34, place.width - 48, place.height - 86);
    let bottom = plot.y + plot.height;
    for value in [0, 20, 40, 60] {
        let y = bottom - value * plot.height / SCALE;
        canvas.fill(Area::new(plot.x, y, plot.width, 1), if value == 0 { MUTED } else { LINE });
        canvas.text_to((plot.x - 6, y - 7), 2, MUTED, &value.to_string());
    }
    let group = plot.width / SALES.len();
    let bar = (group - 14) / MONTHS.len();
    for (n, (region, sales)) in SALES.into_iter().enumerate().take(regions) {
        let x = plot.x + n * group + 7;
        for (month, (sale, (_, colour))) in sales.into_iter().zip(MONTHS).enumerate() {
            let height = usize::try_from(sale).unwrap_or(SCALE) * plot.height / SCALE;
            canvas.fill(Area::new(x + month * bar, bottom - height, bar - 2, height), colour);
        }
        canvas.centred(Area::new(x, bottom + 6, bar * MONTHS.len(), 14), 2, INK, region);
    }
    for (n, (name, colour)) in MONTHS.into_iter().enumerate() {
        let (x, y) = (plot.x + 20 + 84 * n, place.y + place.height - 22);
        canvas.fill(Area::new(x, y, 13, 13), colour);
        canvas.text((x + 19, y), 2, INK, name);
    }
}

/// Draws the handles of a chart that is selected.
fn handles(canvas: &mut Canvas, place: Area) {
    for x in [0, place.width / 2, place.width] {
        for y in [0, place.height / 2, place.height] {
            if (x, y) != (place.width / 2, place.height / 2) {
                let handle = Area::new(place.x + x - 4, place.y + y - 4, 8, 8);
                canvas.framed(handle, PAPER, EXCEL);
            }
        }
    }
}

fn document(canvas: &mut Canvas, has_chart: bool) {
    let content = window(canvas, "report.docx", "Home   Insert   Layout   Review", WORD);
    canvas.fill(content, 0x00cf_d6dc);
    let page = Area::new(110, content.y + 14, 420, content.height - 14);
    canvas.fill(page.moved(4, 0), 0x00a9_b4be);
    canvas.fill(page, PAPER);
    canvas.text((142, 90), 3, WORD, "3 Sales");
    let mut y = 122;
    let mut paragraph = |widths: &[usize]| {
        for width in widths {
            canvas.fill(Area::new(142, y, *width, 5), 0x00b4_bfc9);
            y += 12;
        }
        y += 8;
    };
    if has_chart {
        paragraph(&[352, 300]);
        chart(canvas, Area::new(142, 152, 356, 174), SALES.len());
        canvas.text((142, 336), 2, MUTED, "Figure 2: Sales by region");
    } else {
        paragraph(&[352, 344, 356, 210]);
        paragraph(&[348, 356, 300]);
        canvas.fill(Area::new(142, 240, 2, 18), INK);
        canvas.framed(Area::new(150, 270, 340, 70), 0x00f6_f8fa, LINE);
        canvas.centred(Area::new(150, 270, 340, 70), 2, MUTED, "[ chart of the quarter ]");
    }
}
