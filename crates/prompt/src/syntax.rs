//! The JSON around the texts and images of a prompt, in each format.
//!
//! The forms are those of the providers' own client types: `ChatCompletionContentPartParam` and
//! `ResponseInputContentParam` of `OpenAI`, `ContentBlockParam` of Anthropic, `Part` of Google.

use blackboard_board::{ANTHROPIC, GOOGLE, Image, ImageLimits, OPENAI, PromptFormat};

/// The beginning of an image in the original's format.
pub const IMAGE_URL_BEGIN: &str = "{\"type\": \"image_url\", \"image_url\": {\"url\": ";

/// The end of an image in the original's format.
pub const IMAGE_URL_END: &str = "}}";

/// The JSON syntax of a prompt's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `OpenAI`'s Chat Completions, also the original's.
    Chat,
    /// `OpenAI`'s Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's Gemini.
    Gemini,
}

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
    pub const fn of(format: PromptFormat) -> Option<Self> {
        match format {
            PromptFormat::Parts => Some(Self::Chat),
            PromptFormat::Responses => Some(Self::Responses),
            PromptFormat::Anthropic => Some(Self::Messages),
            PromptFormat::Gemini => Some(Self::Gemini),
            PromptFormat::Markdown => None,
        }
    }

    /// The beginning of a text.
    #[must_use]
    pub const fn text_begin(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "{\"type\": \"text\", \"text\": \"",
            Self::Responses => "{\"type\": \"input_text\", \"text\": \"",
            Self::Gemini => "{\"text\": \"",
        }
    }

    /// The end of a text.
    #[must_use]
    pub const fn text_end(self) -> &'static str {
        "\"}"
    }

    /// Returns the end of a text that marks the provider's cache boundary. `None` if the format has no such mark.
    #[must_use]
    pub const fn marked_text_end(self) -> Option<&'static str> {
        match self {
            Self::Messages => Some("\", \"cache_control\": {\"type\": \"ephemeral\"}}"),
            Self::Chat | Self::Responses | Self::Gemini => None,
        }
    }

    /// The beginning of an image, before its base64 or address.
    #[must_use]
    pub fn image_begin(self, media_type: &str, source: Source) -> String {
        let begin = match (self, source) {
            (Self::Chat, _) => format!("{IMAGE_URL_BEGIN}\""),
            (Self::Responses, _) => {
                "{\"type\": \"input_image\", \"detail\": \"auto\", \"image_url\": \"".to_owned()
            }
            (Self::Messages, Source::Inline) => format!(
                "{{\"type\": \"image\", \"source\": {{\"type\": \"base64\", \"media_type\": \"{media_type}\", \"data\": \""
            ),
            (Self::Messages, Source::Address) => {
                "{\"type\": \"image\", \"source\": {\"type\": \"url\", \"url\": \"".to_owned()
            }
            (Self::Gemini, Source::Inline) => {
                format!("{{\"inlineData\": {{\"mimeType\": \"{media_type}\", \"data\": \"")
            }
            (Self::Gemini, Source::Address) => {
                format!("{{\"fileData\": {{\"mimeType\": \"{media_type}\", \"fileUri\": \"")
            }
        };
        match (self, source) {
            (Self::Chat | Self::Responses, Source::Inline) => begin + &Image::head_of(media_type),
            (Self::Messages | Self::Gemini, _) | (_, Source::Address) => begin,
        }
    }

    /// The end of an image.
    #[must_use]
    pub const fn image_end(self) -> &'static str {
        match self {
            Self::Responses => "\"}",
            Self::Chat | Self::Messages | Self::Gemini => "\"}}",
        }
    }

    /// The media types that the provider accepts. Empty if it accepts all.
    #[must_use]
    pub const fn media_types(self) -> &'static [&'static str] {
        match self.image_limits() {
            Some(limits) => limits.media_types,
            None => &[],
        }
    }

    /// Returns the provider's limits for images. `None` for the original's format, which shows what was sent.
    #[must_use]
    pub const fn image_limits(self) -> Option<ImageLimits> {
        match self {
            Self::Chat => None,
            Self::Responses => Some(OPENAI),
            Self::Messages => Some(ANTHROPIC),
            Self::Gemini => Some(GOOGLE),
        }
    }
}
