//! One way for a read: the published board, at the revision that was asked for, if it exists.

use std::time::Duration;

use super::error::no_session;
use super::params::Params;
use super::problem::Problem;
use crate::board::{Revision, SessionName};
use crate::service::{Published, Service};

/// How long a read waits for the revision that it names.
const REVISION_WAIT_MAX: Duration = Duration::from_secs(2);

/// What is published of a session, once it has reached the `min_revision` of the query, which must be
/// the last parameter to be taken.
pub(super) async fn shown(
    service: &Service,
    session: &SessionName,
    mut params: Params,
) -> Result<Published, Problem> {
    let wanted = params.number("min_revision", 0..=u64::MAX)?;
    params.finish()?;
    if let Some(wanted) = wanted {
        service.reach(session, Revision(wanted), REVISION_WAIT_MAX).await?;
    }
    service.published(session)?.ok_or_else(|| no_session(session))
}
