//! Notices of changed resources, for as long as the client listens.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{SubscriptionContext, SubscriptionSink};

use super::call::visit::Visit;
use super::resources::{Address, Part, reader};
use blackboard_api::attention::AttentionReader;
use blackboard_board::{Board, Revision, SessionName};
use blackboard_service::{Service, ServiceError, SessionHandle, Unreachable};

/// The maximum number of resources that one client follows with one request.
const RESOURCES_MAX: usize = 100;

/// Returns the part of a filter that is served: addresses of boards.
pub(super) fn served(requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
    let uris = requested.resource_subscriptions.iter().flatten();
    let known = uris.filter(|uri| Address::parse(uri).is_some()).take(RESOURCES_MAX);
    Some(SubscriptionFilter::builder().resource_subscriptions(known.cloned()).build())
}

/// Sends a notice whenever a followed resource has changed, until the client leaves or the server stops.
pub(super) async fn listen(service: &Service, visit: &Visit, subscription: &SubscriptionContext) {
    let mut followed: BTreeMap<SessionName, Vec<(String, Address)>> = BTreeMap::new();
    for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
        let address = Address::parse(uri).filter(|address| address.check(visit).is_ok());
        if let Some(address) = address {
            let session = address.session.clone();
            followed.entry(session).or_default().push((uri.clone(), address));
        }
    }
    let each = followed.into_iter().map(|(session, resources)| async move {
        if let Err(error) = follow(service, visit, &session, resources, subscription.sink()).await {
            tracing::debug!(%error, "a subscription ended");
        }
    });
    let all = async {
        join_all(each).await;
        service.stopping().cancelled().await;
    };
    tokio::select! {
        () = all => {}
        () = service.stopping().cancelled() => {}
        () = visit.departed.cancelled() => {}
        () = subscription.cancelled() => {}
    }
}

/// A resource, with the revision of its last change that the client knows.
struct Followed {
    uri: String,
    address: Address,
    seen: Option<Revision>,
    /// The reader of an attention.
    reader: Option<AttentionReader>,
}

impl Followed {
    fn new(uri: String, address: Address, visit: &Visit, session: &SessionHandle) -> Self {
        let reader = match &address.part {
            Part::Attention(agent) => Some(reader(session, visit, agent)),
            Part::Prompt | Part::Log(_) | Part::Screenshot(_) | Part::State(_) => None,
        };
        Self { uri, seen: address.after, address, reader }
    }

    /// Returns the revision of the last change. That of an attention is of the newest thing in it, so that a client is told
    /// of what comes, and not of what goes.
    async fn changed(&mut self, board: &Arc<Board>) -> Result<Revision, ServiceError> {
        match &mut self.reader {
            Some(reader) => Ok(reader.look(board).await?.next),
            None => Ok(self.address.changed(board)),
        }
    }
}

async fn follow(
    service: &Service,
    visit: &Visit,
    session: &SessionName,
    resources: Vec<(String, Address)>,
    sink: &SubscriptionSink,
) -> Result<(), Unreachable> {
    let session = service.session(&visit.caller, session).await?;
    let resources = resources.into_iter();
    let mut resources: Vec<Followed> =
        resources.map(|(uri, address)| Followed::new(uri, address, visit, &session)).collect();
    let mut wait = session.wait()?;
    loop {
        let published = session.published().await?;
        if published.is_none() {
            // The client knows that there is nothing.
            resources.iter_mut().for_each(|resource| _ = resource.seen.get_or_insert_default());
        }
        if let Some(published) = published {
            for resource in &mut resources {
                let changed = resource.changed(&published.board).await?;
                // Without a revision to resume from, the client knows the present board.
                let seen = *resource.seen.get_or_insert(changed);
                if changed > seen {
                    resource.seen = Some(changed);
                    let params = ResourceUpdatedNotificationParam::new(resource.uri.clone());
                    let notice = ResourceUpdatedNotification::new(params);
                    if sink
                        .send(ServerNotification::ResourceUpdatedNotification(notice))
                        .await
                        .is_err()
                    {
                        return Ok(());
                    }
                }
            }
        }
        if !wait.changed().await? {
            return Ok(());
        }
    }
}
