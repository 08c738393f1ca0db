//! Families of tokenizers, by which texts are weighed.

/// A family of tokenizers, by provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenizer {
    /// `OpenAI`'s, since GPT-4o.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Google's.
    Gemini,
    /// Any: counts as the one of the families and of common open models that needs most.
    Other,
}

impl Tokenizer {
    /// All families, by name.
    pub const NAMED: [(&str, Self); 4] = [
        ("openai", Self::OpenAi),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("other", Self::Other),
    ];

    /// Returns the family's one of these.
    #[must_use]
    pub fn of_each<T>(self, [openai, anthropic, gemini, other]: [T; 4]) -> T {
        match self {
            Self::OpenAi => openai,
            Self::Anthropic => anthropic,
            Self::Gemini => gemini,
            Self::Other => other,
        }
    }
}
