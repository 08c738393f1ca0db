//! The plan of a prompt: the entries of each log, their form, within the budget.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;

use super::budget::Fit;
use super::format::Texts;
use super::selection::Selected;
use crate::api::refusal::Refusal;
use crate::api::yielding::Turns;
use crate::board::{Board, Entry, Image, ImagesShown, LogName, PromptPart};
use crate::prompt::{Cost, Cut, LeftOut};
use crate::service::{Service, ServiceError, ShownImage};

/// How often a plan is fitted into a budget while images turn out to be none; then all of them are looked at.
const ROUNDS_MAX: usize = 8;

/// What a screenshot costs to plan whose metadata are written already, in bytes of text.
const SHOT_BYTES: u64 = 256;

/// What a prompt shows.
pub(super) struct Plan {
    pub(super) parts: Vec<Planned>,
    /// What a budget left of it, where there is one.
    pub(super) budgeted: Option<Budgeted>,
}

/// What a budget left of a prompt.
pub(crate) struct Budgeted {
    pub(crate) cost: Cost,
    pub(crate) left_out: LeftOut,
}

/// A part of a prompt.
pub(super) enum Planned {
    List(LogName, Selected),
    Screenshots(Vec<Shot>),
    /// The text of the state.
    State(Bytes),
}

/// A screenshot.
pub(super) struct Shot {
    pub(super) entry: Arc<Entry>,
    /// What comes before its image, or all that there is of it.
    pub(super) metadata: Bytes,
    pub(super) shows: Shows,
}

/// What is shown of a screenshot besides its metadata.
#[derive(Clone, Debug)]
pub(super) enum Shows {
    /// Nothing.
    Nothing,
    /// A few words in the place of its image.
    Instead,
    /// What it has as its image, of whatever kind, since it is none that is stored.
    Value,
    /// Its image, exactly as it was sent.
    Original,
    /// Its image as the model takes it.
    Image(ShownImage),
    /// Its image's address, at which the model finds an image of this media type.
    Address { media_type: String },
    /// Its image, of which it is not known yet how.
    Undecided,
}

impl Plan {
    pub(super) async fn of(board: &Arc<Board>, texts: &Texts<'_>) -> Result<Self, ServiceError> {
        let spec = texts.spec;
        let mut parts = Vec::with_capacity(spec.parts.len());
        for part in &spec.parts {
            match part {
                PromptPart::Log(LogName::Screenshots) => {
                    parts.push(Planned::Screenshots(shots(board, texts).await?));
                }
                PromptPart::Log(log) => {
                    let selected = match board.log(log) {
                        Some(entries) => Selected::of(entries, log, &spec.filter_of(log)).await,
                        None => Selected::default(),
                    };
                    let latest = spec.latest.unwrap_or(usize::MAX);
                    parts.push(Planned::List(log.clone(), selected.last(latest)));
                }
                PromptPart::State => parts.push(Planned::State(state(board, texts).await?)),
            }
        }
        Ok(Self { parts, budgeted: None })
    }

    /// Leaves out what is beyond the budget. Only those images are made that are shown then.
    pub(super) async fn keep_within(
        &mut self,
        service: &Service,
        board: &Arc<Board>,
        texts: &Texts<'_>,
        max_tokens: u64,
    ) -> Result<(), Refusal> {
        for round in 1.. {
            let weighing = Fit::of(self, board, texts, max_tokens).await?;
            // An image that is part of a text takes as much as that, which only making it tells.
            let is_lazy = texts.syntax.is_some() && round < ROUNDS_MAX;
            let gone = if is_lazy { weighing.without_image(self.shots()) } else { BTreeSet::new() };
            // One that turns out to be none takes less or more than it was weighed.
            if !self.decide_images(service, board, texts, &gone).await? {
                let Cut { cost, left_out, .. } = weighing.cut;
                weighing.leave_out(self);
                self.budgeted = Some(Budgeted { cost, left_out });
                break;
            }
        }
        Ok(())
    }

    /// How many screenshots it has.
    fn shots(&self) -> usize {
        let shots = self.parts.iter().map(|part| match part {
            Planned::Screenshots(shots) => shots.len(),
            Planned::List(..) | Planned::State(_) => 0,
        });
        shots.sum()
    }

