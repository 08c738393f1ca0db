//! Prompt formats: the text and JSON around items.

use crate::api::address::image_url;
use crate::board::{Board, Entry, Image, LogName, PromptFormat, PromptPart, SessionName};
use crate::prompt::{
    Cost, Estimator, LIST_COMMA, LIST_END, LeftOut, Syntax, heading, instead_of_image, list_begin,
    literal, markdown, opening, state_text,
};

use super::items::Items;
use super::query::PromptSpec;
use crate::api::signed_url::ImageAddresses;

/// How the texts of a prompt are made. Those of the JSON formats are the insides of string literals.
pub(super) struct Texts<'a> {
    session: &'a SessionName,
    pub(super) spec: &'a PromptSpec,
    addresses: &'a ImageAddresses,
    /// Nothing for Markdown.
    pub(super) syntax: Option<Syntax>,
    pub(super) estimator: Estimator,
}

impl<'a> Texts<'a> {
    pub(super) fn new(
        session: &'a SessionName,
        spec: &'a PromptSpec,
        addresses: &'a ImageAddresses,
    ) -> Self {
        let (syntax, estimator) = (Syntax::of(spec.format), Estimator::of(spec.format));
        Self { session, spec, addresses, syntax, estimator }
    }

    /// How items are written.
    pub(super) const fn items(&self) -> Items {
        Items { syntax: self.syntax, estimator: self.estimator }
    }

    /// What it costs to show a text.
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

    /// How many bytes of a list's first item are its comma, which is not shown.
    pub(super) const fn comma(&self) -> &'static str {
        match self.syntax {
            Some(_) => LIST_COMMA,
            None => "",
        }
    }

    /// What comes before the first screenshot.
    pub(super) fn screenshots_begin(&self) -> String {
        match self.syntax {
            Some(_) => String::new(),
            None => section(&self.heading(&PromptPart::Log(LogName::Screenshots))),
        }
    }

    /// What comes after all of a screenshot.
    pub(super) const fn screenshot_end(&self) -> &'static str {
        match self.syntax {
            Some(_) => "",
            None => "\n",
        }
    }

    /// What comes before an image that is part of the text.
    pub(super) fn image_begin(&self, entry: &Entry) -> String {
        format!(" ![screenshot {}](<", entry.seq)
    }

    /// What comes after it.
    pub(super) const fn image_end(&self) -> &'static str {
        ">)"
    }

    /// The address of a screenshot's image, for who is no client of ours.
    pub(super) fn address(&self, entry: &Entry, image: &Image) -> String {
        self.addresses.of_image(entry.seq, image, self.spec.max_px)
    }

    /// What follows a screenshot's metadata where its image is not shown.
    pub(super) fn instead(&self, entry: &Entry) -> String {
        // It stays the same as long as the entry, whatever the addresses of images that are shown.
        let address = entry.item.image().map(|_| image_url(self.session, entry.seq));
        match (self.syntax, address) {
            (Some(_), address) => literal(&instead_of_image(address.as_deref())),
            (None, Some(address)) => format!(" [image not shown](<{address}>)"),
            (None, None) => String::new(),
        }
    }

    /// What writes the state.
    pub(super) fn state_writer(&self) -> impl FnOnce(&Board) -> String + use<> {
        let (heading, is_json) = (self.heading(&PromptPart::State), self.syntax.is_some());
        move |board| {
            let document = board.state().text();
            if is_json {
                return state_text(&heading, &document);
            }
            let mut text = section(&heading);
            markdown::item(&document, &None, &mut text);
            text
        }
    }

    /// The line that says what was left out.
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

    /// Whether a part is to be marked up to which the provider is to cache.
    pub(super) fn marks(&self) -> bool {
        let marked = self.syntax.and_then(Syntax::marked_text_end);
        self.spec.cache_marks && marked.is_some()
    }

    /// Whether it is the original's form.
    pub(super) fn is_original(&self) -> bool {
        self.spec.format == PromptFormat::Parts
    }
}

/// A section of a Markdown text.
fn section(heading: &str) -> String {
    let mut text = "\n".to_owned();
    text.push_str(&title("##", heading));
    text.push('\n');
    text
}

/// A heading of a Markdown text: without the brackets of the original's.
fn title(level: &str, heading: &str) -> String {
    let bare = heading.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let bare = bare.map_or(heading, |bare| bare.strip_suffix(':').unwrap_or(bare));
    let mut text = format!("{level} ");
    markdown::text(bare, &mut text);
    text.push('\n');
    text
}
