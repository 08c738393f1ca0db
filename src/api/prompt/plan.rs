//! The plan of a prompt: entries, forms, budget.

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

/// The maximum number of attempts to fit a plan while images turn out to be invalid. Then all images are examined.
const ROUNDS_MAX: usize = 8;

/// The work to plan a screenshot with cached metadata, in bytes of text.
const SHOT_BYTES: u64 = 256;

/// The entries of a prompt and their forms.
pub(super) struct Plan {
    pub(super) parts: Vec<Planned>,
    /// The result of the budget, if there is one.
    pub(super) budgeted: Option<Budgeted>,
}

/// The result of a budget.
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
    /// The metadata, shown before the image.
    pub(super) metadata: Bytes,
    pub(super) shows: Shows,
}

/// The form of a screenshot's image.
#[derive(Clone, Debug)]
pub(super) enum Shows {
    /// The image is omitted.
    Nothing,
    /// A few words replace the image.
    Instead,
    /// The image value of any kind, which is not stored as an image.
    Value,
    /// The image, exactly as it was sent.
    Original,
    /// The image in a form that the model accepts.
    Image(ShownImage),
    /// The address of the image, and its media type there.
    Address { media_type: String },
    /// The image, in a form that is not decided yet.
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

    /// Removes the parts beyond the budget. Only images that are shown are rendered.
    pub(super) async fn keep_within(
        &mut self,
        service: &Service,
        board: &Arc<Board>,
        texts: &Texts<'_>,
        max_tokens: u64,
    ) -> Result<(), Refusal> {
        for round in 1.. {
            let weighing = Fit::of(self, board, texts, max_tokens).await?;
            // In Markdown, the cost of an image is its length, which is known only after rendering.
            let is_lazy = texts.syntax.is_some() && round < ROUNDS_MAX;
            let gone = if is_lazy { weighing.without_image(self.shots()) } else { BTreeSet::new() };
            // The cost of an image changes if it turns out to be invalid, so the plan is fitted again.
            if !self.decide_images(service, board, texts, &gone).await? {
                let Cut { cost, left_out, .. } = weighing.cut;
                weighing.leave_out(self);
                self.budgeted = Some(Budgeted { cost, left_out });
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of screenshots.
    fn shots(&self) -> usize {
        let shots = self.parts.iter().map(|part| match part {
            Planned::Screenshots(shots) => shots.len(),
            Planned::List(..) | Planned::State(_) => 0,
        });
        shots.sum()
    }

    /// Decides the form of each image, except of the screenshots in `gone`. Returns true if any was undecided.
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

/// Renders the state, which may have several MiB.
async fn state(board: &Arc<Board>, texts: &Texts<'_>) -> Result<Bytes, ServiceError> {
    let (bytes, board, write) = (board.state().bytes(), Arc::clone(board), texts.state_writer());
    Turns::default().make(bytes, move || Bytes::from(write(&board))).await
}

/// Plans the screenshots. If the number of images is limited, older screenshots are shown without them.
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

/// Decides the form of an image.
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
    // Bytes without a recognisable size are not an image, whatever they begin with.
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
        // The address serves the type that was sent, unless the image is scaled down.
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