    /// Finds out how each image is shown but those that are gone; whether there was any of which it was not known.
    pub(super) async fn decide_images(
        &mut self,
        service: &Service,
        board: &Board,
        texts: &Texts<'_>,
        gone: &BTreeSet<usize>,
    ) -> Result<bool, ServiceError> {
        let mut decided = false;
        for planned in &mut self.parts {
            let Planned::Screenshots(shots) = planned else { continue };
            for (index, shot) in shots.iter_mut().enumerate() {
                let (Shows::Undecided, Some(image)) = (&shot.shows, shot.entry.item.image()) else {
                    continue;
                };
                if !gone.contains(&index) {
                    shot.shows = decide(service, board, image, texts).await?;
                    decided = true;
                }
            }
        }
        Ok(decided)
    }
}

/// The text of the state, which may have several MiB.
async fn state(board: &Arc<Board>, texts: &Texts<'_>) -> Result<Bytes, ServiceError> {
    let (bytes, board, write) = (board.state().bytes(), Arc::clone(board), texts.state_writer());
    Turns::default().make(bytes, move || Bytes::from(write(&board))).await
}

/// The screenshots, the older ones without their images if only some are wanted with theirs.
async fn shots(board: &Arc<Board>, texts: &Texts<'_>) -> Result<Vec<Shot>, ServiceError> {
    let spec = texts.spec;
    let name = LogName::Screenshots;
    let Some(log) = board.log(&name) else { return Ok(Vec::new()) };
    let selected = Selected::of(log, &name, &spec.filter_of(&name)).await;
    let older = selected.len().saturating_sub(spec.screenshots.unwrap_or(usize::MAX));
    let mut shots = Vec::with_capacity(selected.len());
    let mut turns = Turns::default();
    for run in selected.runs(log) {
        let kept = texts.items().metadata(&run, &mut turns).await?;
        for (entry, metadata) in run.entries().zip(kept.each()) {
            let shows = wanted(entry, shots.len() < older, texts);
            shots.push(Shot { entry: Arc::clone(entry), metadata, shows });
        }
        turns.worked(SHOT_BYTES * run.len() as u64).await;
    }
    Ok(shots)
}

fn wanted(entry: &Entry, is_older: bool, texts: &Texts<'_>) -> Shows {
    let spec = texts.spec;
    let is_stored = entry.item.image().is_some();
    match spec.images {
        ImagesShown::None => Shows::Nothing,
        _ if is_older => Shows::Instead,
        _ if !is_stored && texts.is_original() => Shows::Value,
        _ if !is_stored => Shows::Instead,
        ImagesShown::Inline if texts.is_original() && spec.max_px.is_none() => Shows::Original,
        ImagesShown::Inline | ImagesShown::Url => Shows::Undecided,
    }
}

/// How an image is shown.
async fn decide(
    service: &Service,
    board: &Board,
    image: &Image,
    texts: &Texts<'_>,
) -> Result<Shows, ServiceError> {
    let spec = texts.spec;
    let accepted = texts.syntax.map_or(&[][..], |syntax| syntax.media_types());
    let address = |media_type: &str| Shows::Address { media_type: media_type.to_owned() };
    let is_address = spec.images == ImagesShown::Url;
    if is_address && texts.is_original() {
        return Ok(address(image.media_type()));
    }
    // Bytes whose size cannot be told are no image, whatever they begin with.
    if image.size.is_none() {
        return Ok(Shows::Instead);
    }
    if is_address && texts.syntax.is_none() {
        return Ok(address(image.media_type()));
    }
    let shown = service.shown_image(board, image, spec.max_px, accepted).await?;
    Ok(match (shown, spec.images) {
        (None, _) => Shows::Instead,
        (Some(ShownImage::Stored { media_type }), ImagesShown::Url) => {
            Shows::Address { media_type }
        }
        // What is found there is of the type that was sent, unless it is made smaller.
        (Some(ShownImage::Made { media_type, .. }), ImagesShown::Url) => {
            if spec.max_px.is_some_and(|max_px| is_larger(image, max_px)) {
                address(media_type)
            } else {
                Shows::Instead
            }
        }
        (Some(ShownImage::Stored { .. }), _) if texts.is_original() => Shows::Original,
        (Some(shown), _) => Shows::Image(shown),
    })
}

fn is_larger(image: &Image, max_px: NonZeroU32) -> bool {
    image.size.is_some_and(|(width, height)| width.max(height) > max_px.get())
}
