//! The check that a model can be shown an image: warnings about those that it is not shown, or not as they are.

use blackboard_thumbnail::{
    Bounds, IMAGE_TYPES, Undecodable, image_type_names, is_cut, probe, recognise,
};

use super::{DataUrl, ImageLimits};

/// The reason why models are not shown a string in `image_str` as it is. The original takes any string, so it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageWarning {
    /// The string has another form.
    #[error(
        "the string is not a data URL of an image, such as data:image/png;base64,…; it was kept as it is"
    )]
    NoDataUrl,
    /// The data URL cannot be decoded.
    #[error("the data of the URL is not base64 (RFC 4648); it was kept as it is")]
    NotBase64,
    /// The bytes are no image that can be shown.
    #[error(
        "models are not shown the bytes, which are not a {}; they were kept as they are, convert the image to show \
         it",
        image_type_names()
    )]
    UnknownKind,
    /// The bytes are another type of image, or none.
    #[error(
        "the bytes are not an image of the type that the data URL names; they were kept as they are"
    )]
    OtherBytes,
    /// The file lacks its end.
    #[error("models are not shown the image: the file is truncated; it was kept as it is")]
    Cut,
    /// Its header shows that it cannot be decoded.
    #[error("models are not shown the image: {0}; it was kept as it is")]
    Undecodable(Undecodable),
    /// A provider takes fewer pixels.
    #[error(
        "{provider}'s models are shown a smaller image: it has {width} x {height} pixels; the limit is {max} a side"
    )]
    Sides {
        /// The provider.
        provider: &'static str,
        /// The pixels of the image.
        width: u32,
        /// The pixels of the image.
        height: u32,
        /// The most pixels of a side.
        max: u32,
    },
    /// A provider takes fewer bytes.
    #[error(
        "{provider}'s models are shown a smaller image: it has {bytes} bytes; the limit is {max}"
    )]
    Bytes {
        /// The provider.
        provider: &'static str,
        /// The bytes of the image.
        bytes: u64,
        /// The most bytes of an image.
        max: u64,
    },
}

impl ImageWarning {
    /// Examines a string that cannot be stored as bytes.
    pub(super) fn of_text(url: &str) -> Option<Self> {
        if let Some(url) = DataUrl::parse(url) {
            return Self::of_bytes(&url.media_type, &url.bytes);
        }
        let head = url.split_inclusive(',').next().unwrap_or_default().to_ascii_lowercase();
        if !head.starts_with("data:image/") || !head.ends_with(',') {
            return Some(Self::NoDataUrl);
        }
        // Other encodings have text, such as that of an SVG.
        Some(if head.ends_with("base64,") { Self::NotBase64 } else { Self::UnknownKind })
    }

    /// Examines the decoded bytes of a data URL. No pixel is decoded.
    pub(super) fn of_bytes(media_type: &str, bytes: &[u8]) -> Option<Self> {
        let media_type = media_type.to_ascii_lowercase();
        let found = recognise(bytes);
        // An image without a type is shown as one.
        let is_unnamed = media_type.is_empty() && found.is_some();
        if !media_type.starts_with("image/") && !is_unnamed {
            return Some(Self::NoDataUrl);
        }
        let kind = found.map(|(kind, _)| kind);
        match (IMAGE_TYPES.iter().find(|(name, _)| *name == media_type), found) {
            (Some((_, named)), _) if kind != Some(*named) => Some(Self::OtherBytes),
            // Another name of a known kind, such as image/jpg, or a kind that is not known.
            (_, None) => Some(Self::UnknownKind),
            (_, Some((_, size))) => Self::of_image(size, bytes),
        }
    }

    fn of_image((width, height): (u32, u32), bytes: &[u8]) -> Option<Self> {
        if is_cut(bytes) {
            return Some(Self::Cut);
        }
        if let Err(undecodable) = probe(bytes, Bounds::default()) {
            return Some(Self::Undecodable(undecodable));
        }
        let bytes = bytes.len() as u64;
        ImageLimits::ALL.into_iter().find_map(|limits| {
            let ImageLimits { provider, bytes: bytes_max, .. } = limits;
            if let Some(max) = limits.side_among(1).filter(|max| width.max(height) > *max) {
                return Some(Self::Sides { provider, width, height, max });
            }
            (bytes > bytes_max).then_some(Self::Bytes { provider, bytes, max: bytes_max })
        })
    }
}
