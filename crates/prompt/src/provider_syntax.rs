//! The JSON around the texts and images of a prompt, in each format.
//!
//! The forms are those of the providers' own client types: `ChatCompletionContentPartParam` and
//! `ResponseInputContentParam` of `OpenAI`, `ContentBlockParam` of Anthropic, `Part` of Google.

use blackboard_board::{ANTHROPIC, GOOGLE, ImageLimits, OPENAI, PromptFormat};

/// Joins the beginning of an image in the original's format with that of its address.
macro_rules! image_url {
    ($address_begin:literal) => {
        concat!(r#"{"type": "image_url", "image_url": {"url": "#, $address_begin)
    };
}

/// The beginning of an image in the original's format.
pub const IMAGE_URL_BEGIN: &str = image_url!("");

/// The end of an image in the original's format.
pub const IMAGE_URL_END: &str = "}}";

/// The JSON syntax of a prompt's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The beginning of a text.
    pub text_begin: &'static str,
    /// The end of a text.
    pub text_end: &'static str,
    /// The end of a text that marks the provider's cache boundary. `None` if the format has no such mark.
    pub marked_text_end: Option<&'static str>,
    /// The beginning of an image before its base64, with `{media_type}` in place of its type.
    inline_begin: &'static str,
    /// The beginning of an image before its address.
    address_begin: &'static str,
    /// The end of an image.
    pub image_end: &'static str,
    /// The provider's limits for images. `None` for the original's format, which shows what was sent.
    pub image_limits: Option<ImageLimits>,
}

/// The place of an image's media type.
const MEDIA_TYPE: &str = "{media_type}";

/// `OpenAI`'s Chat Completions, also the original's.
const CHAT: Syntax = Syntax {
    text_begin: r#"{"type": "text", "text": ""#,
    text_end: "\"}",
    marked_text_end: None,
    inline_begin: image_url!("\"data:{media_type};base64,"),
    address_begin: image_url!("\""),
    image_end: "\"}}",
    image_limits: None,
};

/// The source of an image for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Base64 within the prompt.
    Inline,
    /// An address that the provider fetches.
    Address,
}

impl Syntax {
    /// Returns the syntax of a format. `None` for Markdown, which is not JSON.
    #[must_use]
    pub const fn of(format: PromptFormat) -> Option<&'static Self> {
        match format {
            PromptFormat::Parts => Some(&CHAT),
            PromptFormat::Responses => Some(&Syntax {
                text_begin: r#"{"type": "input_text", "text": ""#,
                inline_begin: r#"{"type": "input_image", "detail": "auto", "image_url": "data:{media_type};base64,"#,
                address_begin: r#"{"type": "input_image", "detail": "auto", "image_url": ""#,
                image_end: "\"}",
                image_limits: Some(OPENAI),
                ..CHAT
            }),
            PromptFormat::Anthropic => Some(&Syntax {
                marked_text_end: Some("\", \"cache_control\": {\"type\": \"ephemeral\"}}"),
                inline_begin: r#"{"type": "image", "source": {"type": "base64", "media_type": "{media_type}", "data": ""#,
                address_begin: r#"{"type": "image", "source": {"type": "url", "url": ""#,
                image_limits: Some(ANTHROPIC),
                ..CHAT
            }),
            PromptFormat::Gemini => Some(&Syntax {
                text_begin: r#"{"text": ""#,
                inline_begin: r#"{"inlineData": {"mimeType": "{media_type}", "data": ""#,
                address_begin: r#"{"fileData": {"mimeType": "{media_type}", "fileUri": ""#,
                image_limits: Some(GOOGLE),
                ..CHAT
            }),
            PromptFormat::Markdown => None,
        }
    }

    /// The beginning of an image, before its base64 or address.
    #[must_use]
    pub fn image_begin(&self, media_type: &str, source: Source) -> String {
        let begin = match source {
            Source::Inline => self.inline_begin,
            Source::Address => self.address_begin,
        };
        begin.replace(MEDIA_TYPE, media_type)
    }

    /// The media types that the provider accepts. Empty if it accepts all.
    #[must_use]
    pub fn media_types(&self) -> &'static [&'static str] {
        self.image_limits.map_or(&[], |limits| limits.media_types)
    }
}
