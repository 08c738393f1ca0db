//! Scripts beyond ASCII, as tokenizers tell them apart.

macro_rules! scripts {
    ($($range:pat => $name:ident,)+) => {
        /// A script, or another group of characters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(super) enum Script {
            $($name,)+
        }

        /// The names of all scripts, in order.
        pub const SCRIPTS_NAMED: &[&str] = &[$(stringify!($name),)+];

        /// Their number.
        pub(super) const SCRIPTS: usize = SCRIPTS_NAMED.len();

        impl Script {
            /// Returns the script of a character's code.
            #[must_use]
            pub(super) const fn of_code(code: u32) -> Self {
                match code {
                    $($range => Self::$name,)+
                }
            }

            /// Returns the script of a character.
            #[must_use]
            pub(super) const fn of(c: char) -> Self {
                Self::of_code(c as u32)
            }
        }
    };
}

scripts! {
    0..=0xBF => LatinSigns,
    0xC0..=0xFF => Latin1,
    0x100..=0x17F => LatinA,
    0x180..=0x24F => LatinB,
    0x300..=0x36F => Marks,
    0x370..=0x3FF => Greek,
    0x410..=0x44F => Cyrillic,
    0x400..=0x45F => CyrillicRest,
    0x460..=0x52F => CyrillicMore,
    0x530..=0x58F => Armenian,
    0x590..=0x5FF => Hebrew,
    0x620..=0x64A => Arabic,
    0x600..=0x6FF | 0x750..=0x77F => ArabicRest,
    0x900..=0x97F => Devanagari,
    0x980..=0x9FF => Bengali,
    0xB80..=0xBFF => Tamil,
    0xC00..=0xC7F => Telugu,
    0xA00..=0xA7F => Gurmukhi,
    0xA80..=0xAFF => Gujarati,
    0xB00..=0xB7F => Odia,
    0xC80..=0xCFF => Kannada,
    0xD00..=0xD7F => Malayalam,
    0xD80..=0xDFF => Sinhala,
    0xE00..=0xE7F => Thai,
    0xE80..=0xEFF => Lao,
    0x1000..=0x109F => Burmese,
    0x1780..=0x17FF => Khmer,
    0x1200..=0x139F => Ethiopic,
    0x10A0..=0x10FF => Georgian,
    0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7AF => Korean,
    0x1E00..=0x1EFF => LatinMore,
    0x1F00..=0x1FFF => GreekMore,
    0x2000..=0x206F => Punctuation,
    0x2500..=0x257F => Boxes,
    0x2070..=0x2BFF => Symbols,
    0x3000..=0x303F | 0xFF00..=0xFFEF => ChineseSigns,
    0x3040..=0x312F | 0x31F0..=0x31FF => Kana,
    0x3400..=0x4DBF | 0x4E00..=0x9FFF => Chinese,
    0xD800..=0xDFFF => Surrogate,
    0xFE00..=0xFE0F | 0x1F000..=0x1FAFF => Emoji,
    0x250..=0x7FF => TwoBytes,
    0x800..=0xFFFF => ThreeBytes,
    _ => FourBytes,
}
