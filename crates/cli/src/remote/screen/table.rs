//! Tables: columns as wide as their cells, each cell one line of what can be seen.

use blackboard_printable::{cut, line, padded, width};

/// The maximum size of a cell, in bytes.
const CELL_BYTES_MAX: usize = 160;

/// The space between two columns.
const GAP: &str = "  ";

/// Rows under a head, or pairs of a name and a value without one.
#[derive(Debug)]
pub(in crate::remote) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(in crate::remote) fn of(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|name| (*name).to_owned()).collect()] }
    }

    pub(in crate::remote) const fn without_head() -> Self {
        Self { rows: Vec::new() }
    }

    pub(in crate::remote) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let shown = |text: String| line(&cut(&text, CELL_BYTES_MAX)).into_owned();
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Adds a value under its name, whole.
    pub(in crate::remote) fn fact(&mut self, name: &str, value: &str) {
        self.rows.push(vec![name.to_owned(), line(value).into_owned()]);
    }

    pub(in crate::remote) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        self.rows.iter().map(|row| row_text(row, &widths)).collect()
    }
}

fn row_text(row: &[String], widths: &[usize]) -> String {
    let padded = row.iter().zip(widths).map(|(cell, width)| padded(cell, *width));
    let text = padded.collect::<Vec<_>>().join(GAP);
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::of(&["NAME", "N"]);
        table.row(["é".to_owned(), "1".to_owned()]);
        table.row(["longer".to_owned(), String::new()]);
        assert_eq!(table.text(), "NAME    N\né       1\nlonger\n");
    }

    #[test]
    fn columns_stand_under_each_other_whatever_the_script() {
        let names =
            ["北京市", "🚀 launch", "שלום", "مرحبا", "e\u{301}te\u{301}", "👩\u{200d}🚀", "plain"];
        let mut table = Table::of(&["NAME", "N"]);
        names.iter().for_each(|name| table.row([(*name).to_owned(), "#".to_owned()]));
        let text = table.text();
        let columns: Vec<usize> = text
            .lines()
            .skip(1)
            .map(|row| width(row.split_once('#').map_or("", |(before, _)| before)))
            .collect();
        assert_eq!(columns.len(), names.len());
        assert!(columns.iter().all(|column| *column == columns[0]), "{text}");
        assert!(
            text.contains("北京市") && text.contains("🚀 launch") && text.contains("שלום"),
            "{text}"
        );
    }

    #[test]
    fn a_cell_is_one_line_that_no_terminal_obeys() {
        let mut table = Table::without_head();
        table.row(["\u{1b}[2J\n".to_owned(), "x".repeat(500)]);
        table.fact("item", "\u{202e}a");
        let text = table.text();
        assert!(text.starts_with("\\u001b[2J\\u000a  xxx") && text.contains("x…\n"), "{text}");
        assert!(text.ends_with("\\u202ea\n") && text.lines().count() == 2, "{text}");
    }
}
