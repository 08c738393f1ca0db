//! The plan of a prompt: entries, forms, budget.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use blackboard_thumbnail::{Bounds, MAX_PX_MAX};
use bytes::Bytes;

use super::removal_order::Fit;
use super::selection::Selected;
use super::texts::Texts;
use crate::refusal::Refusal;
use crate::view::text_image::text_image;
use crate::yielding::Turns;
use blackboard_board::{Board, DataUrl, Entry, Image, ImagesShown, LogName, PromptPart};
use blackboard_prompt::{Cost, Cut, LeftOut, Syntax};
use blackboard_service::{ServiceError, SessionHandle, ShownImage};

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
pub struct Budgeted {
    pub cost: Cost,
    pub left_out: LeftOut,
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
    /// The bounds of its image.
    pub(super) bounds: Bounds,
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
    /// An image that is not stored apart, in a form that the model accepts.
    OfText { media_type: &'static str, bytes: u64, size: (u32, u32) },
    /// The address of the image, its media type there, and the longest side that the address asks for.
    Address { media_type: String, max_px: Option<NonZeroU32> },
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
        session: &SessionHandle,
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
            if !self.decide_images(session, board, texts, &gone).await? {
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
        session: &SessionHandle,
        board: &Board,
        texts: &Texts<'_>,
        gone: &BTreeSet<usize>,
    ) -> Result<bool, ServiceError> {
        let (mut decided, mut room) = (false, texts.limits().map(|limits| limits.bytes_of_all));
        for planned in &mut self.parts {
            let Planned::Screenshots(shots) = planned else { continue };
            // The newest first: where not all have room, the older ones are lines.
            for (index, shot) in shots.iter_mut().enumerate().rev() {
                // The size of one that is not stored apart, and so its cost, is known only then.
                let is_wanted = !gone.contains(&index) || shot.entry.item.image().is_none();
                if matches!(shot.shows, Shows::Undecided) && is_wanted {
                    shot.shows = match room {
                        Some(0) => Shows::Instead,
                        // Boxed: most prompts decide nothing, and all hold the room for it.
                        Some(_) | None => Box::pin(decide(session, board, shot, texts)).await?,
                    };
                    decided = true;
                }
                let left = room.map(|room| room.checked_sub(shot.inline_bytes()));
                match left {
                    Some(None) => (shot.shows, room) = (Shows::Instead, Some(0)),
                    Some(left) => room = left,
                    None => {}
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
            let bounds = Bounds::px(spec.max_px.map(NonZeroU32::get));
            shots.push(Shot { entry: Arc::clone(entry), metadata, shows, bounds });
        }
        turns.worked(SHOT_BYTES * run.len() as u64).await;
    }
    limit(&mut shots, texts);
    Ok(shots)
}

/// Keeps the images within the number that the provider takes, the newest, and bounds each of them.
fn limit(shots: &mut [Shot], texts: &Texts<'_>) {
    let Some(limits) = texts.limits() else { return };
    let is_image = |shot: &&mut Shot| matches!(shot.shows, Shows::Undecided);
    let count = shots.iter_mut().filter(is_image).count();
    let too_many = count.saturating_sub(limits.count);
    shots.iter_mut().filter(is_image).take(too_many).for_each(|shot| shot.shows = Shows::Instead);
    let side = limits.side_among(count - too_many);
    for shot in shots {
        let max_px = [shot.bounds.max_px, side].into_iter().flatten().min();
        shot.bounds = Bounds { max_px, max_bytes: Some(limits.bytes), ..Bounds::default() };
    }
}

fn wanted(entry: &Entry, is_older: bool, texts: &Texts<'_>) -> Shows {
    let spec = texts.spec;
    let is_stored = entry.item.image().is_some();
    match spec.images {
        ImagesShown::None => Shows::Nothing,
        _ if is_older => Shows::Instead,
        _ if !is_stored && texts.is_original() => Shows::Value,
        // The provider takes a data URL in its canonical form only.
        ImagesShown::Inline if texts.limits().is_some() && DataUrl::stands_in(&entry.item) => {
            Shows::Undecided
        }
        _ if !is_stored => Shows::Instead,
        ImagesShown::Inline if texts.is_original() && spec.max_px.is_none() => Shows::Original,
        ImagesShown::Inline | ImagesShown::Url => Shows::Undecided,
    }
}

/// Decides the form of an image.
async fn decide(
    session: &SessionHandle,
    board: &Board,
    shot: &Shot,
    texts: &Texts<'_>,
) -> Result<Shows, ServiceError> {
    match shot.entry.item.image() {
        Some(image) => decide_stored(session, board, image, shot.bounds, texts).await,
        None => decide_string(session, board, shot, texts).await,
    }
}

/// Decides the form of an image that is a string of its item.
async fn decide_string(
    session: &SessionHandle,
    board: &Board,
    shot: &Shot,
    texts: &Texts<'_>,
) -> Result<Shows, ServiceError> {
    let shown = text_image(session, board, &shot.entry, shot.bounds, texts.media_types()).await?;
    Ok(shown.map_or(Shows::Instead, |shown| Shows::OfText {
        media_type: shown.media_type,
        bytes: shown.bytes.len() as u64,
        size: shown.size,
    }))
}

/// Decides the form of an image that is stored apart.
async fn decide_stored(
    session: &SessionHandle,
    board: &Board,
    image: &Image,
    bounds: Bounds,
    texts: &Texts<'_>,
) -> Result<Shows, ServiceError> {
    let (max_px, is_address) = (texts.spec.max_px, texts.spec.images == ImagesShown::Url);
    if is_address && texts.is_original() {
        return Ok(Shows::address(image.media_type(), max_px));
    }
    // Bytes without a recognisable size are not an image, whatever they begin with.
    let Some(size) = image.size else { return Ok(Shows::Instead) };
    match texts.syntax {
        Some(syntax) if is_address => {
            decide_address(session, board, (image, size), bounds, syntax).await
        }
        None if is_address => Ok(Shows::address(image.media_type(), max_px)),
        _ => Ok(match session.shown_image(board, image, bounds, texts.media_types()).await? {
            None => Shows::Instead,
            Some(ShownImage::Stored { .. }) if texts.is_original() => Shows::Original,
            Some(shown) => Shows::Image(shown),
        }),
    }
}

/// Decides the address of an image. One that has to be made asks for the sides that it will have.
async fn decide_address(
    session: &SessionHandle,
    board: &Board,
    (image, (width, height)): (&Image, (u32, u32)),
    bounds: Bounds,
    syntax: &Syntax,
) -> Result<Shows, ServiceError> {
    let shown_within =
        async |bounds| session.shown_image(board, image, bounds, syntax.media_types()).await;
    let is_too_long =
        |shown: &ShownImage| bounds.max_bytes.is_some_and(|max| shown.length(image) > max);
    let longest = width.max(height).min(MAX_PX_MAX);
    let mut max_px = bounds.max_px.map_or(longest, |max_px| max_px.min(longest));
    let mut shown = shown_within(Bounds::px(Some(max_px))).await?;
    // An address bounds the sides alone: shorter ones make fewer bytes, and a pixel less makes the image anew.
    if shown.as_ref().is_some_and(is_too_long) {
        let Some(ShownImage::Made { size, .. }) = shown_within(bounds).await? else {
            return Ok(Shows::Instead);
        };
        max_px = size.0.max(size.1).min(longest.saturating_sub(1).max(1));
        shown = shown_within(Bounds::px(Some(max_px))).await?;
    }
    Ok(match shown.filter(|shown| !is_too_long(shown)) {
        None => Shows::Instead,
        Some(ShownImage::Stored { media_type }) => Shows::address(&media_type, None),
        Some(ShownImage::Made { media_type, .. }) => {
            Shows::address(media_type, NonZeroU32::new(max_px))
        }
    })
}

impl Shows {
    fn address(media_type: &str, max_px: Option<NonZeroU32>) -> Self {
        Self::Address { media_type: media_type.to_owned(), max_px }
    }
}

impl Shot {
    /// Returns the bytes of base64 that the image adds to the prompt.
    fn inline_bytes(&self) -> u64 {
        match &self.shows {
            Shows::Image(shown) => {
                let image = self.entry.item.image();
                image.map_or(0, |image| shown.length(image)).div_ceil(3) * 4
            }
            Shows::OfText { bytes, .. } => bytes.div_ceil(3) * 4,
            Shows::Nothing
            | Shows::Instead
            | Shows::Value
            | Shows::Original
            | Shows::Address { .. }
            | Shows::Undecided => 0,
        }
    }
}
