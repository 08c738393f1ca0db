//! Tests of the state against a model.
//!
//! The model keeps plain values and compares whole documents.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::json;
use crate::state::*;

type Names = Vec<String>;

/// A plain value. The elements of an array are texts.
#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Scalar(String),
    Array(Vec<String>),
    Object(Vec<(String, Plain)>),
}

impl Plain {
    /// Returns the text with `space` between the tokens.
    fn text(&self, space: &str) -> String {
        let list = |open: &str, items: Vec<String>, close: &str| {
            format!("{open}{space}{}{space}{close}", items.join(&format!("{space},{space}")))
        };
        match self {
            Self::Scalar(text) => text.clone(),
            Self::Array(elements) => list("[", elements.clone(), "]"),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| {
                    let mut text = String::new();
                    json::quote(name, &mut text);
                    text + space + ":" + space + &value.text(space)
                };
                list("{", members.iter().map(member).collect(), "}")
            }
        }
    }

    fn get(&self, names: &[String]) -> Option<&Self> {
        let Some((first, rest)) = names.split_first() else { return Some(self) };
        let Self::Object(members) = self else { return None };
        members.iter().find(|(name, _)| name == first)?.1.get(rest)
    }

    /// Returns the value at this place, creating missing objects. Returns `None` if a value above is not an object.
    fn slot(&mut self, names: &[String]) -> Option<&mut Self> {
        let Some((first, rest)) = names.split_first() else { return Some(self) };
        let Self::Object(members) = self else { return None };
        let place = members.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            members.push((first.clone(), Self::Object(Vec::new())));
            members.len() - 1
        });
        members[place].1.slot(rest)
    }

    fn remove(&mut self, names: &[String]) {
        let Some((last, above)) = names.split_last() else {
            *self = Self::Object(Vec::new());
            return;
        };
        if let Some(Self::Object(members)) = self.get(above).cloned() {
            let kept = members.into_iter().filter(|(name, _)| name != last).collect();
            *self.slot(above).unwrap() = Self::Object(kept);
        }
    }

    fn merge(target: Option<&Self>, patch: &Self) -> Self {
        let Self::Object(patch) = patch else { return patch.clone() };
        let mut members = match target {
            Some(Self::Object(members)) => members.clone(),
            _ => Vec::new(),
        };
        for (name, value) in patch {
            let place = members.iter().position(|(present, _)| present == name);
            match (place, value) {
                (Some(place), Self::Scalar(null)) if null == "null" => drop(members.remove(place)),
                (None, Self::Scalar(null)) if null == "null" => {}
                (Some(place), value) => {
                    members[place].1 = Self::merge(Some(&members[place].1), value);
                }
                (None, value) => members.push((name.clone(), Self::merge(None, value))),
            }
        }
        Self::Object(members)
    }

    /// All paths with their values in preorder.
    fn walk<'a>(&'a self, at: &[String], out: &mut Vec<(Names, &'a Self)>) {
        out.push((at.to_vec(), self));
        if let Self::Object(members) = self {
            for (name, value) in members {
                value.walk(&[at, std::slice::from_ref(name)].concat(), out);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Put(Plain, Option<i64>),
    Set(Plain),
    Merge(Plain),
    Append(Vec<String>),
    Remove,
}

struct Model {
    document: Plain,
    revisions: BTreeMap<Names, Revision>,
    expiries: BTreeMap<Names, i64>,
}

impl Model {
    fn new() -> Self {
        let revisions = BTreeMap::from([(Names::new(), Revision(0))]);
        Self { document: Plain::Object(Vec::new()), revisions, expiries: BTreeMap::new() }
    }

    fn change(&mut self, at: &[String], op: &Op, revision: Revision) {
        let old = self.document.clone();
        if !self.try_change(at, op) {
            self.document = old;
            return;
        }
        let mut walk = Vec::new();
        self.document.walk(&[], &mut walk);
        let known = std::mem::take(&mut self.revisions);
        for (names, value) in walk {
            let same = old.get(&names) == Some(value);
            let changed = if same { known[&names] } else { revision };
            self.revisions.insert(names, changed);
        }
        if matches!(op, Op::Put(..) | Op::Remove) {
            self.expiries.retain(|names, _| !names.starts_with(at));
        }
        if let Op::Put(_, Some(expiry)) = op {
            self.expiries.insert(at.to_vec(), *expiry);
        }
        self.expiries.retain(|names, _| self.document.get(names).is_some());
    }

    /// Applies the change. Returns true if it is allowed.
    fn try_change(&mut self, at: &[String], op: &Op) -> bool {
        if let Op::Remove = op {
            self.document.remove(at);
            return true;
        }
        let before = self.document.get(at).cloned();
        let Some(slot) = self.document.slot(at) else { return false };
        match op {
            Op::Put(value, _) | Op::Set(value) => *slot = value.clone(),
            Op::Merge(patch) => *slot = Plain::merge(before.as_ref(), patch),
            Op::Append(elements) => match before {
                None => *slot = Plain::Array(elements.clone()),
                Some(Plain::Array(present)) => {
                    *slot = Plain::Array([present, elements.clone()].concat());
                }
                Some(_) => return false,
            },
            Op::Remove => {}
        }
        matches!(self.document, Plain::Object(_))
    }

    fn check(&self, state: &State) -> Result<(), TestCaseError> {
        let mut walk = Vec::new();
        self.document.walk(&[], &mut walk);
        let revisions: Vec<_> = walk.iter().map(|(names, _)| self.revisions[names]).collect();
        prop_assert_eq!(text(state), self.document.text(""));
        prop_assert_eq!(state.revisions(), revisions);
        prop_assert_eq!(state.bytes(), text(state).len() as u64);
        for (names, value) in walk.into_iter().filter(|(names, _)| !names.contains(&String::new()))
        {
            let found = state.value(&path(&names)).unwrap();
            prop_assert_eq!(found.bytes(), value.text("").len() as u64);
            prop_assert_eq!(found.changed(), self.revisions[&names]);
            prop_assert!(found.equals(&value.text("\n")));
        }
        self.check_expiries(state)
    }

    fn check_expiries(&self, state: &State) -> Result<(), TestCaseError> {
        let expiries = self.expiries.iter().map(|(names, at)| (path(names), Timestamp(*at)));
        let expiries: Vec<_> = expiries.collect();
        let held: Vec<_> = state.expiries().map(|(path, at)| (path.clone(), at)).collect();
        prop_assert_eq!(&held, &expiries);
        prop_assert_eq!(state.next_expiry(), self.expiries.values().min().copied().map(Timestamp));
        let due: Vec<_> = expiries.iter().filter(|(_, at)| *at <= Timestamp(5)).collect();
        let mut top: Vec<_> = due
            .iter()
            .filter(|(path, _)| !due.iter().any(|(above, _)| above != path && above.contains(path)))
            .map(|(path, at)| (*at, path.clone()))
            .collect();
        top.sort();
        let top: Vec<_> = top.into_iter().map(|(_, path)| path).collect();
        prop_assert_eq!(state.due(Timestamp(5), usize::MAX), top);
        let mut restored = State::restore(&text(state), &state.revisions());
        for (path, at) in held {
            assert!(restored.as_mut().unwrap().restore_expiry(&path, at));
        }
        prop_assert_eq!(restored.as_ref(), Some(state));
        Ok(())
    }
}

fn text(state: &State) -> String {
    state.text()
}

fn document(state: &State) -> StateValue {
    state.value(&StatePath::root()).unwrap()
}

fn path(names: &[String]) -> StatePath {
    StatePath::from_segments(names.iter().map(String::as_str)).unwrap()
}

fn change(state: &mut State, at: &[String], op: &Op, space: &str, revision: Revision) {
    let path = path(at);
    match op {
        Op::Put(value, at) => state.put(&path, &value.text(space), at.map(Timestamp), revision),
        Op::Set(value) => state.set(&path, &value.text(space), revision),
        Op::Merge(patch) => state.merge(&path, &patch.text(space), revision),
        Op::Append(elements) => state.append(&path, elements.iter().map(String::as_str), revision),
        Op::Remove => state.remove(&path, revision),
    }
}

/// Applies the change by a value built for an earlier document. Returns true if the value fits.
fn take(state: &mut State, then: &State, at: &[String], op: &Op, revision: Revision) -> bool {
    let path = path(at);
    match op {
        Op::Put(value, at) => {
            let made = then.make_put(&path, &value.text(""));
            made.is_some_and(|made| state.take_put(&path, &made, at.map(Timestamp), revision))
        }
        Op::Merge(patch) => {
            let made = then.make_merged(&path, &patch.text(""));
            made.is_some_and(|made| state.take_merged(&path, &made, revision))
        }
        Op::Set(_) | Op::Append(_) | Op::Remove => false,
    }
}

#[expect(unused_must_use, reason = "that it comes back is all that is asked")]
fn tried(a: &str, b: &str) -> State {
    let mut state = State::default();
    for (revision, path) in (1..).map(Revision).zip([path(&["a".to_owned()]), StatePath::root()]) {
        state.put(&path, a, None, revision);
        state.merge(&path, b, revision);
        state.append(&path, [a, b], revision);
        state.set(&path, b, revision);
        document(&state).equals(a);
    }
    state
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("a".to_owned()),
        3 => Just("b".to_owned()),
        1 => Just("c\"\n é".to_owned()),
        3 => wide_name(),
    ]
}

/// A name for objects with many members.
fn wide_name() -> impl Strategy<Value = String> {
    (0..24).prop_map(|i| format!("k{i}"))
}

fn members(
    name: impl Strategy<Value = String>,
    value: impl Strategy<Value = Plain>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Plain> {
    let members = prop::collection::vec((name, value), count);
    members.prop_map(|mut members| {
        let mut seen = Vec::new();
        members.retain(|(name, _)| !seen.contains(name) && (seen.push(name.clone()), true).1);
        Plain::Object(members)
    })
}

fn plain() -> impl Strategy<Value = Plain> {
    let scalar = || {
        let texts = prop::sample::select(vec!["null", "1", "1.0", "-0", "\"\\u0061\"", "\"a\""]);
        texts.prop_map(|text| Plain::Scalar(text.to_owned()))
    };
    let array = |count| prop::collection::vec(element(), count).prop_map(Plain::Array);
    let leaf = prop_oneof![3 => scalar(), 1 => array(0..3)].boxed();
    let small = leaf.clone().prop_recursive(3, 12, 4, |inner| members(name(), inner, 0..4));
    let wide = members(wide_name(), scalar(), 20..80);
    prop_oneof![2 => leaf, 6 => small, 3 => wide, 1 => array(30..80)]
}

fn element() -> impl Strategy<Value = String> {
    let texts =
        vec!["1", "\"x\"", "{\"a\":[1.0,null]}", "[]", "\"longer than what is kept in place\""];
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (plain(), prop::option::of(0..10_i64)).prop_map(|(value, at)| Op::Put(value, at)),
        1 => plain().prop_map(Op::Set),
        3 => plain().prop_map(Op::Merge),
        2 => prop::collection::vec(element(), 0..20).prop_map(Op::Append),
        2 => Just(Op::Remove),
    ]
}

proptest! {
    #[test]
    fn any_changes_are_those_of_the_model(
        ops in prop::collection::vec((prop::collection::vec(name(), 0..3), op()), 1..40),
        space in "[ \n\t]{0,2}",
    ) {
        let (mut state, mut model) = (State::default(), Model::new());
        let mut kept = Vec::new();
        for (step, (at, op)) in (1_u64..).zip(&ops) {
            // Two changes of one commit have one revision.
            let revision = Revision(step.div_ceil(2));
            kept.push((state.clone(), text(&state), state.revisions()));
            let before = state.clone();
            change(&mut state, at, op, &space, revision);
            model.change(at, op, revision);
            model.check(&state)?;
            for (then, ..) in kept.iter().rev().take(3) {
                let mut taken = before.clone();
                if take(&mut taken, then, at, op, revision) {
                    prop_assert_eq!(&taken, &state);
                }
            }
        }
        for (old, document, revisions) in kept {
            prop_assert_eq!(text(&old), document);
            prop_assert_eq!(old.revisions(), revisions);
        }
    }

    #[test]
    fn a_value_equals_what_its_text_equals(a in members(name(), plain(), 0..3), b in members(name(), plain(), 0..3)) {
        let mut state = State::default();
        state.put(&StatePath::root(), &a.text(""), None, Revision(1));
        for other in [a.text(" "), b.text("")] {
            prop_assert_eq!(document(&state).equals(&other), json::equal(&a.text(""), &other));
        }
    }

    #[test]
    fn any_text_comes_back(
        a in r#"([\[\]{}",:\\ \n-]|"a"|"é":|[0-9.eE]{1,3}|true|\\ud8[0-9a]{2}|中){0,24}"#,
        b in r#"([\[\]{}",:\\ \n-]|"a":|[0-9]|null){0,16}"#,
    ) {
        let state = tried(&a, &b);
        prop_assert_eq!(state.bytes(), text(&state).len() as u64);
    }
}
