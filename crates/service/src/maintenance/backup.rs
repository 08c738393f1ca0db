//! Backup and check of the running store.
//!
//! Each runs on a blocking thread and is cancelled when its caller goes away.

use std::path::PathBuf;
use std::sync::Arc;

use super::Maintenance;
use super::check::{Soundness, check_changing, check_unless};
use crate::ServiceError;
use blackboard_store::{Copied, EmbeddedStore, IsOver, Progress, StoreError};

impl Maintenance<'_> {
    /// Makes a backup in a directory that is absent or empty.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] if it cannot be made there; [`ServiceError::Stopping`].
    pub async fn back_up(
        self,
        to: PathBuf,
        progress: Arc<Progress>,
    ) -> Result<Copied, ServiceError> {
        self.copying(move |store, is_over| store.back_up(&to, is_over, &progress)).await
    }

    /// Checks the store in place, or a copy in the directory `scratch`, which is removed afterwards.
    ///
    /// # Errors
    ///
    /// As for [`back_up`](Self::back_up), or where it cannot be read at all.
    pub async fn check(
        self,
        scratch: Option<PathBuf>,
        progress: Arc<Progress>,
    ) -> Result<Soundness, ServiceError> {
        self.copying(move |store, is_over| {
            let (mut found, scratch) = (None, scratch.as_deref());
            store.look_at(scratch, is_over, &mut |store| {
                found = Some(match scratch {
                    Some(_) => check_unless(store, is_over, &progress),
                    None => check_changing(store, is_over, &progress),
                });
            })?;
            found.unwrap_or(Err(StoreError::Closed))
        })
        .await
    }

    async fn copying<T: Send + 'static>(
        self,
        copy: impl FnOnce(&dyn EmbeddedStore, &IsOver) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (store, end) =
            (Arc::clone(&self.0.inner.deps.store), self.0.inner.deps.stopping.child_token());
        let wanted = end.clone();
        let copying = tokio::task::spawn_blocking(move || {
            let is_over: IsOver = Arc::new(move || wanted.is_cancelled());
            copy(store.embedded().ok_or(StoreError::NotEmbedded)?, &is_over)
        });
        // Dropping this future ends the copy.
        let _end = end.drop_guard();
        Ok(copying.await.map_err(|_| ServiceError::Fault)??)
    }
}
