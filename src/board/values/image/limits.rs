//! What providers take of images in one request, as they publish it.

/// The limits of a provider. A limit that it does not publish is the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// The provider's name.
    pub provider: &'static str,
    /// Images of a request.
    pub count: usize,
    /// Pixels of the longer side.
    pub side: u32,
    /// The number of images up to which `side` holds.
    pub few: usize,
    /// Pixels of the longer side among more images than these.
    pub side_of_many: u32,
    /// Bytes of one image, before it is base64.
    pub bytes: u64,
    /// Bytes of the base64 of all images: three quarters of a request, which has texts too.
    pub bytes_of_all: u64,
}

/// Anthropic, "Vision" and "API overview: request size limits", read on 2026-11-28: 8,000 pixels, among more than 20 images
/// 2,000; 100 images for a model of 200,000 tokens, which is the lower number; 5 MB of base64 each; requests of 32 MB.
pub const ANTHROPIC: ImageLimits = ImageLimits {
    provider: "Anthropic",
    count: 100,
    side: 8_000,
    few: 20,
    side_of_many: 2_000,
    bytes: 5_000_000 / 4 * 3,
    bytes_of_all: 24_000_000,
};

/// `OpenAI`, "Images and vision: image input requirements", read on 2026-11-28: 500 images, 20 MB each, 50 MB of a request. It
/// scales large sides by itself.
pub const OPENAI: ImageLimits = ImageLimits {
    provider: "OpenAI",
    count: 500,
    side: u32::MAX,
    few: usize::MAX,
    side_of_many: u32::MAX,
    bytes: 20_000_000 / 4 * 3,
    bytes_of_all: 37_500_000,
};

/// Google, "Image understanding" of the Gemini API (requests of 20 MB) and of Vertex AI (900 images for the model that takes
/// fewest, files of 7 MB), read on 2026-11-28. It scales large sides by itself.
pub const GOOGLE: ImageLimits = ImageLimits {
    provider: "Google",
    count: 900,
    side: u32::MAX,
    few: usize::MAX,
    side_of_many: u32::MAX,
    bytes: 7_000_000,
    bytes_of_all: 15_000_000,
};

impl ImageLimits {
    /// The limits of all providers, those that take least first.
    pub const ALL: [Self; 3] = [ANTHROPIC, GOOGLE, OPENAI];

    /// Returns the most pixels of a side among so many images.
    #[must_use]
    pub const fn side_among(self, images: usize) -> u32 {
        if images > self.few { self.side_of_many } else { self.side }
    }
}
