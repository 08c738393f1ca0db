//! Texts of a prompt around its items, in JSON or Markdown.

use std::num::NonZeroU32;

use exact_json::python::Characters;

use blackboard_address::image_url;
use blackboard_board::{
    Board, Entry, Image, ImageLimits, LogName, PromptFormat, PromptPart, SessionName,
};
use blackboard_prompt::{
    Cost, Estimator, LIST_COMMA, LIST_END, LeftOut, Syntax, heading, instead_of_image, list_begin,
    literal, markdown, opening, state_text,
};

use super::items::Items;
use super::query::PromptSpec;
use crate::signed_url::ImageAddresses;

/// Renders the texts of a prompt. In the JSON formats, each text is the inside of a string literal.
pub(super) struct Texts<'a> {
    session: &'a SessionName,
    pub(super) spec: &'a PromptSpec,
    addresses: &'a ImageAddresses,
    /// The JSON syntax; `None` for Markdown.
    pub(super) syntax: Option<&'static Syntax>,
    pub(super) estimator: Estimator,
}

impl<'a> Texts<'a> {
    pub(super) fn new(
        session: &'a SessionName,
        spec: &'a PromptSpec,
        addresses: &'a ImageAddresses,
    ) -> Self {
        let (syntax, estimator) = (Syntax::of(spec.format), Estimator::of(spec.tokenizer));
        Self { session, spec, addresses, syntax, estimator }
    }

    /// Returns the media types that the provider accepts. Empty if all are.
    pub(super) fn media_types(&self) -> &'static [&'static str] {
        self.syntax.map_or(&[], Syntax::media_types)
    }

    /// Returns the limits of images; `None` if they are shown as they were sent.
    pub(super) fn limits(&self) -> Option<ImageLimits> {
        self.syntax.and_then(|syntax| syntax.image_limits)
    }

    /// Returns the form of items.
    pub(super) fn items(&self) -> Items {
        Items { characters: self.characters(), estimator: self.estimator }
    }

    /// Returns the form of characters in JSON; `None` for Markdown.
    fn characters(&self) -> Option<Characters> {
        self.syntax.map(|_| self.spec.characters)
    }

    /// Returns the cost of a text.
    pub(super) fn cost(&self, text: &[u8]) -> Cost {
        self.items().cost(text)
    }

    pub(super) fn opening(&self) -> String {
        let opening = opening(&self.spec.headings);
        match self.syntax {
            Some(_) => literal(opening),
            None => title("#", opening),
        }
    }

    fn heading(&self, part: &PromptPart) -> String {
        heading(part, &self.spec.headings)
    }

    pub(super) fn list_begin(&self, log: &LogName) -> String {
        let heading = self.heading(&PromptPart::Log(log.clone()));
        match self.syntax {
            Some(_) => list_begin(&heading),
            None => section(&heading),
        }
    }

    pub(super) const fn list_end(&self) -> &'static str {
        match self.syntax {
            Some(_) => LIST_END,
            None => "",
        }
    }

    /// Returns the comma that begins each item's text. It is not shown for the first item of a list.
    pub(super) const fn comma(&self) -> &'static str {
        match self.syntax {
            Some(_) => LIST_COMMA,
            None => "",
        }
    }

    /// Returns the text before the first screenshot.
    pub(super) fn screenshots_begin(&self) -> String {
        match self.syntax {
            Some(_) => String::new(),
            None => section(&self.heading(&PromptPart::Log(LogName::Screenshots))),
        }
    }

    /// Returns the text after a screenshot.
    pub(super) const fn screenshot_end(&self) -> &'static str {
        match self.syntax {
            Some(_) => "",
            None => "\n",
        }
    }

    /// Returns the text before an image in Markdown.
    pub(super) fn image_begin(&self, entry: &Entry) -> String {
        format!(" ![screenshot {}](<", entry.seq)
    }

    /// Returns the text after an image in Markdown.
    pub(super) const fn image_end(&self) -> &'static str {
        ">)"
    }

    /// Returns the address of a screenshot's image, for the model provider.
    pub(super) fn address(
        &self,
        entry: &Entry,
        image: &Image,
        max_px: Option<NonZeroU32>,
    ) -> String {
        self.addresses.of_image(entry.seq, image, max_px)
    }

    /// Returns the rest of a screenshot's line if its image is not shown.
    pub(super) fn instead(&self, entry: &Entry) -> String {
        // This path changes only with the entry, unlike the addresses of shown images.
        let address = entry.item.image().map(|_| image_url(self.session, entry.seq));
        match (self.syntax, address) {
            (Some(_), address) => literal(&instead_of_image(address.as_deref())),
            (None, Some(address)) => format!(" [image not shown](<{address}>)"),
            (None, None) => String::new(),
        }
    }

    /// Returns a function that renders the state.
    pub(super) fn state_writer(&self) -> impl FnOnce(&Board) -> String + use<> {
        let (heading, characters) = (self.heading(&PromptPart::State), self.characters());
        move |board| {
            let document = board.state().text();
            if let Some(characters) = characters {
                return state_text(&heading, &document, characters);
            }
            let mut text = section(&heading);
            markdown::item(&document, &None, &mut text);
            text
        }
    }

    /// Returns the line that gives the number of parts left out.
    pub(super) fn left_out(&self, left_out: &LeftOut) -> String {
        let line = left_out.line(self.spec.max_tokens.unwrap_or_default());
        match self.syntax {
            Some(_) => literal(&line),
            None => {
                let mut text = "\n".to_owned();
                markdown::text(&line, &mut text);
                text.push('\n');
                text
            }
        }
    }

    /// Returns true if the end of the prefix to cache is to be marked.
    pub(super) fn marks(&self) -> bool {
        let marked = self.syntax.and_then(|syntax| syntax.marked_text_end);
        self.spec.cache_marks && marked.is_some()
    }

    /// Returns true if the format is the original's.
    pub(super) fn is_original(&self) -> bool {
        self.spec.format == PromptFormat::Parts
    }
}

/// Renders the beginning of a Markdown section.
fn section(heading: &str) -> String {
    let mut text = "\n".to_owned();
    text.push_str(&title("##", heading));
    text.push('\n');
    text
}

/// Renders a Markdown heading, without the brackets of the original's headings.
fn title(level: &str, heading: &str) -> String {
    let bare = heading.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let bare = bare.map_or(heading, |bare| bare.strip_suffix(':').unwrap_or(bare));
    let mut text = format!("{level} ");
    markdown::text(bare, &mut text);
    text.push('\n');
    text
}
