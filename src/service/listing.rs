//! Lists of sessions by name, without their boards; a damaged session is listed as such.

use std::sync::Arc;

use super::Service;
use super::session::Session;
use crate::board::{Life, SessionName, Summary};

/// How many names are looked at under one lock.
const NAMES_AT_ONCE: usize = 1024;

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What is known of it. Of a damaged session the name and the last revision; the rest as far as its history
    /// could be read.
    pub summary: Arc<Summary>,
    /// Whether its stored history is damaged, so that it is not served.
    pub is_damaged: bool,
}

impl Service {
    /// At most `limit` sessions after a name, in the order of names: of those whose name begins with
    /// `prefix` and that `matches` lets through. A damaged session may have no life that is known.
    #[must_use]
    pub fn list(
        &self,
        after: Option<SessionName>,
        prefix: &str,
        limit: usize,
        matches: impl Fn(&SessionName, Option<&Life>) -> bool,
    ) -> Vec<Listed> {
        let (mut found, mut after) = (Vec::new(), after);
        while found.len() < limit {
            let names = self.inner.directory.names(after.as_ref(), prefix, NAMES_AT_ONCE);
            let Some(last) = names.last() else { break };
            after = Some(last.clone());
            for name in names {
                if found.len() < limit
                    && let Some(session) = self.inner.directory.get(&name)
                    && is_listed(&session)
                    && matches(&name, session.shown().life())
                {
                    let (summary, is_damaged) = (session.summary(), session.is_damaged());
                    found.push(Listed { summary, is_damaged });
                }
            }
        }
        found
    }
}

fn is_listed(session: &Session) -> bool {
    session.exists() || session.is_damaged()
}
