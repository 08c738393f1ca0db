//! Lists of sessions by prefix, label and the reader's rights.
//!
//! The indexes narrow each step. A reader's pattern that begins with a star may still skip many names, so listing
//! belongs on a blocking thread.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::directory::Among;
use super::labels::Label;
use super::session::Session;
use crate::board::{Life, SessionName, Summary};
use crate::fairness::compute;
use crate::metrics;
use crate::service::{Service, ServiceError};

/// The number of names taken from an index at once.
const NAMES_AT_ONCE: usize = 1024;

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The session's summary. Of a damaged session the name and the last revision hold; the rest is as far as its
    /// history could be read.
    pub summary: Arc<Summary>,
    /// True if the stored history is damaged, so that the session is not served.
    pub is_damaged: bool,
}

/// A selection of sessions for a list.
#[derive(Clone)]
pub struct Listing {
    /// Prefix of the names.
    pub prefix: String,
    /// Labels that each of them has.
    pub labels: Vec<Label>,
    /// Prefixes of the names that `reaches` admits.
    pub stems: Vec<String>,
    /// Returns true if the reader may see a session of this name.
    pub reaches: Arc<dyn Fn(&SessionName) -> bool + Send + Sync>,
}

impl Listing {
    /// All sessions with this prefix.
    #[must_use]
    pub fn all(prefix: &str) -> Self {
        let (labels, stems) = (Vec::new(), vec![String::new()]);
        Self { prefix: prefix.to_owned(), labels, stems, reaches: Arc::new(|_| true) }
    }

    /// The ranges in which its names are, in order, none within another.
    fn ranges<'a>(&'a self) -> Vec<&'a str> {
        let prefix = self.prefix.as_str();
        let narrower = |stem: &'a str| {
            if stem.starts_with(prefix) {
                Some(stem)
            } else {
                prefix.starts_with(stem).then_some(prefix)
            }
        };
        let mut ranges: Vec<&str> =
            self.stems.iter().map(String::as_str).filter_map(narrower).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| next.starts_with(*kept));
        ranges
    }

    /// Of a damaged session no life may be known.
    fn has(&self, life: Option<&Life>) -> bool {
        let has = |(name, value)| life.is_some_and(|life| life.labels.get(name) == Some(value));
        self.labels.iter().map(|(name, value)| (name, value)).all(has)
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("stems", &self.stems).finish_non_exhaustive()
    }
}

impl Service {
    /// At most `limit` sessions after a name, in the order of names. To be called from a thread that may block.
    #[must_use]
    pub fn list(
        &self,
        listing: &Listing,
        after: Option<&SessionName>,
        limit: usize,
    ) -> Vec<Listed> {
        let after = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        let found = self.select(listing, &after, limit, Among::All);
        let listed = |session: &Arc<Session>| Listed {
            summary: session.summary(),
            is_damaged: session.is_damaged(),
        };
        found.iter().map(listed).collect()
    }

    /// Lists the sessions in an index, on a blocking thread.
    pub(crate) async fn list_among(
        &self,
        listing: &Arc<Listing>,
        from: Bound<SessionName>,
        limit: usize,
        among: Among,
    ) -> Result<Vec<Arc<Session>>, ServiceError> {
        let (service, listing) = (self.clone(), Arc::clone(listing));
        let look = move || service.select(&listing, &from, limit, among);
        compute(look).await.map_err(|_| ServiceError::Fault)
    }

    fn select(
        &self,
        listing: &Listing,
        from: &Bound<SessionName>,
        limit: usize,
        among: Among,
    ) -> Vec<Arc<Session>> {
        let mut found = Vec::new();
        for range in listing.ranges() {
            let mut from = from.clone();
            while found.len() < limit {
                let names = self.names(listing, from.as_ref(), range, among);
                let Some(last) = names.last() else { break };
                from = Bound::Excluded(last.clone());
                for name in names {
                    if found.len() == limit {
                        return found;
                    }
                    metrics::LISTED.add_one();
                    found.extend(self.listed(listing, &name, among));
                }
            }
        }
        found
    }

    /// The next names in a range, of the index that has the fewest.
    fn names(
        &self,
        listing: &Listing,
        from: Bound<&SessionName>,
        range: &str,
        among: Among,
    ) -> Vec<SessionName> {
        let (directory, labels) = (&self.inner.sessions.directory, &listing.labels);
        let from = from.map(SessionName::as_str);
        if !labels.is_empty() && directory.labels().count(labels) <= directory.count(among) {
            directory.labels().names(labels, from, range, NAMES_AT_ONCE)
        } else {
            directory.names(among, from, range, NAMES_AT_ONCE)
        }
    }

    fn listed(&self, listing: &Listing, name: &SessionName, among: Among) -> Option<Arc<Session>> {
        if !(listing.reaches)(name) {
            return None;
        }
        let session = self.inner.sessions.directory.get(name)?;
        let (shown, is_damaged) = (session.shown(), session.is_damaged());
        let belongs = match among {
            Among::All => shown.life().is_some() || is_damaged,
            Among::Asking => shown.asks() && !is_damaged,
            Among::Requesting => shown.requests() && !is_damaged,
            Among::OverBudget => shown.is_over_budget() && !is_damaged,
        };
        (belongs && listing.has(shown.life())).then_some(session)
    }
}

#[cfg(test)]
mod tests;
