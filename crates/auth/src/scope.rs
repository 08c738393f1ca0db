//! Scopes: the kinds of actions that a token allows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! scopes {
    ($($(#[doc = $meaning:literal])+ $scope:ident $word:literal;)+) => {
        /// A scope.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Scope {
            $($(#[doc = $meaning])+ #[serde(rename = $word)] $scope,)+
        }

        impl Scope {
            /// All scopes.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$scope),+];

            /// Returns the scope's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$scope => $word,)+
                }
            }

            /// Returns what the scope allows, for documents.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$scope => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }
    };
}

// `docs/guide/access.md` has the meanings; a test writes them there.
scopes! {
    /// Reading, listing and following.
    Read "read";
    /// Writing; `add`, `append`, JSON Patch, claims of the next request and a transaction's tests need
    /// `read` too, since their answers show present values.
    Write "write";
    /// All of it, and purges, changes of `history`, and imports of archives.
    Admin "admin";
    /// A token of an agent may read other agents' memories.
    MemoryRead "memory:read";
}

/// An unknown scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope; scopes are {known}", known = known())]
pub struct InvalidScope(String);

/// Returns the words of all scopes in one phrase.
fn known() -> String {
    let words = Scope::ALL.map(Scope::as_str);
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    format!("{} and {last}", others.join(", "))
}

impl Scope {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| InvalidScope(text.to_owned()))
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns true if the set has this scope, or `admin`.
    #[must_use]
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Returns the scopes as they were named.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | scope.bit()))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{scope}")?;
        }
        Ok(())
    }
}
