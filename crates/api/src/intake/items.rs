//! Parsing of items: JSON, JSON lines, images.

use std::collections::BTreeMap;
use std::str::Utf8Error;
use std::sync::Arc;

use blackboard_thumbnail::{IMAGE_TYPES, media_type as media_type_of, recognise};
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::json_document;
use super::query::{Flag, Text, queries};
use super::trajectory_key::keyed;
use crate::params::{Params, invalid};
use crate::refusal::Fault;
use crate::refusal::Refusal;
use crate::refusal::{Place, invalid_item, refused as refused_by_rule};
use crate::schema::shapes::{json_text, last_k};
use blackboard_board::json;
use blackboard_board::json::{Document, Kind};
use blackboard_board::{
    BLOB_MEMBER, BlobRef, COMMIT_ITEMS_MAX, Code, IMAGE_MEMBER, ImageWarning, InvalidItem, Item,
    LogName, Rejected, Screenshot,
};
use blackboard_service::ImageBytes;

/// The maximum number of skipped lines to list; further lines are only counted.
const SKIPPED_LISTED_MAX: usize = 1000;

/// The maximum number of warnings in a response.
const WARNINGS_MAX: usize = 100;

/// The items of a request, and their images, which are stored first.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    /// The items, in the order sent.
    pub items: Vec<Item>,
    /// The images that the items refer to.
    pub images: Vec<ImageBytes>,
    /// Remarks for the response.
    pub remarks: Remarks,
    /// The places of the items that refer to blobs, by the index of the item.
    pub blob_places: BTreeMap<usize, Place>,
    /// The key of steps, if `trajectory_key` was sent.
    key: Option<String>,
}

/// Remarks on a body that was accepted.
#[derive(Clone, Debug, Default)]
pub struct Remarks {
    /// The skipped lines, if `lenient` was requested.
    pub skipped: Option<SkippedLines>,
    /// The first strings in `image_str` that models are not shown, or not as they are.
    pub warnings: Vec<Fault>,
}

/// The skipped lines.
#[derive(Clone, Debug)]
pub struct SkippedLines {
    /// The first of them.
    pub listed: Arc<[Skipped]>,
    /// The number of all.
    pub count: usize,
}

/// A skipped line.
#[derive(Debug, Serialize, ToSchema)]
pub struct Skipped {
    /// The number of the line, from 1.
    line: usize,
    /// The reason why the line is not an item.
    detail: String,
}

queries! {
    /// The options for reading the body of a POST.
    #[derive(Default)]
    pub BodyReading {
        /// Skip lines that are not items, and list the skipped lines in the answer
        lenient: Flag = false,
        /// Append only the last N lines; -1 appends all
        last_k via lines_left: usize => last_k(),
        /// In trajectories and memories, an object without `key` is stored with this key, any other value as
        /// `{"key":…,"value":…}`
        trajectory_key: Text,
        /// With the bytes of an image: its metadata, as JSON
        metadata: Text => json_text(),
        /// With the bytes of an image: a label, which the server never opens
        image_path: Text,
    }
}

/// Takes the number of lines to append, or -1 for all.
fn lines_left(params: &mut Params, name: &'static str) -> Result<Option<usize>, Refusal> {
    match params.text(name)?.as_deref() {
        None | Some("-1") => Ok(None),
        Some(text) => {
            let k = text.parse().ok().filter(|k| *k >= 1 && !text.starts_with('+'));
            let why = "must be a whole number of at least 1, or -1 for all";
            k.map(Some).ok_or_else(|| invalid(name, why))
        }
    }
}

impl Intake {
    /// Creates an empty intake that adds this key to steps.
    pub fn keyed(key: Option<String>) -> Self {
        Self { key, ..Self::default() }
    }

    fn take_at(
        &mut self,
        place: Place,
        log: &LogName,
        document: &Document<'_>,
    ) -> Result<(), InvalidItem> {
        self.note_blobs(place, document);
        match log {
            LogName::Screenshots => {
                let screenshot = Screenshot::from_json(document.text())?;
                self.add(place, screenshot);
            }
            LogName::Questions | LogName::Requests | LogName::Messages(_) => {
                self.items.push(Item::from_document(document)?);
            }
            LogName::Trajectories | LogName::Memory(_) => self.items.push(match &self.key {
                Some(key) => keyed(key, document.text())?,
                None => Item::from_document(document)?,
            }),
        }
        Ok(())
    }

    /// Takes one item.
    pub fn take(&mut self, log: &LogName, document: &Document<'_>) -> Result<(), InvalidItem> {
        self.take_at(Place::default(), log, document)
    }

    fn warn(&mut self, place: Place, why: ImageWarning) {
        if self.remarks.warnings.len() < WARNINGS_MAX {
            let pointer = Some(place.pointer(&format!("/{IMAGE_MEMBER}")));
            let detail = why.to_string();
            self.remarks.warnings.push(Fault { pointer, line: place.line, detail });
        }
    }

    /// Records the place of the next item if it refers to a blob.
    fn note_blobs(&mut self, place: Place, document: &Document<'_>) {
        if document.may_have_name(BLOB_MEMBER) && BlobRef::all_in(document.text()).next().is_some()
        {
            self.blob_places.insert(self.items.len(), place);
        }
    }

    fn add(&mut self, place: Place, screenshot: Screenshot) {
        if let Some(why) = screenshot.warning {
            self.warn(place, why);
        }
        let (item, images) = ImageBytes::split(screenshot);
        self.items.push(item);
        self.images.extend(images);
    }

