//! Paths in the state's document: member names from the root.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::DEPTH_MAX;

/// The reason why names do not form a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// A segment is empty.
    #[error("segment {position} of the path is empty")]
    EmptySegment {
        /// The number of the segment, from 1.
        position: usize,
    },
    /// A segment is `.` or `..`.
    #[error("segment {position} of the path must not be '.' or '..'")]
    Dots {
        /// The number of the segment, from 1.
        position: usize,
    },
    /// A `~` is not followed by `0` or `1`.
    #[error("segment {position} of the path has a '~' that is not ~0 (for '~') or ~1 (for '/')")]
    Tilde {
        /// The number of the segment, from 1.
        position: usize,
    },
    /// The path has more segments than the document may have levels.
    #[error("the path has {segments} segments; the limit is {DEPTH_MAX}")]
    TooDeep {
        /// The number of segments.
        segments: usize,
    },
}

/// The path of a value: the names from the root. The root's own path has no names.
///
/// As text the names are separated by `/`; in a name `~1` is `/` and `~0` is `~`, as in RFC 6901.
///
/// Paths are ordered name by name, so that all paths below a path directly follow it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct StatePath(Arc<[Arc<str>]>);

impl StatePath {
    /// Returns the path of the whole document.
    #[must_use]
    pub fn root() -> Self {
        Self(Arc::new([]))
    }

    /// Creates the path of these names from the root.
    ///
    /// # Errors
    ///
    /// [`InvalidPath`] if a name cannot be a segment, or if there are too many.
    pub fn from_segments<S: Into<Arc<str>>>(
        segments: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidPath> {
        let segments: Arc<[Arc<str>]> = segments.into_iter().map(Into::into).collect();
        if segments.len() > DEPTH_MAX {
            return Err(InvalidPath::TooDeep { segments: segments.len() });
        }
        for (position, segment) in (1..).zip(segments.iter()) {
            match &**segment {
                "" => return Err(InvalidPath::EmptySegment { position }),
                "." | ".." => return Err(InvalidPath::Dots { position }),
                _ => {}
            }
        }
        Ok(Self(segments))
    }

    /// Returns the names from the root.
    #[must_use]
    pub fn segments(&self) -> &[Arc<str>] {
        &self.0
    }

    /// Returns the last name, or `None` for the root.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(|name| &**name)
    }

    /// Returns true for the path of the whole document.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of segments.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the path without a segment is the root")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the path of the enclosing object, or `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.into()))
    }

    /// Returns true if `that` is this path or below it.
    #[must_use]
    pub fn contains(&self, that: &Self) -> bool {
        that.0.starts_with(&self.0)
    }

    /// Returns a name as a segment of a path's text.
    #[must_use]
    pub fn escape(name: &str) -> Cow<'_, str> {
        if name.contains(['~', '/']) {
            Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
        } else {
            Cow::Borrowed(name)
        }
    }

    /// Returns the path of the first `segments` names.
    pub(super) fn prefix(&self, segments: usize) -> Self {
        self.0.get(..segments).map_or_else(|| self.clone(), |names| Self(names.into()))
    }

    /// Returns the path of these names below this one. Names in the document need not be valid segments.
    pub(super) fn below(&self, names: &[Arc<str>]) -> Self {
        Self(self.0.iter().chain(names).map(Arc::clone).collect())
    }
}

impl fmt::Display for StatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "/" };
            write!(f, "{separator}{}", Self::escape(name))?;
        }
        Ok(())
    }
}

impl FromStr for StatePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let names = (1..).zip(text.split('/'));
        let names =
            names.map(|(position, text)| unescape(text).ok_or(InvalidPath::Tilde { position }));
        Self::from_segments(names.collect::<Result<Vec<_>, _>>()?)
    }
}

/// Returns the name that a segment of a path's text stands for, or `None` for an unknown escape.
fn unescape(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('~') {
        return Some(Cow::Borrowed(segment));
    }
    let is_known = segment.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    is_known.then(|| Cow::Owned(segment.replace("~1", "/").replace("~0", "~")))
}

