//! What each part of a prompt costs, and what may be left out of it, in which order.
//!
//! First screenshots lose their images, then the oldest steps of the trajectories go, those of the memories, requests
//! and answered questions; at last whole screenshots. The state and open questions never go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::yield_now;

use super::picked::Picked;
use super::plan::{Plan, Planned, Shot, Shows};
use super::texts::Texts;
use crate::board::{Board, Entry, Image, LogName, Run, TextKeys, Timestamp, is_open};
use crate::prompt::{Cost, Kind, Step, image_value};
use crate::service::ShownImage;
use crate::thumbnail::scaled;

/// What a prompt costs, and what may be left out of it.
pub(super) struct Weighing {
    pub(super) cost: Cost,
    /// What may go, in the order in which it goes.
    pub(super) steps: Vec<Step>,
    /// What each of them is.
    places: Vec<Place>,
}

/// Something that may go: which part it is in, and which entry of the log, or which screenshot of those planned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) part: usize,
    pub(super) index: usize,
}

/// Something that may go, with what orders it.
struct Droppable {
    kind: Kind,
    at: Timestamp,
    place: Place,
    saves: Cost,
    instead: Cost,
    again: bool,
}

impl Weighing {
    pub(super) async fn of(plan: &Plan, board: &Arc<Board>, texts: &Texts<'_>) -> Self {
        let mut cost = texts.cost(texts.opening().as_bytes());
        let mut droppable = Vec::new();
        for (part, planned) in plan.parts.iter().enumerate() {
            cost += match planned {
                Planned::List(log, picked) => {
                    list(part, log, picked, board, texts, &mut droppable).await
                }
                Planned::Screenshots(shots) => screenshots(part, shots, texts, &mut droppable),
                Planned::State => texts.cost(texts.state_writer()(board).as_bytes()),
            };
        }
        // Stable: of one kind and time, as they are shown.
        droppable.sort_by_key(|dropped| (rank(dropped.kind), dropped.at));
        let step = |d: &Droppable| Step {
            kind: d.kind,
            saves: d.saves,
            instead: d.instead,
            again: d.again,
        };
        let steps = droppable.iter().map(step).collect();
        Self { cost, steps, places: droppable.iter().map(|dropped| dropped.place).collect() }
    }

    /// What the first so many of the steps are.
    pub(super) fn places(&self, count: usize) -> BTreeSet<Place> {
        self.places.iter().take(count).copied().collect()
    }

    /// Leaves the first so many of the steps out of a plan.
    pub(super) fn leave_out(&self, plan: &mut Plan, count: usize) {
        let mut gone: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (step, place) in self.steps.iter().zip(&self.places).take(count) {
            match (step.kind, plan.parts.get_mut(place.part)) {
                (Kind::Image, Some(Planned::Screenshots(shots))) => {
                    if let Some(shot) = shots.get_mut(place.index) {
                        shot.shows = Shows::Instead;
                    }
                }
                _ => gone.entry(place.part).or_default().push(place.index),
            }
        }
        for (part, mut indexes) in gone {
            indexes.sort_unstable();
            match plan.parts.get_mut(part) {
                Some(Planned::List(_, picked)) => {
                    *picked = std::mem::take(picked).without(&indexes);
                }
                Some(Planned::Screenshots(shots)) => {
                    let mut index = 0..;
                    shots.retain(|_| {
                        index.next().is_none_or(|index| indexes.binary_search(&index).is_err())
                    });
                }
                Some(Planned::State) | None => {}
            }
        }
    }
}

const fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Image => 0,
        Kind::Trajectory => 1,
        Kind::MemoryStep => 2,
        Kind::Request => 3,
        Kind::Question => 4,
        Kind::Screenshot => 5,
    }
}

/// What a list costs.
async fn list(
    part: usize,
    log: &LogName,
    picked: &Picked,
    board: &Arc<Board>,
    texts: &Texts<'_>,
    droppable: &mut Vec<Droppable>,
) -> Cost {
    let frame =
        texts.cost(texts.list_begin(log).as_bytes()) + texts.cost(texts.list_end().as_bytes());
    let Some(entries) = board.log(log) else { return frame };
    let (keys, keeps) = texts.wishes.keys_of(log);
    let kind = match log {
        LogName::Questions => Kind::Question,
        LogName::Requests => Kind::Request,
        LogName::Trajectories => Kind::Trajectory,
        LogName::Memory(_) => Kind::MemoryStep,
        LogName::Screenshots => Kind::Screenshot,
    };
    let (mut cost, mut stay, first) = (frame, 0_usize, droppable.len());
    let mut indexes = picked.indexes().collect::<Vec<_>>().into_iter();
    for run in picked.runs(entries) {
        let kept = texts.kept(&run, &keys, keeps);
        let costs = kept.map_or_else(
            || texts.costs_of_made(&run, &keys),
            |kept| kept.each().map(|text| texts.cost(&text)).collect(),
        );
        for ((entry, saves), index) in run.entries().zip(costs).zip(indexes.by_ref()) {
            cost += saves;
            if kind == Kind::Question && is_open(&entry.item) {
                stay += 1;
            } else {
                let place = Place { part, index };
                let (at, instead) = (entry.at, Cost::default());
                droppable.push(Droppable { kind, at, place, saves, instead, again: false });
            }
        }
        // Others have their turn.
        yield_now().await;
    }
    let comma = texts.cost(texts.comma().as_bytes());
    let has_items = stay > 0 || droppable.len() > first;
    if let (0, Some(last)) = (stay, droppable.get_mut(first..).and_then(<[_]>::last_mut)) {
        // The comma of the list's first item is not shown: when the last one goes, there is none left.
        last.saves = last.saves - comma;
    }
    if has_items { cost - comma } else { cost }
}