    /// Takes each element of an array as an item.
    pub fn take_array(
        &mut self,
        log: &LogName,
        array: &Document<'_>,
        member: Option<&'static str>,
    ) -> Result<(), Refusal> {
        for (index, element) in array.elements().enumerate() {
            if index == COMMIT_ITEMS_MAX {
                return Err(too_many(array.elements().count()));
            }
            let place = Place { index: Some(index), line: None, member };
            self.take_at(place, log, &element).map_err(|invalid| invalid_item(&invalid, place))?;
        }
        Ok(())
    }

    /// Takes a JSON document: an item or an array of items.
    pub fn take_json(&mut self, log: &LogName, bytes: &[u8]) -> Result<(), Refusal> {
        let document = json_document(bytes)?;
        if document.kind() == Kind::Array {
            return self.take_array(log, &document, None);
        }
        let place = Place::default();
        self.take_at(place, log, &document).map_err(|invalid| invalid_item(&invalid, place))
    }

    /// Takes JSON lines. A line ends as in a Python text file, with `\n`, `\r\n` or `\r`.
    pub fn take_lines(
        &mut self,
        log: &LogName,
        bytes: &[u8],
        reading: &BodyReading,
    ) -> Result<(), Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error))?;
        let lines = lines(text);
        let first = lines.len().saturating_sub(reading.last_k.unwrap_or(usize::MAX));
        let (mut listed, mut count) = (Vec::new(), 0);
        if lines.len() - first > COMMIT_ITEMS_MAX {
            return Err(too_many(lines.len() - first));
        }
        for (index, line) in lines.iter().enumerate().skip(first) {
            let number = index + 1;
            let Err(problem) = self.take_line(log, line, number, reading.lenient) else { continue };
            if !reading.lenient {
                return Err(problem);
            }
            count += 1;
            if listed.len() < SKIPPED_LISTED_MAX {
                listed.push(Skipped { line: number, detail: problem.detail().to_owned() });
            }
        }
        self.remarks.skipped =
            reading.lenient.then(|| SkippedLines { listed: listed.into(), count });
        Ok(())
    }

    fn take_line(
        &mut self,
        log: &LogName,
        line: &str,
        number: usize,
        lenient: bool,
    ) -> Result<(), Refusal> {
        let line = if lenient { strip(line) } else { line };
        let document = Document::parse(line.as_bytes()).map_err(|malformed| {
            let why = malformed.reason.to_string();
            let detail = format!("line {number}, column {}: {why}", malformed.column);
            let fault = Fault { pointer: None, line: Some(number), detail: why };
            Refusal::new(Code::InvalidJson, detail).fault(fault)
        })?;
        let place = Place { index: None, line: Some(number), member: None };
        self.take_at(place, log, &document).map_err(|invalid| invalid_item(&invalid, place))
    }

    /// Takes the bytes of an image as a screenshot.
    pub fn take_image(
        &mut self,
        media_type: &str,
        bytes: Vec<u8>,
        metadata: Option<&str>,
        image_path: &str,
    ) -> Result<(), Refusal> {
        let wanted =
            IMAGE_TYPES.iter().find(|(name, _)| *name == media_type).map(|(_, kind)| *kind);
        if wanted.is_none() || recognise(&bytes).map(|(kind, _)| kind) != wanted {
            let detail = match media_type_of(&bytes).filter(|found| *found != media_type) {
                Some(found) => {
                    format!("the bytes are an image of type '{found}', not '{media_type}'")
                }
                None if wanted.is_none() => {
                    let known: Vec<&str> = IMAGE_TYPES.iter().map(|(name, _)| *name).collect();
                    format!("the bytes are not an image of a known kind: {}", known.join(", "))
                }
                None => format!("the bytes are not an image of type '{media_type}'"),
            };
            return Err(Refusal::new(Code::NotAnImage, detail));
        }
        let metadata = metadata.map(|text| json::syntax(text.as_bytes())).transpose();
        let metadata = metadata.map_err(|malformed| {
            let hint = "a JSON string has quotes, such as \"Print dialog\"";
            invalid("metadata", format!("must be JSON: {}; {hint}", malformed.reason))
        })?;
        let screenshot = Screenshot::from_bytes(media_type, bytes, metadata, image_path);
        let screenshot = screenshot.map_err(|invalid| invalid_item(&invalid, Place::default()))?;
        self.add(Place::default(), screenshot);
        Ok(())
    }
}

/// Returns the refusal of too many items, before they take space in the queue.
fn too_many(items: usize) -> Refusal {
    refused_by_rule(&Rejected::TooManyItems { items, max: COMMIT_ITEMS_MAX }, None)
}

/// Returns the refusal of a body that is not UTF-8, with the line of the first invalid byte.
fn not_utf8(bytes: &[u8], error: Utf8Error) -> Refusal {
    let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    let why = "the bytes are not UTF-8";
    let fault = Fault { pointer: None, line: Some(line), detail: why.to_owned() };
    let detail = format!("line {line}, column {column}: {why}");
    Refusal::new(Code::InvalidJson, detail).fault(fault)
}

/// Splits a text into lines. An empty rest after the last line end is not a line.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(['\n', '\r']) {
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines.push(line);
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// Removes the whitespace around a line, by the definition of Python's `str.strip`.
fn strip(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}
