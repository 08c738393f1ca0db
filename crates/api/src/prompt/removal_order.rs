//! The order in which a token budget removes parts. The costs are in the crate of prompts.
//!
//! A budget removes first the images of screenshots, then the oldest steps of trajectories and of memories, then
//! requests and answered questions, and last whole screenshots. The state and open questions are never removed.
//! [`Fit`] adds parts in the reverse order until the budget is spent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::newest::{Item, Newest};
use super::plan::{Plan, Planned, Shot, Shows};
use super::selection::Selected;
use super::texts::Texts;
use crate::refusal::Refusal;
use crate::yielding::Turns;
use blackboard_board::{Board, Code, Image, LogName, Timestamp};
use blackboard_prompt::{Cost, Cut, Fitting, Kind, LeftOut, Step, TooSmall, image_value};
use blackboard_service::{ServiceError, ShownImage};

/// The kinds of items in lists, in reverse order of removal.
const LISTED: [Kind; 4] = [Kind::Question, Kind::Request, Kind::MemoryStep, Kind::Trajectory];

/// The parts of a plan that fit into a budget.
pub(super) struct Fit {
    pub(super) cut: Cut,
    /// The indexes of the items that are kept, for each part that is a list.
    lists: BTreeMap<usize, Vec<usize>>,
    /// The indexes of the screenshots that are kept.
    shots: BTreeSet<usize>,
    /// The indexes of the screenshots whose images are removed.
    without_image: BTreeSet<usize>,
}

/// The lists and screenshots of a plan, and the cost of the parts that are never removed.
#[derive(Default)]
struct Weights<'a> {
    rest: Cost,
    all: LeftOut,
    lists: Vec<List<'a>>,
    images: Vec<ShotStep>,
    shots: Vec<ShotStep>,
}

/// A list and the index of its part.
struct List<'a> {
    part: usize,
    kind: Kind,
    newest: Newest<'a>,
}

/// A removable screenshot or image.
struct ShotStep {
    at: Timestamp,
    index: usize,
    step: Step,
}

/// A part that is kept.
enum Place {
    Item(usize, usize),
    Shot(usize),
    Image(usize),
}

impl Fit {
    /// Weighs the parts of a plan until the budget is spent.
    pub(super) async fn of(
        plan: &Plan,
        board: &Arc<Board>,
        texts: &Texts<'_>,
        max_tokens: u64,
    ) -> Result<Self, Refusal> {
        let line = |left_out: &LeftOut| texts.cost(texts.left_out(left_out).as_bytes());
        let mut weights = Weights::of(plan, board, texts).await?;
        let mut fitting = Fitting::new(weights.rest, weights.all, line(&weights.all), max_tokens);
        let mut kept = Vec::new();
        weights.keep(&mut fitting, &mut kept).await?;
        let cut = fitting.fit(line).map_err(too_small)?;
        kept.truncate(cut.kept);
        Ok(weights.left(cut, kept))
    }

    /// Returns the screenshots without an image, for which no image is rendered.
    pub(super) fn without_image(&self, shots: usize) -> BTreeSet<usize> {
        let gone = (0..shots).filter(|index| !self.shots.contains(index));
        gone.chain(self.without_image.iter().copied()).collect()
    }

    /// Removes the parts from a plan that do not fit.
    pub(super) fn leave_out(mut self, plan: &mut Plan) {
        for (part, planned) in plan.parts.iter_mut().enumerate() {
            match planned {
                Planned::List(_, selected) => {
                    let mut stay = self.lists.remove(&part).unwrap_or_default();
                    if stay.len() < selected.len() {
                        stay.sort_unstable();
                        *selected = Selected::these(stay);
                    }
                }
                Planned::Screenshots(shots) => {
                    let mut index = 0..;
                    shots.retain_mut(|shot| {
                        let index = index.next().unwrap_or_default();
                        if self.without_image.contains(&index) {
                            shot.shows = Shows::Instead;
                        }
                        self.shots.contains(&index)
                    });
                }
                Planned::State(_) => {}
            }
        }
    }
}

