//! Published limits of providers for the images of one request.

/// The limits of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// The provider's name.
    pub provider: &'static str,
    /// Media types of images.
    pub media_types: &'static [&'static str],
    /// Images of a request.
    pub count: usize,
    /// Pixels of an image. `None` if the provider scales large images by itself.
    pub sides: Option<Sides>,
    /// Bytes of one image, before it is base64.
    pub bytes: u64,
    /// Bytes of the base64 of all images: three quarters of a request, which has texts too.
    pub bytes_of_all: u64,
}

/// The limits of an image's longer side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Pixels among few images.
    pub px: u32,
    /// The largest number of images that are few.
    pub few: usize,
    /// Pixels among more images than these.
    pub px_of_many: u32,
}

/// The media types that every provider accepts.
pub const COMMON_IMAGE_TYPES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// Anthropic, "Vision" and "API overview: request size limits", read on 2026-11-28: 8,000 pixels, among more than 20 images
/// 2,000; 100 images for a model of 200,000 tokens, which is the lower number; 5 MB of base64 each; requests of 32 MB.
pub const ANTHROPIC: ImageLimits = ImageLimits {
    provider: "Anthropic",
    media_types: &["image/png", "image/jpeg", "image/webp", "image/gif"],
    count: 100,
    sides: Some(Sides { px: 8_000, few: 20, px_of_many: 2_000 }),
    bytes: 5_000_000 / 4 * 3,
    bytes_of_all: 24_000_000,
};

/// `OpenAI`, "Images and vision: image input requirements", read on 2026-11-28: 500 images, 20 MB each, 50 MB of a request. A
/// GIF is accepted unless it moves.
pub const OPENAI: ImageLimits = ImageLimits {
    provider: "OpenAI",
    media_types: &COMMON_IMAGE_TYPES,
    count: 500,
    sides: None,
    bytes: 20_000_000 / 4 * 3,
    bytes_of_all: 37_500_000,
};

/// Google, "Image understanding" of the Gemini API (requests of 20 MB) and of Vertex AI (900 images for the model that takes
/// fewest, files of 7 MB), read on 2026-11-28.
pub const GOOGLE: ImageLimits = ImageLimits {
    provider: "Google",
    media_types: &COMMON_IMAGE_TYPES,
    count: 900,
    sides: None,
    bytes: 7_000_000,
    bytes_of_all: 15_000_000,
};

impl ImageLimits {
    /// The limits of all providers, those that take least first.
    pub const ALL: [Self; 3] = [ANTHROPIC, GOOGLE, OPENAI];

    /// Returns the most pixels of a side among so many images.
    #[must_use]
    pub fn side_among(self, images: usize) -> Option<u32> {
        self.sides.map(|sides| if images > sides.few { sides.px_of_many } else { sides.px })
    }
}