impl TryFrom<Vec<String>> for StatePath {
    type Error = InvalidPath;

    fn try_from(segments: Vec<String>) -> Result<Self, InvalidPath> {
        Self::from_segments(segments)
    }
}

impl From<StatePath> for Vec<String> {
    fn from(path: StatePath) -> Self {
        path.0.iter().map(|name| (**name).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(segments: &[&str]) -> StatePath {
        StatePath::from_segments(segments.iter().copied()).unwrap()
    }

    #[test]
    fn any_name_but_an_empty_one_and_dots_is_a_segment() {
        let odd = path(&["a/b", " ", "...", "会话", "\u{0}", ".a"]);
        assert_eq!(odd.len(), 6);
        assert_eq!(odd.to_string(), "a~1b/ /.../会话/\u{0}/.a");
        let why = |segments: &[&str]| StatePath::from_segments(segments.iter().copied());
        assert_eq!(why(&["a", ""]), Err(InvalidPath::EmptySegment { position: 2 }));
        assert_eq!(why(&["."]), Err(InvalidPath::Dots { position: 1 }));
        assert_eq!(why(&["a", "b", ".."]), Err(InvalidPath::Dots { position: 3 }));
        assert!(why(&["a"; 128]).is_ok());
        assert_eq!(why(&["a"; 129]), Err(InvalidPath::TooDeep { segments: 129 }));
    }

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for names in [&["a"][..], &["a/b", "~"], &["~1", "~0", "~01", "//", "~/~"], &["%2F", "a b"]]
        {
            let path = path(names);
            assert_eq!(path.to_string().parse(), Ok(path));
        }
        assert_eq!("a~1b/~0/~01".parse(), Ok(path(&["a/b", "~", "~1"])));
        for (text, position) in [("~", 1), ("a/~2", 2), ("a/b/~0~", 3), ("a/~~1", 2)] {
            assert_eq!(text.parse::<StatePath>(), Err(InvalidPath::Tilde { position }), "{text}");
        }
        assert_eq!("".parse::<StatePath>(), Err(InvalidPath::EmptySegment { position: 1 }));
        assert_eq!("a/".parse::<StatePath>(), Err(InvalidPath::EmptySegment { position: 2 }));
        assert_eq!("a//b".parse::<StatePath>(), Err(InvalidPath::EmptySegment { position: 2 }));
        assert_eq!("./a".parse::<StatePath>(), Err(InvalidPath::Dots { position: 1 }));
    }

    #[test]
    fn a_path_knows_what_is_above_it() {
        let deep = path(&["a", "b"]);
        assert_eq!(deep.parent(), Some(path(&["a"])));
        assert_eq!(deep.segments().last().map(|name| &**name), Some("b"));
        assert_eq!(StatePath::root().parent(), None);
        assert!(StatePath::root().is_root() && StatePath::root().contains(&deep));
        assert!(path(&["a"]).contains(&deep) && deep.contains(&deep));
        assert!(!deep.contains(&path(&["a"])) && !path(&["a"]).contains(&path(&["ab"])));
    }

    #[test]
    fn all_paths_below_one_follow_it_directly() {
        let mut paths =
            [path(&["a!"]), path(&["a", "b"]), path(&["b"]), path(&["a"]), path(&["a", "\u{0}"])];
        paths.sort();
        let sorted: Vec<_> = paths.iter().map(ToString::to_string).collect();
        assert_eq!(sorted, ["a", "a/\u{0}", "a/b", "a!", "b"]);
    }

    #[test]
    fn a_path_is_stored_as_its_names() {
        let stored = serde_json::to_string(&path(&["a/b", "c"])).unwrap();
        assert_eq!(stored, r#"["a/b","c"]"#);
        assert_eq!(serde_json::from_str::<StatePath>(&stored).unwrap(), path(&["a/b", "c"]));
        assert!(serde_json::from_str::<StatePath>(r#"["a",""]"#).is_err());
    }
}
