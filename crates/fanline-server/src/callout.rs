//! Asks the service that decides who may connect, over a client of the server's own in its account.
//!
//! A task of the control thread asks, for all shards: it takes as many questions as there are clients
//! that wait to be let in. Who is not answered about in time has been sent away by then.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::access::callout::{Caller, Question, REQUEST_SUBJECT};
use fanline_engine::access::{Access, AccountId, Grant};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, warn};

use crate::checks::unix_seconds;
use crate::client::{Client, ClientError, ConnectOptions};
use crate::identity;
use crate::server::{COMPATIBLE_VERSION, IN_PROCESS_PIPE_BYTES, Shared};

/// A client waits for what the service says of it.
pub(crate) struct Wanted {
    pub(crate) caller: Arc<Caller>,
    pub(crate) cid: u64,
    /// Told what it is granted, if anything.
    pub(crate) tell: oneshot::Sender<Option<Grant>>,
}

/// The server's own client in the account of the service.
struct Asker {
    account: AccountId,
    client: Client,
}

/// Asks for everybody, on a task for each, until nobody is left to ask.
pub(crate) async fn ask_all(shared: Arc<Shared>, mut wanted: mpsc::UnboundedReceiver<Wanted>) {
    let mut asker: Option<Asker> = None;
    while let Some(wanted) = wanted.recv().await {
        let access = shared.access();
        let account = access.callout().map(|callout| callout.account.as_str());
        let Some(account) = account.and_then(|name| access.account_id(name)) else {
            // A reload has done away with the service: nobody tells, and nobody is let in.
            continue;
        };
        // Another service may be asked since the last reload.
        if asker.as_ref().is_none_or(|asker| asker.account != account) {
            asker = Asker::new(&shared, account).await.ok();
        }
        if let Some(asker) = &asker {
            let (client, shared) = (asker.client.clone(), Arc::clone(&shared));
            tokio::task::spawn_local(async move { ask(&client, &shared, &access, wanted).await });
        }
    }
}

impl Asker {
    async fn new(shared: &Shared, account: AccountId) -> Result<Self, ClientError> {
        let (ours, theirs) = tokio::io::duplex(IN_PROCESS_PIPE_BYTES);
        shared.assign_insider(theirs, account);
        let client = Client::over(ours, &ConnectOptions::insider()).await?;
        Ok(Asker { account, client })
    }
}

async fn ask(client: &Client, shared: &Shared, access: &Access, wanted: Wanted) {
    let Wanted {
        caller,
        cid,
        mut tell,
    } = wanted;
    let limit = shared.options().limits.auth_timeout;
    let granted = tokio::select! {
        granted = answer(client, shared, access, &caller, cid, limit) => granted,
        // It has lost patience, or was sent away.
        () = tell.closed() => return,
    };
    // Whoever has gone meanwhile is not waited for.
    let _ = tell.send(granted);
}

async fn answer(
    client: &Client,
    shared: &Shared,
    access: &Access,
    caller: &Caller,
    cid: u64,
    limit: Duration,
) -> Option<Grant> {
    let user_nkey = identity::new_user_key().public().encode();
    let now = unix_seconds();
    let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    let question = Question {
        server_id: &shared.info.server_id,
        server_name: &shared.info.server_name,
        server_version: COMPATIBLE_VERSION,
        cid,
        user_nkey: &user_nkey,
        now,
        expires_at: now.saturating_add(seconds.max(1)),
    };
    let request = question.request(&caller.shown(), caller.peer(), &shared.key);
    let answer = match client.request(REQUEST_SUBJECT, request, limit).await {
        Ok(answer) => answer,
        Err(error) => {
            warn!("cid:{cid} - auth callout: {error}");
            return None;
        }
    };
    let response = std::str::from_utf8(answer.payload()).unwrap_or_default();
    match access.answered(response, &question, caller.peer(), unix_seconds()) {
        Ok(grant) => {
            debug!("cid:{cid} - auth callout: let in as {:?}", grant.user);
            Some(grant)
        }
        Err(error) => {
            warn!("cid:{cid} - auth callout: {error}");
            None
        }
    }
}
