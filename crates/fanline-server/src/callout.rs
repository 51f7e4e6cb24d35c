//! Auth callout. A system client asks the service in an account whether a client may connect.
//!
//! A task of the control thread handles the requests of all shards, at most one for each connecting client.
//! If the response is late, the shard has already disconnected the client.

use std::collections::HashMap;
use std::sync::Arc;

use fanline_engine::auth::callout::{
    Caller, CalloutError, Question, REQUEST_SUBJECT, Response, Service,
};
use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, PublicKey};
use fanline_engine::auth::sealed::{NONCE_BYTES, Sealer};
use fanline_engine::auth::{Access, AccountId, Grant};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::client::{Client, ClientError, OutgoingMessage};
use crate::clock::unix_seconds;
use crate::identity;
use crate::ipc::CalloutRequest;
use crate::shared::Shared;
use crate::version::COMPATIBLE_VERSION;

/// Header of an encrypted request. It contains the public key for which the service encrypts its response.
const XKEY_HEADER: &str = "Nats-Server-Xkey";
/// The beginning of a token. An encrypted response never begins with it.
const TOKEN_BEGIN: &[u8] = b"eyJ";

/// Handles requests, each on its own task, until all senders are dropped.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut requests: mpsc::UnboundedReceiver<CalloutRequest>,
) {
    // One system client for each account with a service.
    let mut clients: HashMap<AccountId, Client> = HashMap::new();
    while let Some(request) = requests.recv().await {
        let access = shared.access();
        let Some(service) = access.service_for(&request.caller) else {
            // A reload has removed the service. Dropping the request refuses the client.
            continue;
        };
        let client = match clients.get(&service.account) {
            Some(client) => client.clone(),
            None => match shared.system_client(service.account).await {
                Ok(client) => clients.entry(service.account).or_insert(client).clone(),
                Err(error) => {
                    warn!("auth callout: {error}");
                    continue;
                }
            },
        };
        let shared = Arc::clone(&shared);
        tokio::task::spawn_local(async move { respond(&client, &shared, service, request).await });
    }
}

async fn respond(client: &Client, shared: &Shared, service: Service, request: CalloutRequest) {
    let CalloutRequest {
        caller,
        cid,
        shard,
        mut reply,
    } = request;
    let granted = tokio::select! {
        granted = answer(client, shared, service, &caller, (cid, shard)) => granted,
        // The client has disconnected or timed out.
        () = reply.closed() => return,
    };
    let granted = match granted {
        Ok(grant) => {
            debug!("cid:{cid} - auth callout: admitted as {:?}", grant.user);
            Some(grant)
        }
        Err(error) => {
            warn!("cid:{cid} - auth callout: {error}");
            None
        }
    };
    // The send fails if the client has disconnected.
    let _ = reply.send(granted);
}

/// The reason why a client is refused.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the client's token is not valid")]
    Token,
    #[error("requests cannot be encrypted for the service's xkey")]
    Encryption,
    #[error("the response cannot be decrypted")]
    Decryption,
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Callout(#[from] CalloutError),
}

async fn answer(
    client: &Client,
    shared: &Shared,
    service: Service,
    caller: &Caller,
    (cid, shard): (u64, usize),
) -> Result<Grant, Failure> {
    let now = unix_seconds();
    if !caller.may_ask(now) {
        return Err(Failure::Token);
    }
    let limit = shared.options().limits.auth_timeout;
    let envelope = service
        .xkey
        .map(|xkey| Envelope::new(&xkey).ok_or(Failure::Encryption));
    let envelope = envelope.transpose()?;
    let user_nkey = identity::new_user_key().public().encode();
    let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    let question = Question {
        server_id: &shared.info.server_id,
        server_name: &shared.info.server_name,
        server_version: COMPATIBLE_VERSION,
        xkey: envelope.as_ref().map(|envelope| envelope.own.as_str()),
        cid,
        user_nkey: &user_nkey,
        now,
        expires_at: now.saturating_add(seconds.max(1)),
    };
    let request = question.request(&caller.shown(), caller.peer(), &shared.key);
    let message = match &envelope {
        None => OutgoingMessage {
            subject: REQUEST_SUBJECT.into(),
            payload: request.into(),
            ..OutgoingMessage::default()
        },
        Some(envelope) => envelope.encrypt(&request)?,
    };
    let answer = client.request_message(&message, limit).await?;
    let opened = match &envelope {
        Some(envelope) if !answer.payload().starts_with(TOKEN_BEGIN) => Some(
            envelope
                .sealer
                .open(answer.payload())
                .ok_or(Failure::Decryption)?,
        ),
        _ => None,
    };
    let token = opened.as_deref().unwrap_or_else(|| answer.payload());
    let response = Response {
        token: std::str::from_utf8(token).unwrap_or_default(),
        is_sealed: opened.is_some(),
    };
    let answered = |access: &Access| access.answered(&response, &question, caller, unix_seconds());
    match answered(&shared.access()) {
        Err(CalloutError::AccountNeeded(account)) => {
            if let Some(found) = shared.common.look_up_account(account, shard) {
                // The next evaluation shows whether the account was found.
                let _ = tokio::time::timeout(limit, found).await;
            }
            Ok(answered(&shared.access())?)
        }
        decided => Ok(decided?),
    }
}

/// Encrypts one request with a new key that is not used for any other request. So a key that is stolen from
/// the server later does not decrypt this request.
struct Envelope {
    /// The public key, as sent to the service.
    own: String,
    sealer: Sealer,
}

impl Envelope {
    /// Returns `None` if the system provides no random bytes, or if the service's key cannot be used for
    /// encryption.
    fn new(xkey: &PublicKey) -> Option<Self> {
        let own = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).ok()?;
        let public = own.compute_public_key().ok()?;
        let public: [u8; KEY_BYTES] = public.as_ref().try_into().ok()?;
        let theirs = UnparsedPublicKey::new(&X25519, xkey.bytes());
        let sealer = agree_ephemeral(own, &theirs, |secret| {
            let secret: &[u8; KEY_BYTES] = secret.try_into().ok()?;
            Some(Sealer::new(secret))
        });
        Some(Envelope {
            own: PublicKey::new(KeyKind::Curve, public).encode(),
            sealer: sealer.ok()??,
        })
    }

    fn encrypt(&self, request: &str) -> Result<OutgoingMessage, Failure> {
        let mut nonce = [0; NONCE_BYTES];
        let filled = SystemRandom::new().fill(&mut nonce);
        filled.map_err(|_| Failure::Encryption)?;
        let mut message = OutgoingMessage {
            subject: REQUEST_SUBJECT.into(),
            payload: self.sealer.seal(&nonce, request.as_bytes()).into(),
            ..OutgoingMessage::default()
        };
        message.headers.append(XKEY_HEADER, &self.own)?;
        Ok(message)
    }
}
