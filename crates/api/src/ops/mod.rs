//! Operations: each exists once. A door reads an envelope, calls an operation, and renders its facts.

pub mod agents;
pub mod history;
pub mod logs;
pub mod questions;
pub mod requests;
pub mod screenshots;
pub mod sessions;
pub mod state;
pub mod transactions;

use std::sync::Arc;

use crate::refusal::Refusal;
use blackboard_auth::{Forbidden, Scope, Unauthorized};
use blackboard_board::{Answer, Command, Json, LogName, MediaType, Rank, Seq, Terms};
use blackboard_service::{
    ImageBytes, Keep, NextClaim, Patch, Receipt, Reply, ServiceError, SessionHandle, Uploaded, Wait,
};

/// A call that writes a session, on the terms of its envelope.
pub struct WriteCall {
    /// The session to write.
    pub session: SessionHandle,
    /// Conditions, claim, key and author of the write.
    pub terms: Terms,
}

/// The reason why a write was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    /// The caller's rights have ended.
    #[error(transparent)]
    Over(#[from] Unauthorized),
    /// The caller lacks the right.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// There is no board to write from.
    #[error("{}", .0.detail())]
    Refused(Refusal),
    /// The board or the store rejected it.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl WriteCall {
    /// Begins a call. A caller whose token is bound to an agent acts as that agent only.
    pub fn new(session: SessionHandle, terms: Terms) -> Self {
        let bound_to = session.caller().kept_to().cloned();
        Self { session, terms: Terms { bound_to, ..terms } }
    }

    /// Checks that the caller still may write. Reading the request may have taken long.
    fn still_may(&self) -> Result<(), NotWritten> {
        let caller = self.session.caller();
        caller.still_may(self.session.service().now())?;
        Ok(caller.needs(Scope::Write)?)
    }

    /// Checks that the caller still may write, and may carry out this command.
    fn check(&self, command: &Command) -> Result<(), NotWritten> {
        self.still_may()?;
        Ok(self.session.caller().permits(command)?)
    }

    /// Returns the first answer to this call, if it is a repeat. What it needed may be gone by now.
    pub async fn repeated(&self) -> Result<Option<Json>, NotWritten> {
        self.still_may()?;
        Ok(self.session.recall(&self.terms).await?)
    }

    /// Adds an uploaded blob to the session.
    pub async fn put_blob(
        &self,
        uploaded: Uploaded,
        media_type: MediaType,
        keep: Option<Keep>,
    ) -> Result<Reply, NotWritten> {
        self.still_may()?;
        Ok(self.session.put_blob(self.terms.clone(), uploaded, media_type, keep).await?)
    }

    /// Returns what stores the answer with the key, if there is one. The writer calls it.
    pub fn keep(
        &self,
        shape: impl Fn(&Receipt) -> Option<Json> + Send + Sync + 'static,
    ) -> Option<Keep> {
        self.terms.key.as_ref().map(|_| Arc::new(shape) as Keep)
    }

    /// Carries out a command, with the images that its items name.
    pub fn run(
        &self,
        command: Command,
        images: Vec<ImageBytes>,
        keep: Option<Keep>,
    ) -> impl Future<Output = Result<Reply, NotWritten>> + Send {
        let checked = self.check(&command);
        // Begun at once, so that the future has no room for the command.
        let writing =
            checked.map(|()| self.session.write(self.terms.clone(), command, images, keep));
        async { Ok(writing?.await?) }
    }

    /// Patches an entry.
    pub async fn patch(
        &self,
        log: LogName,
        seq: Seq,
        patch: &Patch,
        keep: Option<Keep>,
    ) -> Result<Reply, NotWritten> {
        self.still_may()?;
        if let Patch::Json(_) = patch {
            // A patch's tests and missing paths reveal the entry's content.
            self.session.caller().needs(Scope::Read)?;
        }
        Ok(self.session.patch_entry(self.terms.clone(), log, seq, patch, keep).await?)
    }

    /// Checks that the caller may claim the next request.
    pub fn may_claim(&self, claim: &NextClaim) -> Result<(), NotWritten> {
        let NextClaim { wanted, ttl } = claim.clone();
        self.check(&Command::ClaimNext { wanted, from: Rank::FIRST, ttl })
    }

    /// Claims the next request that matches, and waits for one if there is a `wait`.
    pub async fn claim_next(
        &self,
        claim: &NextClaim,
        wait: Option<Wait>,
        keep: Option<Keep>,
    ) -> Result<Reply, NotWritten> {
        self.may_claim(claim)?;
        let caller = self.session.caller();
        let given_up = wait.as_ref().map(|wait| wait.given_up.clone()).unwrap_or_default();
        let mut claiming = std::pin::pin!(self.session.claim_next(&self.terms, claim, wait, keep));
        let reply = tokio::select! {
            reply = &mut claiming => reply,
            // A worker without rights must get no request; a claim under way is finished.
            _ = caller.over(self.session.service().now()) => {
                given_up.cancel();
                claiming.await
            }
        };
        if let Ok(Reply::Now(receipt)) = &reply
            && receipt.answer == Answer::Next(None)
        {
            caller.still_may(self.session.service().now())?;
        }
        Ok(reply?)
    }
}
