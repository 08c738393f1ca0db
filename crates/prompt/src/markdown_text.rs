//! Plain text escaped for Markdown, with as few backslashes as possible.
//!
//! It covers `CommonMark` and GitHub's additions: tables, strikethrough and footnotes. A bare URL still becomes a
//! link there: a backslash would corrupt the URL and not always prevent the link.

use std::borrow::Cow;

/// Appends a text that does not begin a line. Line breaks become spaces.
pub(super) fn plain(text: &str, out: &mut String) {
    push(&cleaned(text), out);
}

/// Appends a text that may begin a line or be a heading.
pub(super) fn line(text: &str, out: &mut String) {
    let text = cleaned(text);
    let mut rest = &*text;
    for at in [opening(&text), closing(&text)].into_iter().flatten() {
        // Both marks stand before ASCII characters; the second may be the first.
        let begun = text.len() - rest.len();
        let Some((before, after)) = at.checked_sub(begun).and_then(|at| rest.split_at_checked(at))
        else {
            continue;
        };
        push(before, out);
        out.push('\\');
        let (mark, after) = after.split_at_checked(1).unwrap_or((after, ""));
        out.push_str(mark);
        rest = after;
    }
    push(rest, out);
}

/// Returns the trimmed text on one line, with U+FFFD for control characters.
fn cleaned(text: &str) -> Cow<'_, str> {
    let shown = |c: char| match c {
        '\n' | '\r' => ' ',
        '\t' => c,
        _ if c.is_control() => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    if text.contains(|c: char| shown(c) != c) {
        let shown: String = text.chars().map(shown).collect();
        return Cow::Owned(shown.trim_matches(is_blank).to_owned());
    }
    Cow::Borrowed(text.trim_matches(is_blank))
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Returns true if a mark before this text is literal.
fn stands_alone(after: &str) -> bool {
    after.is_empty() || after.starts_with(is_blank)
}

/// Returns the position of a mark that would start a list, heading, quote or rule. Marks with a meaning anywhere in a
/// line are escaped everywhere.
fn opening(text: &str) -> Option<usize> {
    let after = text.get(1..);
    match text.bytes().next()? {
        b'>' => Some(0),
        b'+' if after.is_some_and(stands_alone) => Some(0),
        b'-' if after.is_some_and(|after| !after.starts_with(char::is_alphanumeric)) => Some(0),
        b'=' if after.is_some_and(|after| stands_alone(after) || after.starts_with('=')) => Some(0),
        b'#' if stands_alone(text.trim_start_matches('#')) => Some(0),
        b'0'..=b'9' => {
            let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let after = numbered.strip_prefix(['.', ')'])?;
            stands_alone(after).then(|| text.len() - numbered.len())
        }
        _ => None,
    }
}

/// Returns the position of number signs that would close a heading.
fn closing(text: &str) -> Option<usize> {
    let before = text.trim_end_matches('#');
    let closes = before.len() < text.len() && (before.is_empty() || before.ends_with(is_blank));
    closes.then_some(before.len())
}

/// Appends the text of one line.
fn push(text: &str, out: &mut String) {
    let mut begin = 0;
    let marks = |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '&' | '~');
    for (at, mark) in text.match_indices(marks) {
        let (before, after) =
            (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        if is_markup(before, mark, after) {
            out.push_str(text.get(begin..at).unwrap_or_default());
            out.push('\\');
            begin = at;
        }
    }
    out.push_str(text.get(begin..).unwrap_or_default());
}

/// Returns true if the mark between these texts may be read as markup.
fn is_markup(before: &str, mark: &str, after: &str) -> bool {
    let spaced = || before.ends_with(' ') && after.starts_with(' ');
    match mark {
        // A backslash before any other character is literal.
        "\\" => after.is_empty() || after.starts_with(|c: char| c.is_ascii_punctuation()),
        "<" => !after.starts_with(' '),
        "*" | "~" => !spaced(),
        "_" => !spaced() && !is_inside_word(before, after),
        "&" => {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '#';
            after.starts_with(name) && after.trim_start_matches(name).starts_with(';')
        }
        _ => true,
    }
}

/// Returns true if an underscore is inside a word. Only ASCII letters count, since parsers disagree about other
/// symbols. In a run of underscores each counts as markup, so that no run is scanned repeatedly.
fn is_inside_word(before: &str, after: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    before.ends_with(is_word) && after.starts_with(is_word)
}
