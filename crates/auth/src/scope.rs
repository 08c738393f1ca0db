//! Scopes: the kinds of actions that a token allows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reads boards.
    Read,
    /// Writes to boards.
    Write,
    /// Grants everything: purges, imports, and all that the other scopes allow.
    Admin,
    /// Lets an agent's token read the memories of other agents too.
    #[serde(rename = "memory:read")]
    MemoryRead,
}

/// An unknown scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope; scopes are read, write, admin and memory:read")]
pub struct InvalidScope(String);

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Admin, Self::MemoryRead];

    /// Returns the scope's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::MemoryRead => "memory:read",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Admin => 4,
            Self::MemoryRead => 8,
        }
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
