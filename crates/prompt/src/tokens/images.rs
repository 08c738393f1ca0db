//! Token counts of images, by their providers' rules.

/// `OpenAI` scales images down to fit this square, in pixels,
const OPENAI_FIT: u64 = 2_048;
/// and then until the shorter side has at most this many pixels.
const OPENAI_SHORTER: u64 = 768;
/// The side of a tile, in pixels.
const OPENAI_TILE: u64 = 512;
/// The cost of an image, and of each tile.
const OPENAI_IMAGE: u64 = 85;
const OPENAI_EACH_TILE: u64 = 170;
/// The maximum number of tiles of an image: two by four.
const OPENAI_TILES_MAX: u64 =
    OPENAI_SHORTER.div_ceil(OPENAI_TILE) * OPENAI_FIT.div_ceil(OPENAI_TILE);

/// `OpenAI`'s rule for tiles, in high detail: scaled down to fit 2048 by 2048, then until the shorter side is at
/// most 768; 85 tokens, and 170 for each 512 by 512 tile that is touched.
///
/// So count GPT-4o and GPT-4.1; GPT-5, o1 and o3 take a little less for each. Models that count patches of 32
/// pixels take another number, for large images up to about twice this one, and GPT-4o mini many times as much.
pub(super) fn openai(size: Option<(u32, u32)>) -> u64 {
    let tiles = size.map_or(OPENAI_TILES_MAX, |(width, height)| {
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        let (longer, shorter) = (width.max(height), width.min(height));
        // Both steps shrink by one factor, the smaller of the two, kept as a fraction of whole numbers.
        let by_fit = (OPENAI_FIT, longer);
        let by_shorter = (OPENAI_SHORTER, shorter);
        let (to, from) =
            if OPENAI_FIT * shorter <= OPENAI_SHORTER * longer { by_fit } else { by_shorter };
        let (to, from) = if to < from { (to, from) } else { (1, 1) };
        let along = |side: u64| (side * to).div_ceil(from * OPENAI_TILE);
        along(longer) * along(shorter)
    });
    OPENAI_IMAGE + OPENAI_EACH_TILE * tiles
}

/// The side of a patch of Anthropic's, in pixels.
const ANTHROPIC_PATCH: u64 = 28;
/// The maximum length of the longer side, in pixels.
const ANTHROPIC_LONGER: u64 = 2_576;
/// The maximum number of tokens of an image.
const ANTHROPIC_TOKENS_MAX: u64 = 4_784;

/// Anthropic's rule: a token for each patch of 28 by 28 pixels that is touched, of the largest size of the same
/// aspect that has at most 2,576 pixels on its longer side and at most 4,784 tokens.
///
/// So count its models of high resolution. The others scale down to 1,568 of both and take fewer.
pub(super) fn anthropic(size: Option<(u32, u32)>) -> u64 {
    let Some((width, height)) = size else { return ANTHROPIC_TOKENS_MAX };
    let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    let (longer, shorter) = (width.max(height), width.min(height));
    let tokens = |side: u64| {
        let other = (shorter * side + longer / 2) / longer;
        side.div_ceil(ANTHROPIC_PATCH) * other.max(1).div_ceil(ANTHROPIC_PATCH)
    };
    // Tokens never decrease as the side grows, so a binary search finds the largest side that fits.
    let (mut fits, mut too_long) = (0, longer.min(ANTHROPIC_LONGER) + 1);
    while too_long - fits > 1 {
        let side = fits.midpoint(too_long);
        if tokens(side) <= ANTHROPIC_TOKENS_MAX {
            fits = side;
        } else {
            too_long = side;
        }
    }
    tokens(fits)
}

/// Google's rule since Gemini 3: an image costs what `media_resolution` says, by default 1,120 tokens at any size.
pub(super) const GEMINI: u64 = 1_120;
