//! Counts the classes of characters of texts, for `benches/tokens/fit`.
//!
//! Reads lines of JSON with a member `text`. Writes the names of the classes, then a line of counts for each text.

#![expect(clippy::print_stdout, reason = "the counts are its output")]

use std::io::BufRead;

use blackboard::prompt::tokens::{
    CLASSES, Counts, LETTERS, RUN_LENGTHS, SCRIPTS_NAMED, WORD_LENGTHS,
};
use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", serde_json::to_string(&names())?);
    for line in std::io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let Counts(counts) =
            Counts::of(line.get("text").and_then(Value::as_str).unwrap_or_default());
        println!("{}", serde_json::to_string(&counts.to_vec())?);
    }
    Ok(())
}

fn names() -> Vec<String> {
    let by_length = |what: &str, count: usize| {
        let name = |length| match length {
            1 => format!("{what} of 1"),
            length if length == count => format!("{what} of {length} and more"),
            length => format!("{what} of {length}"),
        };
        (1..=count).map(name).collect::<Vec<_>>()
    };
    let mut names = by_length("word", WORD_LENGTHS);
    names.push(format!("letter beyond {WORD_LENGTHS}"));
    names.extend(('a'..='z').take(LETTERS).map(|letter| format!("letter {letter}")));
    let words = ["word that ends with a, i, o or u", "word in capitals", "capital of it"];
    let accented = ["word with accents", "character of it"];
    let random = ["random run", "piece of it", "character of it ", "digit of it"];
    names.extend([&words[..], &accented, &random].concat().into_iter().map(str::to_owned));
    names.extend(by_length("number", RUN_LENGTHS));
    let others = ["three digits of it", "digit", "line feed", "white space after it", "space"];
    let spaces = ["run of spaces", "space beyond the second"];
    names.extend([&others[..], &spaces].concat().into_iter().map(str::to_owned));
    names.extend(by_length("run of signs", RUN_LENGTHS));
    names.push(format!("sign beyond {RUN_LENGTHS}"));
    names.extend(["run of one sign", "sign of it"].map(str::to_owned));
    for what in ["", "run of ", "escape of "] {
        names.extend(SCRIPTS_NAMED.iter().map(|script| format!("{what}{script}")));
    }
    assert_eq!(names.len(), CLASSES, "each class has a name");
    names
}
