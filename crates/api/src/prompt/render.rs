//! Rendering of a plan as a body.
//!
//! Cached texts are sent; all others are rendered.

use std::sync::Arc;

use bytes::Bytes;

use super::plan::{Plan, Planned, Shot, Shows};
use super::selection::Selected;
use super::texts::Texts;
use crate::segments::Segments;
use crate::yielding::Turns;
use blackboard_board::{Board, Image, Log, LogName};
use blackboard_prompt::{IMAGE_URL_BEGIN, IMAGE_URL_END, Source, image_value};
use blackboard_service::{ServiceError, ShownImage};

/// The number of list items in a text if the prefix to cache is marked. A provider does not find a growing text in
/// its cache, but a full block never changes.
const BLOCK_ITEMS: usize = 32;

/// A prompt under construction.
pub(super) struct Renderer<'a> {
    board: &'a Arc<Board>,
    texts: &'a Texts<'a>,
    out: Segments,
    /// The number of parts so far.
    parts: usize,
    /// The index of the marked part. Up to this part, the prompt stays the same while steps, screenshots and the
    /// state change.
    marked: Option<usize>,
    turns: Turns,
}

impl<'a> Renderer<'a> {
    /// Renders a plan as the segments of a body.
    pub(super) async fn segments(
        plan: &Plan,
        board: &'a Arc<Board>,
        texts: &'a Texts<'a>,
    ) -> Result<Segments, ServiceError> {
        let marked = texts.marks().then(|| stable_parts(plan).saturating_sub(1));
        let turns = Turns::default();
        let mut writing = Self { board, texts, out: Segments::default(), parts: 0, marked, turns };
        if texts.syntax.is_some() {
            writing.out.push_str("[");
        }
        writing.text(&texts.opening());
        for part in &plan.parts {
            match part {
                Planned::List(log, selected) => writing.list(log, selected).await?,
                Planned::Screenshots(shots) => writing.screenshots(shots).await,
                Planned::State(text) => writing.state(text),
            }
        }
        if let Some(budgeted) = plan.budgeted.as_ref().filter(|cut| cut.left_out.total() > 0) {
            writing.text(&texts.left_out(&budgeted.left_out));
        }
        if texts.syntax.is_some() {
            writing.out.push_str("]\n");
        }
        Ok(writing.out)
    }

    fn begin(&mut self) {
        if self.parts > 0 && self.texts.syntax.is_some() {
            self.out.push_str(", ");
        }
        self.parts += 1;
    }

    fn text_begin(&mut self) {
        self.begin();
        if let Some(syntax) = self.texts.syntax {
            self.out.push_str(syntax.text_begin);
        }
    }

    fn text_end(&mut self) {
        let Some(syntax) = self.texts.syntax else { return };
        let is_marked = self.marked.is_some_and(|marked| marked + 1 == self.parts);
        let end = syntax.marked_text_end.filter(|_| is_marked);
        self.out.push_str(end.unwrap_or(syntax.text_end));
    }

    fn text(&mut self, text: &str) {
        self.text_begin();
        self.out.push_str(text);
        self.text_end();
    }

    async fn list(&mut self, name: &LogName, selected: &Selected) -> Result<(), ServiceError> {
        self.text_begin();
        self.out.push_str(&self.texts.list_begin(name));
        if let Some(log) = self.board.log(name) {
            // Each item has a comma before it, except the first.
            let mut comma = self.texts.comma().len();
            if self.marked.is_some() && name.has_steps() {
                let blocks = selected.clone().in_blocks(BLOCK_ITEMS);
                for (index, block) in blocks.iter().enumerate() {
                    if index > 0 {
                        self.text_end();
                        self.text_begin();
                    }
                    self.items(log, name, block, &mut comma).await?;
                }
            } else {
                self.items(log, name, selected, &mut comma).await?;
            }
        }
        self.out.push_str(self.texts.list_end());
        self.text_end();
        Ok(())
    }

