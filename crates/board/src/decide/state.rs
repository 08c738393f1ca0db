//! State rules: edits of the value at a path.

use super::Draft;
use crate::Json;
use crate::command::rejected::Rejected;
use crate::command::{Answer, Edit};
use crate::commit::{Change, StateChange};
use crate::json;
use crate::json::Kind;
use crate::state::{STATE_BYTES_MAX, StatePath, StateValue};

impl Draft<'_> {
    pub(super) fn edit_state(&mut self, path: &StatePath, edit: &Edit) -> Result<Answer, Rejected> {
        let before = self.board.state.clone();
        let present =
            before.place(path).map_err(|blocked| Rejected::NotAnObject { at: blocked.at })?;
        if let Some(change) = self.state_change(path, edit, present)? {
            self.change_state(change);
            if self.board.state.is_same(&before) {
                self.changes.pop();
            }
        }
        let bytes = self.board.state.bytes();
        if bytes > STATE_BYTES_MAX && bytes > before.bytes() {
            return Err(Rejected::StateFull { bytes });
        }
        let value = match edit {
            Edit::Add(_) | Edit::Append(_) => self.board.state.value(path),
            Edit::Put { .. } | Edit::Merge(_) | Edit::Remove => None,
        };
        Ok(value.map_or(Answer::Done, Answer::Value))
    }

    fn state_change(
        &self,
        path: &StatePath,
        edit: &Edit,
        present: Option<StateValue>,
    ) -> Result<Option<Change>, Rejected> {
        let path = path.clone();
        let root_stays_an_object = |value: &Json| {
            let is_object = json::kind(value.text()) == Kind::Object;
            if path.is_root() && !is_object { Err(Rejected::RootNotAnObject) } else { Ok(()) }
        };
        Ok(Some(match edit {
            Edit::Put { value, ttl } => {
                root_stays_an_object(value)?;
                let expires_at = ttl.map(|ttl| self.now.after(ttl));
                Change::State(path, StateChange::Put { value: value.clone(), expires_at })
            }
            Edit::Merge(patch) => {
                root_stays_an_object(patch)?;
                Change::State(path, StateChange::Merged { patch: patch.clone() })
            }
            Edit::Add(number) => {
                let value = sum(&path, present, number)?;
                Change::State(path, StateChange::Set { value })
            }
            Edit::Append(elements) => {
                match present {
                    Some(value) if value.kind() != Kind::Array => {
                        return Err(Rejected::NotAnArray { path });
                    }
                    Some(_) if elements.is_empty() => return Ok(None),
                    Some(_) | None => {}
                }
                Change::State(path, StateChange::Appended { elements: elements.clone() })
            }
            Edit::Remove if present.is_none() => return Err(Rejected::NoPath { path }),
            Edit::Remove => Change::State(path, StateChange::Removed),
        }))
    }
}

/// An absent number counts as zero, so that a counter needs no first value.
fn sum(path: &StatePath, present: Option<StateValue>, number: &Json) -> Result<Json, Rejected> {
    let Some(present) = present else { return Ok(number.clone()) };
    let Some(before) = present.number() else {
        return Err(Rejected::NotANumber { path: path.clone() });
    };
    json::sum(before, number.text()).map(|sum| Json::of(&sum)).ok_or(Rejected::SumTooLarge)
}