impl<'a> Weights<'a> {
    async fn of(
        plan: &Plan,
        board: &Arc<Board>,
        texts: &'a Texts<'a>,
    ) -> Result<Self, ServiceError> {
        let rest = texts.cost(texts.opening().as_bytes());
        let (mut weights, mut turns) = (Self { rest, ..Self::default() }, Turns::default());
        for (part, planned) in plan.parts.iter().enumerate() {
            match planned {
                Planned::List(log, selected) => {
                    weights.list(part, log, selected, board, texts).await?;
                }
                Planned::Screenshots(shots) => weights.screenshots(shots, texts).await?,
                Planned::State(text) => weights.rest += cost(text, texts, &mut turns).await?,
            }
        }
        // The sort is stable: screenshots of the same time keep their order.
        weights.images.sort_by_key(|image| image.at);
        weights.shots.sort_by_key(|shot| shot.at);
        Ok(weights)
    }

    async fn list(
        &mut self,
        part: usize,
        name: &LogName,
        selected: &Selected,
        board: &Arc<Board>,
        texts: &'a Texts<'a>,
    ) -> Result<(), ServiceError> {
        self.rest += texts.cost(texts.list_begin(name).as_bytes());
        self.rest += texts.cost(texts.list_end().as_bytes());
        let Some(log) = board.log(name) else { return Ok(()) };
        let kind = match name {
            LogName::Questions => Kind::Question,
            LogName::Requests => Kind::Request,
            LogName::Trajectories => Kind::Trajectory,
            // Of messages none is removed.
            LogName::Memory(_) | LogName::Messages(_) => Kind::MemoryStep,
            LogName::Screenshots => Kind::Screenshot,
        };
        let mut newest = Newest::of(board, log, name, selected, texts);
        self.rest += newest.cost_of_stay(log).await?;
        self.all = self.all.and(kind, newest.count() as u64);
        self.lists.push(List { part, kind, newest });
        Ok(())
    }

    async fn screenshots(&mut self, shots: &[Shot], texts: &Texts<'_>) -> Result<(), ServiceError> {
        let mut turns = Turns::default();
        self.rest += texts.cost(texts.screenshots_begin().as_bytes());
        self.all = self.all.and(Kind::Screenshot, shots.len() as u64);
        for (index, shot) in shots.iter().enumerate() {
            let at = shot.entry.at;
            let metadata = cost(&shot.metadata, texts, &mut turns).await?
                + texts.cost(texts.screenshot_end().as_bytes());
            let shown = texts.image_cost(shot);
            turns.examined(&shot.entry).await;
            let mut saves = metadata + shown;
            let instead = texts.cost(texts.instead(&shot.entry).as_bytes());
            // A line may cost as much as a small image, and then saves nothing.
            let again = shot.is_image() && instead < shown;
            if again {
                let step = Step { kind: Kind::Image, saves: shown, instead, again: false };
                self.images.push(ShotStep { at, index, step });
                saves = metadata + instead;
            }
            let step = Step { kind: Kind::Screenshot, saves, instead: Cost::default(), again };
            self.shots.push(ShotStep { at, index, step });
        }
        Ok(())
    }

    /// Keeps parts while they fit, in reverse order of removal.
    async fn keep(
        &mut self,
        fitting: &mut Fitting,
        kept: &mut Vec<Place>,
    ) -> Result<(), ServiceError> {
        for shot in self.shots.iter().rev() {
            if !fitting.keep(shot.step) {
                return Ok(());
            }
            kept.push(Place::Shot(shot.index));
        }
        for kind in LISTED {
            while let Some((list, item)) = self.newest(kind).await? {
                let (saves, instead) = (item.cost, Cost::default());
                if !fitting.keep(Step { kind, saves, instead, again: false }) {
                    return Ok(());
                }
                list.newest.pass();
                kept.push(Place::Item(list.part, item.index));
            }
        }
        for image in self.images.iter().rev() {
            if !fitting.keep(image.step) {
                return Ok(());
            }
            kept.push(Place::Image(image.index));
        }
        Ok(())
    }

    /// Returns the newest item of a kind that is not kept yet, and its list.
    async fn newest(&mut self, kind: Kind) -> Result<Option<(&mut List<'a>, Item)>, ServiceError> {
        let mut newest: Option<(usize, Item)> = None;
        for (place, list) in self.lists.iter_mut().enumerate().filter(|(_, l)| l.kind == kind) {
            if let Some(item) = list.newest.peek().await?
                && newest.is_none_or(|(_, last)| last.at <= item.at)
            {
                newest = Some((place, item));
            }
        }
        let Some((place, item)) = newest else { return Ok(None) };
        Ok(self.lists.get_mut(place).map(|list| (list, item)))
    }

