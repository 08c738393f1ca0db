//! Formats of prompts, one row each.

use serde::{Deserialize, Serialize};

use crate::Tokenizer;

macro_rules! prompt_formats {
    ($($(#[$attribute:meta])+ $format:ident $name:literal $tokenizer:ident $told:literal;)+) => {
        /// The format of a prompt, by provider.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum PromptFormat {
            $($(#[$attribute])+ #[serde(rename = $name)] $format,)+
        }

        impl PromptFormat {
            /// All formats, by name.
            pub const NAMED: [(&str, Self); [$($name),+].len()] = [$(($name, Self::$format)),+];

            /// Returns the family of tokenizers of the models that read the format.
            #[must_use]
            pub const fn tokenizer(self) -> Tokenizer {
                match self {
                    $(Self::$format => Tokenizer::$tokenizer,)+
                }
            }

            /// Returns what the format is, for the help of commands.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$format => $told,)+
                }
            }
        }
    };
}

prompt_formats! {
    /// The content parts of `OpenAI`'s Chat Completions, as in the original.
    #[default]
    Parts "parts" OpenAi "A message's content in OpenAI's Chat Completions";
    /// The input items of `OpenAI`'s Responses.
    Responses "responses" OpenAi "OpenAI's Responses";
    /// The content blocks of Anthropic's Messages.
    Anthropic "anthropic" Anthropic "Anthropic's Messages";
    /// The parts of Google's Gemini.
    Gemini "gemini" Gemini "Google's Gemini";
    /// Text for people, and for models without vision.
    Markdown "markdown" Other "A text for people";
}
