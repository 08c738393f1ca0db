//! Notices of changed resources, for as long as the client listens.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{SubscriptionContext, SubscriptionSink};

use super::call::visit::Visit;
use super::resources::Address;
use blackboard_board::{Revision, SessionName};
use blackboard_service::{Service, Unreachable};

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
    let mut followed: BTreeMap<SessionName, Vec<Followed>> = BTreeMap::new();
    for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
        let address = Address::parse(uri).filter(|address| address.check(visit).is_ok());
        if let Some(address) = address {
            let session = address.session.clone();
            let known = Followed { uri: uri.clone(), seen: address.after, address };
            followed.entry(session).or_default().push(known);
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
}

async fn follow(
    service: &Service,
    visit: &Visit,
    session: &SessionName,
    mut resources: Vec<Followed>,
    sink: &SubscriptionSink,
) -> Result<(), Unreachable> {
    let session = service.session(&visit.caller, session).await?;
    let mut wait = session.wait()?;
    loop {
        if let Some(published) = session.published().await? {
            for resource in &mut resources {
                let changed = resource.address.changed(&published.board);
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
