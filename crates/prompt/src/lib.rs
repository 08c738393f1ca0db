//! The texts of a prompt: the original's `blackboard_to_prompt`, for several providers.
//!
//! All functions turn text into text. The caller chooses the entries and supplies the images. Texts of the JSON
//! formats are the insides of string literals; [`Syntax`] puts the JSON around them.

mod budget;
pub mod markdown;
mod markdown_text;
mod provider_syntax;
pub mod tokens;

use exact_json::python::{self, Characters, Literal};

use blackboard_board::{
    Headings, IMAGE_MEMBER, Item, LogName, PromptPart, Run, RunText, TextForm, TextKeys, TextKind,
    json,
};

pub use budget::{Cut, Fitting, Kind, LeftOut, Step, TooSmall};
pub use provider_syntax::{IMAGE_URL_BEGIN, IMAGE_URL_END, Source, Syntax};
pub use tokens::{Cost, Estimator};

/// The text that opens every prompt.
#[must_use]
pub fn opening(headings: &Headings) -> &str {
    headings.blackboard.as_deref().unwrap_or("[Blackboard:]")
}

/// The heading of a part.
#[must_use]
pub fn heading(part: &PromptPart, headings: &Headings) -> String {
    let (chosen, original) = match part {
        PromptPart::Log(LogName::Questions) => (&headings.questions, "[Questions & Answers:]"),
        PromptPart::Log(LogName::Requests) => (&headings.requests, "[Request History:]"),
        PromptPart::Log(LogName::Trajectories) => {
            (&headings.trajectories, "[Step Trajectories Completed Previously:]")
        }
        PromptPart::Log(LogName::Screenshots) => (&None, "[Screenshots:]"),
        PromptPart::State => (&headings.state, "[State:]"),
        PromptPart::Log(LogName::Memory(agent)) => {
            let heading = headings.memory.as_deref().unwrap_or("[Memory of {agent}:]");
            return heading.replace("{agent}", agent.as_str());
        }
        PromptPart::Log(LogName::Messages(agent)) => {
            let heading = headings.messages.as_deref().unwrap_or("[Messages to {agent}:]");
            return heading.replace("{agent}", agent.as_str());
        }
    };
    chosen.as_deref().unwrap_or(original).to_owned()
}

/// Returns a text as the inside of a JSON string literal.
#[must_use]
pub fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    json::quote(text, &mut quoted);
    quoted.pop();
    quoted.split_off(1)
}

/// Returns the beginning of a text log's text: its heading and the start of a list as Python's `json.dumps` writes
/// it.
#[must_use]
pub fn list_begin(heading: &str) -> String {
    literal(&format!("{heading}\n ["))
}

/// The end of the text of a text log.
pub const LIST_END: &str = "]";

/// The separator of two items in a list. The text of a run begins with it.
pub const LIST_COMMA: &str = ", ";

/// Returns the form of cached texts with characters in this form.
#[must_use]
pub const fn text_form(characters: Characters) -> TextForm {
    match characters {
        Characters::Escaped => TextForm::Literals,
        Characters::Written => TextForm::Characters,
    }
}

/// Renders the items of a run for their log's list, each after a comma. With keys, only those members are shown. The
/// text is cached with the run.
#[must_use]
pub fn list_items(run: &Run, keys: &TextKeys, characters: Characters) -> RunText {
    let mut literal = Literal::new(characters);
    let kind = TextKind { form: text_form(characters), keys: keys.clone() };
    run.text(&kind, |entry, out| list_item(&entry.item, keys, &mut literal, out))
}

/// Renders the items of a run as Markdown. With keys, only those members are shown. The text is cached with the run.
#[must_use]
pub fn markdown_items(run: &Run, keys: &TextKeys) -> RunText {
    let kind = TextKind { form: TextForm::Markdown, keys: keys.clone() };
    run.text(&kind, |entry, out| markdown::item(entry.item.text(), keys, out))
}

/// Appends an item of a list, after a comma.
pub fn list_item(item: &Item, keys: &TextKeys, literal: &mut Literal, out: &mut String) {
    out.push_str(LIST_COMMA);
    match keys {
        Some(keys) => {
            let keep = |name: &str| keys.iter().any(|key| key == name);
            literal.dumps_members(item.text(), keep, out);
        }
        None => literal.dumps(item.text(), out),
    }
}

/// Returns the text of the state: its heading, and its document as Python's `json.dumps` writes it.
#[must_use]
pub fn state_text(heading: &str, document: &str, characters: Characters) -> String {
    let mut text = literal(&format!("{heading}\n "));
    Literal::new(characters).dumps(document, &mut text);
    text
}

/// Renders the metadata of each screenshot of a run as Python's `json.dumps` writes it. The text is cached with the
/// run.
#[must_use]
pub fn metadata(run: &Run, characters: Characters) -> RunText {
    let mut literal = Literal::new(characters);
    let kind = TextKind { form: text_form(characters), keys: None };
    run.text(&kind, |entry, out| literal.dumps(metadata_of(&entry.item), out))
}

/// Renders the metadata of each screenshot of a run as a line of Markdown. The text is cached with the run.
#[must_use]
pub fn markdown_metadata(run: &Run) -> RunText {
    run.text(&TextKind { form: TextForm::Markdown, keys: None }, |entry, out| {
        out.push_str("- ");
        markdown::value(metadata_of(&entry.item), out);
    })
}

/// Returns the metadata of a screenshot as JSON.
#[must_use]
pub fn metadata_of(item: &Item) -> &str {
    item.get("metadata").unwrap_or("\"\"")
}

/// Returns the end of a screenshot's line if its image is not shown: the image's address, if it has one.
#[must_use]
pub fn instead_of_image(address: Option<&str>) -> String {
    match address {
        Some(address) => format!(" [image not shown: {address}]"),
        None => " [no image]".to_owned(),
    }
}

/// Returns the image value of a screenshot without a stored image.
#[must_use]
pub fn image_value(item: &Item) -> String {
    let mut out = String::new();
    python::dumps(item.get(IMAGE_MEMBER).unwrap_or("\"\""), &mut out);
    out
}
