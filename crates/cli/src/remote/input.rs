//! Input of commands: a file or standard input, within a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;

use super::place::quoted;
use super::refusal::Refusal;

/// The largest body that a server takes of one write, in bytes.
const INPUT_BYTES_MAX: u64 = 32 << 20;

/// Reads a file, or standard input.
pub(super) fn bytes(path: Option<&Path>) -> Result<Bytes, Refusal> {
    let name = path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    let read = match path {
        Some(path) => File::open(path).and_then(bounded),
        None => bounded(io::stdin().lock()),
    };
    let bytes = read.map_err(|source| Refusal::Input { name: name.clone(), source })?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Refusal::TooLarge { name, max: INPUT_BYTES_MAX });
    }
    Ok(bytes.into())
}

/// Reads a text from standard input where an argument is `-`.
pub(super) fn argument(text: String) -> Result<String, Refusal> {
    if text != "-" {
        return Ok(text);
    }
    let unreadable = |source| Refusal::Input { name: "standard input".to_owned(), source };
    String::from_utf8(bytes(None)?.into())
        .map_err(|_| unreadable(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")))
}

/// Reads one byte more than the bound at most.
fn bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns JSON as it is, and any other text as a JSON string.
pub(super) fn json_or_text(item: String) -> String {
    if item.trim_start().starts_with(['{', '[', '"']) { item } else { quoted(&item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_json_or_a_text() {
        assert_eq!(json_or_text(" {\"a\": 1.0}".to_owned()), " {\"a\": 1.0}");
        assert_eq!(json_or_text("\"a\"".to_owned()), "\"a\"");
        assert_eq!(json_or_text("say \"a\"".to_owned()), r#""say \"a\"""#);
        assert_eq!(json_or_text("3".to_owned()), "\"3\"");
    }
}
