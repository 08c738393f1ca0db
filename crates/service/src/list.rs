//! Lists of sessions by prefix, label and the reader's rights.
//!
//! The indexes narrow each step. A reader's pattern that begins with a star may still skip many names, so listing
//! belongs on a blocking thread.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::sessions::by_id::summary_of;
use super::sessions::labels::Label;
use super::sessions::session::Session;
use super::{Service, ServiceError};
use blackboard_board::{Life, SessionName, Summary};
use blackboard_fairness::{compute, with_files};
use blackboard_metrics as metrics;
use blackboard_store::{Among, RowQuery, SharedStore};

/// The number of names taken from an index at once.
const NAMES_AT_ONCE: usize = 1024;

/// The number of rows read at once.
const ROWS_AT_ONCE: usize = 1000;

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The session's summary. Of a damaged session the name and the last revision hold; the rest is as far as its
    /// history could be read.
    pub summary: Arc<Summary>,
    /// True if the stored history is damaged, so that the session is not served.
    pub is_damaged: bool,
}

/// A session that a list found.
#[derive(Clone, Debug)]
pub(crate) enum SelectedSession {
    /// A session of this server.
    Running(Arc<Session>),
    /// The row of a session in a store that other servers write to.
    Row(Arc<Summary>),
}

impl SelectedSession {
    pub(crate) fn name(&self) -> &SessionName {
        match self {
            Self::Running(session) => session.name(),
            Self::Row(summary) => &summary.name,
        }
    }
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
    ///
    /// # Errors
    ///
    /// [`ServiceError::Unreachable`].
    pub fn list(
        &self,
        listing: &Listing,
        after: Option<&SessionName>,
        limit: usize,
    ) -> Result<Vec<Listed>, ServiceError> {
        let after = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        let found = self.select(listing, &after, limit, Among::All)?;
        let listed = |found: SelectedSession| match found {
            SelectedSession::Running(session) => {
                Listed { summary: session.summary(), is_damaged: session.is_damaged() }
            }
            SelectedSession::Row(summary) => Listed { summary, is_damaged: false },
        };
        Ok(found.into_iter().map(listed).collect())
    }

    /// Does the same from any thread.
    ///
    /// # Errors
    ///
    /// As for [`list`](Self::list).
    pub async fn listed(
        &self,
        listing: Listing,
        after: Option<&SessionName>,
        limit: usize,
    ) -> Result<Vec<Listed>, ServiceError> {
        let (service, after) = (self.clone(), after.cloned());
        let look = move || service.list(&listing, after.as_ref(), limit);
        with_files(look).await.map_err(|_| ServiceError::Fault)?
    }

    /// Lists the sessions in an index, on a blocking thread.
    pub(crate) async fn list_among(
        &self,
        listing: &Arc<Listing>,
        from: Bound<SessionName>,
        limit: usize,
        among: Among,
    ) -> Result<Vec<SelectedSession>, ServiceError> {
        let (service, listing) = (self.clone(), Arc::clone(listing));
        let look = move || service.select(&listing, &from, limit, among);
        if self.has_replicas() {
            return with_files(look).await.map_err(|_| ServiceError::Fault)?;
        }
        compute(look).await.map_err(|_| ServiceError::Fault)?
    }

    fn select(
        &self,
        listing: &Listing,
        from: &Bound<SessionName>,
        limit: usize,
        among: Among,
    ) -> Result<Vec<SelectedSession>, ServiceError> {
        match self.inner.deps.store.shared() {
            Some(store) => select_rows(store, listing, from, limit, among),
            None => Ok(self.select_running(listing, from, limit, among)),
        }
    }

    fn select_running(
        &self,
        listing: &Listing,
        from: &Bound<SessionName>,
        limit: usize,
        among: Among,
    ) -> Vec<SelectedSession> {
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
                    found.extend(self.found(listing, &name, among).map(SelectedSession::Running));
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

    fn found(&self, listing: &Listing, name: &SessionName, among: Among) -> Option<Arc<Session>> {
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

/// Selects sessions by their rows, in a store that other servers write to.
fn select_rows(
    store: &dyn SharedStore,
    listing: &Listing,
    from: &Bound<SessionName>,
    limit: usize,
    among: Among,
) -> Result<Vec<SelectedSession>, ServiceError> {
    let mut found = Vec::new();
    for range in listing.ranges() {
        let (mut last, mut includes_from) = match from {
            Bound::Unbounded => (Vec::new(), true),
            Bound::Included(name) => (name.as_str().as_bytes().to_vec(), true),
            Bound::Excluded(name) => (name.as_str().as_bytes().to_vec(), false),
        };
        while found.len() < limit {
            let rows = store.rows(&RowQuery {
                among,
                from: &last,
                includes_from,
                prefix: range.as_bytes(),
                labels: &listing.labels,
                // Names that the reader may not see are skipped.
                limit: (limit - found.len()).min(ROWS_AT_ONCE),
            })?;
            if rows.is_empty() {
                break;
            }
            for (name, row) in rows {
                includes_from = false;
                let summary = summary_of(&row).filter(|summary| {
                    // The query compares labels as texts, in which a line feed may stand at either place.
                    (listing.reaches)(&summary.name) && listing.has(summary.life.as_ref())
                });
                metrics::LISTED.add_one();
                found.extend(summary.map(|summary| SelectedSession::Row(Arc::new(summary))));
                last = name;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
