//! The body of a session's `PUT`: settings, labels, questions.

use super::fields::members;
use super::fields::text_of;
use super::items::Intake;
use super::settings::settings_patch;
use crate::api::refusal::Refusal;
use crate::api::refusal::{array_required, child, invalid_field, object_required, unknown_field};
use crate::board::json;
use crate::board::json::Kind;
use crate::board::{Command, Item, LABELS_MAX, LabelsPatch, LogName, SessionCommand, Set};

/// Reads `{"settings": …, "labels": …, "qa_pairs": […]}`.
pub(crate) fn session_patch(text: &str) -> Result<Command, Refusal> {
    let (mut settings, mut labels, mut qa_pairs) = (Set::Keep, Set::Keep, Vec::new());
    for (pointer, value) in members("", text)? {
        match (pointer.as_str(), json::kind(value)) {
            ("/settings", Kind::Null) => settings = Set::Reset,
            ("/settings", Kind::Object) => settings = Set::To(settings_patch(value)?),
            ("/labels", Kind::Null) => labels = Set::Reset,
            ("/labels", Kind::Object) => labels = Set::To(labels_patch(value)?),
            ("/settings" | "/labels", found) => {
                return Err(object_required(pointer, found));
            }
            ("/qa_pairs", Kind::Array) => qa_pairs = pairs(value)?,
            ("/qa_pairs", found) => return Err(array_required(pointer, found)),
            _ => return Err(unknown_field(pointer, &["settings", "labels", "qa_pairs"])),
        }
    }
    Ok(Command::Session(SessionCommand::Put { settings, labels, qa_pairs }))
}

fn pairs(array: &str) -> Result<Vec<Item>, Refusal> {
    let mut intake = Intake::default();
    intake.take_array(&LogName::Questions, array, Some("qa_pairs"))?;
    Ok(intake.items)
}

fn labels_patch(object: &str) -> Result<LabelsPatch, Refusal> {
    let mut patch = LabelsPatch::new();
    for member in json::members(object) {
        let name = text_of(member.name, "/labels")?;
        let pointer = child("/labels", member.name);
        let value = match json::kind(member.value) {
            Kind::Null => None,
            Kind::String => Some(text_of(member.value, &pointer)?),
            Kind::Object | Kind::Array | Kind::Number | Kind::Bool => {
                return Err(invalid_field(
                    pointer,
                    "expected a string, or null to remove the label",
                ));
            }
        };
        if name.is_empty() || name.contains([':', ',']) {
            return Err(invalid_field(
                pointer,
                "a label's name must not be empty or contain ':' or ','",
            ));
        }
        // PostgreSQL's texts have no U+0000; a label is one thing over both stores.
        if name.contains('\0') || value.as_ref().is_some_and(|value| value.contains('\0')) {
            return Err(invalid_field(pointer, "a label's name and value must not contain U+0000"));
        }
        patch.insert(name, value);
    }
    if patch.len() > LABELS_MAX {
        return Err(invalid_field(
            "/labels".to_owned(),
            format!("expected at most {LABELS_MAX} labels"),
        ));
    }
    Ok(patch)
}
