//! Rendered items in one format, with costs.
//!
//! Long texts are rendered on a blocking thread.

use std::sync::Arc;

use exact_json::python::{Characters, Literal};

use crate::yielding::Turns;
use blackboard_board::{Entry, Run, RunText, TextForm, TextKeys, TextKind};
use blackboard_prompt as prompt;
use blackboard_prompt::{Cost, Estimator, list_items, markdown, markdown_items};
use blackboard_prompt::{markdown_metadata, metadata, text_form};
use blackboard_service::ServiceError;

/// The work to render or weigh a byte, in bytes that are read.
const WRITTEN: u64 = 4;

/// Renders and weighs the items of a prompt.
#[derive(Clone, Copy)]
pub(super) struct Items {
    /// The form of characters in JSON; `None` for Markdown.
    pub(super) characters: Option<Characters>,
    pub(super) estimator: Estimator,
}

impl Items {
    /// Returns the cost of a text.
    pub(super) fn cost(self, text: &[u8]) -> Cost {
        match self.characters {
            Some(_) => self.estimator.literal(text),
            None => self.estimator.text(&String::from_utf8_lossy(text)),
        }
    }

    /// Returns the form of cached texts.
    pub(super) fn form(self) -> TextForm {
        self.characters.map_or(TextForm::Markdown, text_form)
    }

    /// Returns the text of a run, which is cached with the run.
    pub(super) async fn kept(
        self,
        run: &Run,
        keys: &TextKeys,
        turns: &mut Turns,
    ) -> Result<RunText, ServiceError> {
        let bytes = if run.has_text(&self.kind(keys)) { 0 } else { run.bytes() };
        let (run, keys) = (run.clone(), keys.clone());
        turns.make(WRITTEN * bytes, move || self.text(&run, &keys)).await
    }

    /// Returns the metadata of a run of screenshots, which are cached with the run.
    pub(super) async fn metadata(
        self,
        run: &Run,
        turns: &mut Turns,
    ) -> Result<RunText, ServiceError> {
        let bytes = if run.has_text(&self.kind(&None)) { 0 } else { run.bytes() };
        let run = run.clone();
        let make = move || match self.characters {
            Some(characters) => metadata(&run, characters),
            None => markdown_metadata(&run),
        };
        turns.make(WRITTEN * bytes, make).await
    }

    /// Returns a function that renders the text of a run without caching, and its work in bytes.
    pub(super) fn unkept(self, run: Run, keys: TextKeys) -> (u64, impl FnOnce() -> String + Send) {
        let bytes = WRITTEN * run.bytes();
        let make = move || {
            let (mut item, mut made) = (self.writer(), String::new());
            run.entries().for_each(|entry| item(entry, &keys, &mut made));
            made
        };
        (bytes, make)
    }

    /// Returns the costs of the items of a run, in order.
    pub(super) async fn costs(
        self,
        run: &Run,
        keys: &TextKeys,
        keeps: bool,
        turns: &mut Turns,
    ) -> Result<Vec<Cost>, ServiceError> {
        let is_weighed = keeps && run.has_weights(&self.kind(keys), self.estimator.tokenizer());
        let bytes = if is_weighed { 0 } else { run.bytes() };
        let (run, keys) = (run.clone(), keys.clone());
        let weigh = move || if keeps { self.weights(&run, &keys) } else { self.weigh(&run, &keys) };
        turns.make(WRITTEN * bytes, weigh).await
    }

    /// Returns a function that renders the entries of a list one after the other.
    fn writer(self) -> impl FnMut(&Entry, &TextKeys, &mut String) {
        let mut literal = self.characters.map(Literal::new);
        move |entry, keys, out| match &mut literal {
            Some(literal) => prompt::list_item(&entry.item, keys, literal, out),
            None => markdown::item(entry.item.text(), keys, out),
        }
    }

    /// Returns the kind of cached text that shows these members.
    fn kind(self, keys: &TextKeys) -> TextKind {
        TextKind { form: self.form(), keys: keys.clone() }
    }

    fn text(self, run: &Run, keys: &TextKeys) -> RunText {
        match self.characters {
            Some(characters) => list_items(run, keys, characters),
            None => markdown_items(run, keys),
        }
    }

    /// Returns the costs of the items, which are cached with the run.
    fn weights(self, run: &Run, keys: &TextKeys) -> Vec<Cost> {
        let (text, tokenizer) = (self.text(run, keys), self.estimator.tokenizer());
        let weigh = |text: &[u8]| self.cost(text).thousandths();
        let weights = run.weights(&self.kind(keys), tokenizer, &text, weigh);
        weights.each().map(Cost::of_thousandths).collect()
    }

    /// Returns the costs of the items without caching.
    fn weigh(self, run: &Run, keys: &TextKeys) -> Vec<Cost> {
        let (mut item, mut text) = (self.writer(), String::new());
        let cost = |entry: &Arc<Entry>| {
            text.clear();
            item(entry, keys, &mut text);
            self.cost(text.as_bytes())
        };
        run.entries().map(cost).collect()
    }
}