/// What screenshots cost.
fn screenshots(
    part: usize,
    shots: &[Shot],
    texts: &Texts<'_>,
    droppable: &mut Vec<Droppable>,
) -> Cost {
    let begin = texts.cost(texts.screenshots_begin().as_bytes());
    let cost = shots.iter().enumerate().map(|(index, shot)| {
        let (place, at) = (Place { part, index }, shot.entry.at);
        let metadata = texts.cost(&texts.metadata(&shot.entry, shot.metadata.clone()));
        let metadata = metadata + texts.cost(texts.screenshot_end().as_bytes());
        let shown = texts.image_cost(shot);
        let mut saves = metadata + shown;
        let instead = texts.cost(texts.instead(&shot.entry).as_bytes());
        // A line that takes as much as a small image is no gain.
        let is_replaced = shot.is_image() && instead < shown;
        if is_replaced {
            let kind = Kind::Image;
            droppable.push(Droppable { kind, at, place, saves: shown, instead, again: false });
            saves = metadata + instead;
        }
        let (kind, instead) = (Kind::Screenshot, Cost::default());
        droppable.push(Droppable { kind, at, place, saves, instead, again: is_replaced });
        metadata + shown
    });
    begin + cost.sum()
}

impl Shot {
    /// Whether it shows an image, or what the model is to take for one.
    fn is_image(&self) -> bool {
        match self.shows {
            Shows::Nothing | Shows::Instead => false,
            Shows::Value => is_address(&image_value(&self.entry.item)),
            Shows::Original | Shows::Image(_) | Shows::Address { .. } | Shows::Undecided => true,
        }
    }
}

impl Texts<'_> {
    /// What a screenshot costs besides its metadata. Where it is not known yet how its image is shown, at the
    /// most: there may turn out to be none.
    pub(super) fn image_cost(&self, shot: &Shot) -> Cost {
        let stored = shot.entry.item.image();
        match &shot.shows {
            Shows::Nothing => Cost::default(),
            Shows::Instead => self.cost(self.instead(&shot.entry).as_bytes()),
            Shows::Value => self.value_cost(&image_value(&shot.entry.item)),
            _ if self.syntax.is_none() => self.cost_as_text(shot),
            Shows::Image(ShownImage::Made { size, .. }) => self.estimator.image(Some(*size)),
            Shows::Original | Shows::Image(ShownImage::Stored { .. }) => {
                self.estimator.image(stored.and_then(|image| image.size))
            }
            Shows::Address { .. } | Shows::Undecided => {
                let size = stored.and_then(|image| image.size);
                let size = match self.wishes.max_px {
                    Some(max_px) => size.map(|size| scaled(size, max_px.get())),
                    None => size,
                };
                self.estimator.image(size)
            }
        }
    }

    /// What the items of a run cost.
    fn costs_of_made(&self, run: &Run, keys: &TextKeys) -> Vec<Cost> {
        let (mut item, mut text) = (self.item_writer(), String::new());
        let cost = |entry: &Arc<Entry>| {
            text.clear();
            item(entry, keys, &mut text);
            self.cost(text.as_bytes())
        };
        run.entries().map(cost).collect()
    }

    /// What stands in the place of an image: its address, or a text like any other.
    fn value_cost(&self, value: &str) -> Cost {
        if is_address(value) { self.estimator.image(None) } else { self.estimator.text(value) }
    }

    /// An image that is part of a text.
    fn cost_as_text(&self, shot: &Shot) -> Cost {
        let image = shot.entry.item.image();
        let bytes = match (&shot.shows, image) {
            (Shows::Image(ShownImage::Made { media_type, bytes, .. }), _) => {
                Image::head_of(media_type).len() as u64 + bytes.div_ceil(3) * 4
            }
            (Shows::Address { .. }, Some(image)) => self.address(&shot.entry, image).len() as u64,
            (_, Some(image)) => image.data_url_bytes(),
            (_, None) => 0,
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let frame = self.cost(self.image_begin(&shot.entry).as_bytes());
        frame + self.cost(self.image_end().as_bytes()) + Cost::of_bytes(bytes)
    }
}

/// Whether a model would look for an image there.
fn is_address(value: &str) -> bool {
    ["\"data:", "\"http:", "\"https:"].iter().any(|begin| value.starts_with(begin))
}