    /// Returns the parts that are kept.
    fn left(self, cut: Cut, kept: Vec<Place>) -> Fit {
        let stay = |list: &List<'_>| (list.part, list.newest.stay().iter().copied().collect());
        let mut lists: BTreeMap<usize, Vec<usize>> = self.lists.iter().map(stay).collect();
        let mut without_image: BTreeSet<_> = self.images.iter().map(|image| image.index).collect();
        let mut shots = BTreeSet::new();
        for place in kept {
            match place {
                Place::Item(part, index) => lists.entry(part).or_default().push(index),
                Place::Shot(index) => _ = shots.insert(index),
                Place::Image(index) => _ = without_image.remove(&index),
            }
        }
        Fit { cut, lists, shots, without_image }
    }
}

fn too_small(error: TooSmall) -> Refusal {
    Refusal::new(Code::BudgetTooSmall, error.to_string())
}

/// Returns the cost of a text, which may be long.
async fn cost(text: &Bytes, texts: &Texts<'_>, turns: &mut Turns) -> Result<Cost, ServiceError> {
    let (items, text) = (texts.items(), text.clone());
    turns.make(text.len() as u64, move || items.cost(&text)).await
}

impl Shot {
    /// Returns true if the screenshot shows an image, or an address that the model reads as an image.
    fn is_image(&self) -> bool {
        match self.shows {
            Shows::Nothing | Shows::Instead => false,
            Shows::Value => is_address(&image_value(&self.entry.item)),
            Shows::Original
            | Shows::Image(_)
            | Shows::OfText { .. }
            | Shows::Address { .. }
            | Shows::Undecided => true,
        }
    }
}

impl Texts<'_> {
    /// Returns the cost of a screenshot besides its metadata. While the form of its image is undecided, this is the
    /// maximum: the image may turn out to be invalid.
    pub(super) fn image_cost(&self, shot: &Shot) -> Cost {
        let stored = shot.entry.item.image();
        match &shot.shows {
            Shows::Nothing => Cost::default(),
            Shows::Instead => self.cost(self.instead(&shot.entry).as_bytes()),
            Shows::Value => self.value_cost(&image_value(&shot.entry.item)),
            _ if self.syntax.is_none() => self.cost_as_text(shot),
            Shows::OfText { size, .. } | Shows::Image(ShownImage::Made { size, .. }) => {
                self.estimator.image(Some(*size))
            }
            Shows::Original | Shows::Image(ShownImage::Stored { .. }) => {
                self.estimator.image(stored.and_then(|image| image.size))
            }
            Shows::Address { .. } | Shows::Undecided => {
                let size = stored.and_then(|image| image.size);
                self.estimator.image(size.map(|size| shot.bounds.fit(size)))
            }
        }
    }

    /// Returns the cost of an image value that is not stored: an address, or any other text.
    fn value_cost(&self, value: &str) -> Cost {
        if is_address(value) { self.estimator.image(None) } else { self.estimator.text(value) }
    }

    /// Returns the cost of an image in Markdown.
    fn cost_as_text(&self, shot: &Shot) -> Cost {
        let image = shot.entry.item.image();
        let base64 = |bytes: u64| self.estimator.base64(bytes.div_ceil(3) * 4);
        let target = match (&shot.shows, image) {
            (Shows::Image(ShownImage::Made { media_type, bytes, .. }), _) => {
                self.estimator.text(&Image::head_of(media_type)) + base64(*bytes)
            }
            (Shows::Address { max_px, .. }, Some(image)) => {
                self.estimator.text(&self.address(&shot.entry, image, *max_px))
            }
            (_, Some(image)) => self.estimator.text(&image.head) + base64(image.bytes),
            (_, None) => Cost::default(),
        };
        let frame = self.cost(self.image_begin(&shot.entry).as_bytes());
        frame + self.cost(self.image_end().as_bytes()) + target
    }
}

/// Returns true if a model reads the value as the address of an image.
fn is_address(value: &str) -> bool {
    ["\"data:", "\"http:", "\"https:"].iter().any(|begin| value.starts_with(begin))
}