    async fn items(
        &mut self,
        log: &Log,
        name: &LogName,
        selected: &Selected,
        comma: &mut usize,
    ) -> Result<(), ServiceError> {
        let ((keys, keeps), items) = (self.texts.spec.keys_of(name), self.texts.items());
        for run in selected.runs(log) {
            let skipped = std::mem::take(comma);
            if keeps {
                let text = items.kept(&run, &keys, &mut self.turns).await?;
                let mut pieces = text.whole();
                let first = pieces.next().map(|first| first.slice(skipped..));
                first.into_iter().chain(pieces).for_each(|piece| self.out.push_bytes(piece));
            } else {
                let (bytes, make) = items.unkept(run, keys.clone());
                self.out.push_made(bytes, move || make().split_off(skipped));
            }
        }
        Ok(())
    }

    async fn screenshots(&mut self, shots: &[Shot]) {
        self.out.push_str(&self.texts.screenshots_begin());
        for shot in shots {
            self.text_begin();
            self.out.push_bytes(shot.metadata.clone());
            if matches!(shot.shows, Shows::Instead) {
                self.out.push_str(&self.texts.instead(&shot.entry));
            }
            self.text_end();
            self.image(shot);
            self.out.push_str(self.texts.screenshot_end());
            self.turns.examined(&shot.entry).await;
        }
    }

    fn image(&mut self, shot: &Shot) {
        let stored = shot.entry.item.image();
        match (&shot.shows, stored) {
            (Shows::Nothing | Shows::Instead | Shows::Undecided, _) => {}
            (Shows::OfText { media_type, bytes, .. }, _) => {
                self.image_begin(shot, media_type, Source::Inline);
                let accepted = self.texts.media_types();
                self.out.push_text_image(&shot.entry, shot.bounds, accepted, *bytes);
                self.image_end();
            }
            (Shows::Value, _) | (_, None) => {
                self.begin();
                self.out.push_str(IMAGE_URL_BEGIN);
                self.out.push_bytes(image_value(&shot.entry.item).into());
                self.out.push_str(IMAGE_URL_END);
            }
            (Shows::Address { media_type, max_px }, Some(image)) => {
                self.image_begin(shot, media_type, Source::Address);
                self.out.push_str(&self.texts.address(&shot.entry, image, *max_px));
                self.image_end();
            }
            (Shows::Original, Some(image)) => {
                self.image_begin(shot, "", Source::Address);
                self.out.push_image(image);
                self.image_end();
            }
            (Shows::Image(ShownImage::Stored { media_type }), Some(image)) => {
                self.image_begin(shot, media_type, Source::Inline);
                self.out.push_image(&image.with_head(String::new()));
                self.image_end();
            }
            (Shows::Image(ShownImage::Made { media_type, bytes, .. }), Some(image)) => {
                self.image_begin(shot, media_type, Source::Inline);
                self.out.push_thumbnail(image, shot.bounds, *bytes);
                self.image_end();
            }
        }
    }

    fn image_begin(&mut self, shot: &Shot, media_type: &str, source: Source) {
        match self.texts.syntax {
            Some(syntax) => {
                self.begin();
                self.out.push_str(&syntax.image_begin(media_type, source));
            }
            None => {
                self.out.push_str(&self.texts.image_begin(&shot.entry));
                if source == Source::Inline {
                    self.out.push_str(&Image::head_of(media_type));
                }
            }
        }
    }

    fn image_end(&mut self) {
        let end = self.texts.syntax.map(|syntax| syntax.image_end);
        self.out.push_str(end.unwrap_or(self.texts.image_end()));
    }

    fn state(&mut self, text: &Bytes) {
        self.text_begin();
        self.out.push_bytes(text.clone());
        self.text_end();
    }
}

/// Returns the number of parts that no new step changes: the opening, questions, requests, and the full blocks of the
/// first list of steps.
fn stable_parts(plan: &Plan) -> usize {
    let mut parts = 1;
    for part in &plan.parts {
        match part {
            Planned::List(log, selected) if log.has_steps() => {
                return parts + selected.len() / BLOCK_ITEMS;
            }
            Planned::List(..) => parts += 1,
            Planned::Screenshots(_) | Planned::State(_) => return parts,
        }
    }
    parts
}
