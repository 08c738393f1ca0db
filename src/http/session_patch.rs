//! What a `PUT` of a session asks for, member by member, each refusal with its place.

use super::error::{array_required, child, invalid_field, object_required, unknown_field};
use super::intake::Intake;
use super::problem::Problem;
use crate::board::json::{self, Kind};
use crate::board::{
    Command, HISTORY_KEYS_MAX, Item, LABEL_BYTES_MAX, LABELS_MAX, LabelsPatch, LogName, Set,
    SettingsPatch,
};

/// Reads `{"settings": …, "labels": …, "qa_pairs": […]}`.
pub(super) fn session_patch(text: &str) -> Result<Command, Problem> {
    if json::kind(text) != Kind::Object {
        return Err(object_required(String::new(), json::kind(text)));
    }
    let (mut settings, mut labels, mut qa_pairs) = (Set::Keep, Set::Keep, Vec::new());
    for member in json::members(text) {
        let pointer = child("", member.name);
        match (pointer.as_str(), json::kind(member.value)) {
            ("/settings", Kind::Null) => settings = Set::Reset,
            ("/settings", Kind::Object) => settings = Set::To(settings_patch(member.value)?),
            ("/labels", Kind::Null) => labels = Set::Reset,
            ("/labels", Kind::Object) => labels = Set::To(labels_patch(member.value)?),
            ("/settings" | "/labels", found) => {
                return Err(object_required(pointer, found));
            }
            ("/qa_pairs", Kind::Array) => qa_pairs = pairs(member.value)?,
            ("/qa_pairs", found) => return Err(array_required(pointer, found)),
            _ => return Err(unknown_field(pointer)),
        }
    }
    Ok(Command::PutSession { settings, labels, qa_pairs })
}

fn pairs(array: &str) -> Result<Vec<Item>, Problem> {
    let mut intake = Intake::default();
    intake.take_array(&LogName::Questions, array, Some("qa_pairs"))?;
    Ok(intake.items)
}

fn settings_patch(object: &str) -> Result<SettingsPatch, Problem> {
    let mut patch = SettingsPatch::default();
    for member in json::members(object) {
        let pointer = child("/settings", member.name);
        match (pointer.as_str(), json::kind(member.value)) {
            ("/settings/history_keys", Kind::Null) => patch.history_keys = Set::Reset,
            ("/settings/history_keys", Kind::Array) => {
                patch.history_keys = Set::To(history_keys(member.value, &pointer)?);
            }
            ("/settings/history_keys", _) => {
                return Err(invalid_field(pointer, "an array of names is needed here"));
            }
            ("/settings/screenshot_to_memory", Kind::Null) => {
                patch.screenshot_to_memory = Set::Reset;
            }
            ("/settings/screenshot_to_memory", Kind::Bool) => {
                patch.screenshot_to_memory = Set::To(member.value == "true");
            }
            ("/settings/screenshot_to_memory", _) => {
                return Err(invalid_field(pointer, "true or false is needed here"));
            }
            _ => return Err(unknown_field(pointer)),
        }
    }
    Ok(patch)
}

fn history_keys(array: &str, pointer: &str) -> Result<Vec<String>, Problem> {
    let mut keys = Vec::new();
    for (index, element) in json::elements(array).enumerate() {
        let pointer = format!("{pointer}/{index}");
        if json::kind(element) != Kind::String {
            return Err(invalid_field(pointer, "a name is a string"));
        }
        if index == HISTORY_KEYS_MAX {
            return Err(invalid_field(pointer, format!("at most {HISTORY_KEYS_MAX} names")));
        }
        keys.push(text_of(element, &pointer)?);
    }
    Ok(keys)
}

fn labels_patch(object: &str) -> Result<LabelsPatch, Problem> {
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
                    "a label's value is a string, or null to remove it",
                ));
            }
        };
        if name.is_empty() || name.contains([':', ',']) {
            return Err(invalid_field(pointer, "a label's name is not empty, without ':' and ','"));
        }
        patch.insert(name, value);
    }
    if patch.len() > LABELS_MAX {
        return Err(invalid_field("/labels".to_owned(), format!("at most {LABELS_MAX} labels")));
    }
    Ok(patch)
}

/// A string of a bounded length, without half characters.
fn text_of(literal: &str, pointer: &str) -> Result<String, Problem> {
    json::check(literal, 1)
        .map_err(|unsupported| invalid_field(pointer.to_owned(), unsupported.reason.to_string()))?;
    let text = json::decode(literal).into_owned();
    if text.len() > LABEL_BYTES_MAX {
        let why = format!("at most {LABEL_BYTES_MAX} bytes of UTF-8, these are {}", text.len());
        return Err(invalid_field(pointer.to_owned(), why));
    }
    Ok(text)
}
