//! Sessions: create one, change its settings and labels, delete it.

use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};

use super::logs::{all, all_items};
use crate::intake::fields::text_of;
use crate::intake::input::{inputs, kinds, named};
use crate::intake::settings::{SettingsInput, settings_patch};
use crate::refusal::{Refusal, child, invalid_field, object_required};
use crate::schema::ItemBody;
use blackboard_board::json::{self, Kind};
use blackboard_board::{
    Command, Item, LABEL_BYTES_MAX, LABELS_MAX, LabelsPatch, LogName, SessionCommand, Set,
    SettingsPatch,
};

kinds! {
    /// Settings to change.
    SetSettings: Set<SettingsPatch> = |at, value| change(at, value, settings_patch),
        OneOfBuilder::new()
            .item(named::<SettingsInput>(&[
                "Settings to change. An absent setting stays unchanged; null resets it to its default.",
            ]))
            .item(ObjectBuilder::new().schema_type(Type::Null)),
        naming SettingsInput;
    /// Labels to change.
    SetLabels: Set<LabelsPatch> = |at, value| change(at, value, labels_patch), labels_schema();
    /// Questions with their answers.
    AnsweredQuestions: Vec<Item> = |at, value| {
        all_items(at, value, &LogName::Questions, "qa_pairs").map(|intake| intake.items)
    }, all(), naming ItemBody;
}

inputs! {
    /// Changes to a session. An absent member stays unchanged; null resets it.
    Configuring as "SessionPatchBody" {
        settings "settings": SetSettings = Set::Keep,
        labels "labels": SetLabels = Set::Keep,
        /// Questions with their answers, loaded if this request creates the session.
        qa_pairs "qa_pairs": AnsweredQuestions = Vec::new(),
    }
}

impl Configuring {
    /// Returns the command that creates or changes a session.
    pub fn command(self) -> Command {
        let Self { settings, labels, qa_pairs } = self;
        Command::Session(SessionCommand::Put { settings, labels, qa_pairs })
    }
}

fn change<T>(
    at: &str,
    value: &str,
    read: fn(&str) -> Result<T, Refusal>,
) -> Result<Set<T>, Refusal> {
    match json::kind(value) {
        Kind::Null => Ok(Set::Reset),
        Kind::Object => read(value).map(Set::To),
        found @ (Kind::Array | Kind::String | Kind::Number | Kind::Bool) => {
            Err(object_required(at.to_owned(), found))
        }
    }
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

fn labels_schema() -> ObjectBuilder {
    let told = format!(
        "At most {LABELS_MAX} labels, each name and value of at most {LABEL_BYTES_MAX} bytes. A name is not empty and contains \
        neither `:` nor `,`; neither contains U+0000. An absent label stays, null removes a label, and null for `labels` removes all"
    );
    let text = |max| ObjectBuilder::new().schema_type(Type::String).max_length(Some(max));
    let value = text(LABEL_BYTES_MAX)
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .pattern(Some("^[^\\u0000]*$"));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(told))
        .property_names(Some(
            text(LABEL_BYTES_MAX).min_length(Some(1)).pattern(Some("^[^\\u0000:,]+$")),
        ))
        .additional_properties(Some(value))
        .max_properties(Some(LABELS_MAX))
}
