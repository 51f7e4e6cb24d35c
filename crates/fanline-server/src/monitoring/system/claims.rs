//! Account tokens in operator mode: requests of `nsc push` and `nsc pull`.
//!
//! A server with a folder of all tokens serves all requests. A server with a cache serves requests for
//! accounts in the cache. A server without a folder accepts newer tokens of accounts that it knows.

use std::rc::Rc;
use std::sync::Arc;

use fanline_engine::auth::jwt::{AccountClaims, Claims, GenericClaims, JwtError, verified};
use fanline_engine::auth::{AccountId, OperatorError};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tracing::{debug, error};

use super::{Disconnected, System, unless_disconnected};
use crate::account_directory::{Directory, StoreError};
use crate::client::{ClientError, Message, Subscription};
use crate::clock::unix_seconds;
use crate::shared::Shared;

/// The account in a response if the request does not identify one.
const NO_ACCOUNT: &str = "n/a";

/// A request about account tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Lists accounts with a token.
    List,
    /// Returns all tokens, unless the requester has the same tokens.
    Pack,
    /// Returns a token.
    Lookup,
    /// Stores a token.
    Update,
    /// Deletes tokens.
    Delete,
}

/// The kind of a server's token store, which determines the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenStore {
    /// A folder of all tokens.
    Full,
    /// A folder of recently used tokens.
    Cache,
    /// No folder.
    Nowhere,
}

impl TokenStore {
    fn of(directory: Option<&Directory>) -> Self {
        match directory.map(|directory| directory.options().is_cache) {
            Some(false) => TokenStore::Full,
            Some(true) => TokenStore::Cache,
            None => TokenStore::Nowhere,
        }
    }

    /// Returns nats-server's words for an update on this kind of server, for error texts.
    fn update(self) -> &'static str {
        match self {
            TokenStore::Cache => "jwt update cache",
            TokenStore::Full | TokenStore::Nowhere => "jwt update",
        }
    }

    /// Returns nats-server's words for a successful update on this kind of server.
    fn updated(self) -> &'static str {
        match self {
            TokenStore::Cache => "jwt updated cache",
            TokenStore::Full | TokenStore::Nowhere => "jwt updated",
        }
    }

    /// Returns the subjects that this kind of server serves.
    fn subjects(self) -> Vec<(&'static str, Operation)> {
        let mut all = vec![
            ("$SYS.REQ.ACCOUNT.*.CLAIMS.UPDATE", Operation::Update),
            // The subject of older tools.
            ("$SYS.ACCOUNT.*.CLAIMS.UPDATE", Operation::Update),
        ];
        if self != TokenStore::Nowhere {
            all.extend([
                ("$SYS.REQ.CLAIMS.LIST", Operation::List),
                ("$SYS.REQ.CLAIMS.UPDATE", Operation::Update),
                ("$SYS.REQ.CLAIMS.DELETE", Operation::Delete),
            ]);
        }
        if self == TokenStore::Full {
            all.extend([
                ("$SYS.REQ.CLAIMS.PACK", Operation::Pack),
                ("$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP", Operation::Lookup),
            ]);
        }
        all
    }
}

/// The result of a change as a text, and the account.
struct Outcome {
    account: Option<String>,
    outcome: Result<String, String>,
}

impl Outcome {
    fn failed(account: Option<&str>, problem: String) -> Self {
        Outcome {
            account: account.map(String::from),
            outcome: Err(problem),
        }
    }
}

impl System {
    /// Subscribes to requests about tokens, in operator mode.
    pub(super) async fn serve_claims(self: &Rc<Self>) -> Result<(), ClientError> {
        if self.monitor.shared.access().operators().is_none() {
            return Ok(());
        }
        let store = TokenStore::of(self.directory().as_deref());
        for (subject, operation) in store.subjects() {
            let requests = self.client.subscribe(subject).await?;
            tokio::task::spawn_local(Rc::clone(self).answer_claims(requests, operation, store));
        }
        Ok(())
    }

    fn directory(&self) -> Option<Arc<Directory>> {
        let resolver = self.monitor.shared.common.resolver.get()?;
        resolver.directory().cloned()
    }

    /// Responds to the requests of one subject.
    async fn answer_claims(
        self: Rc<Self>,
        mut requests: Subscription,
        operation: Operation,
        store: TokenStore,
    ) {
        while let Some(request) = requests.next().await {
            let done = match (operation, self.directory()) {
                (Operation::Update, directory) => {
                    self.take_update(&request, directory, store).await
                }
                (_, None) => continue,
                (Operation::Delete, Some(directory)) => {
                    self.take_deletion(&request, directory).await
                }
                (operation, Some(directory)) => match request.reply() {
                    None => continue,
                    Some(reply) => {
                        self.show_claims(&request, reply, operation, directory)
                            .await
                    }
                },
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// Responds to requests that change nothing.
    async fn show_claims(
        &self,
        request: &Message,
        reply: &str,
        operation: Operation,
        directory: Arc<Directory>,
    ) -> Result<(), Disconnected> {
        if operation == Operation::Lookup {
            let account = account_of(request.subject()).unwrap_or_default().to_owned();
            let token = off_thread(move || directory.load(&account)).await.flatten();
            return self.send(reply, token.unwrap_or_default()).await;
        }
        let Some(Ok(tokens)) = off_thread(move || directory.tokens()).await else {
            // Without the list of tokens, no response is correct.
            error!("the account tokens cannot be read");
            return Ok(());
        };
        if operation == Operation::List {
            let accounts: Vec<&String> = tokens.iter().map(|(account, _)| account).collect();
            let answer = self.envelope.answer(&self.monitor, json!(accounts));
            return self.reply(request, &answer).await;
        }
        if request.payload() != hash_of_all(&tokens) {
            for (account, token) in tokens {
                self.send(reply, format!("{account}|{token}")).await?;
            }
        }
        // An empty message marks the end of the response.
        self.send(reply, String::new()).await
    }

    async fn send(&self, to: &str, text: String) -> Result<(), Disconnected> {
        unless_disconnected(to, self.client.publish(to, text).await)
    }

    async fn take_update(
        &self,
        request: &Message,
        directory: Option<Arc<Directory>>,
        store: TokenStore,
    ) -> Result<(), Disconnected> {
        let named = account_of(request.subject());
        let token = std::str::from_utf8(request.payload()).unwrap_or_default();
        let result = match verified::<AccountClaims>(token) {
            Ok(claims) if named.is_some_and(|named| named != claims.subject) => {
                let problem = "subject does not match jwt content";
                Outcome::failed(
                    named,
                    format!("{} resulted in error - {problem}", store.update()),
                )
            }
            Ok(claims) => Outcome {
                outcome: self.update(token, &claims, directory, store).await,
                account: Some(claims.subject),
            },
            Err(problem) => {
                let named = named.filter(|_| store != TokenStore::Full);
                let problem = words(&problem);
                Outcome::failed(
                    Some(named.unwrap_or(NO_ACCOUNT)),
                    format!("{} resulted in error - {problem}", store.update()),
                )
            }
        };
        self.report(request, result).await
    }

    /// Stores a token. Returns the message for the requester.
    async fn update(
        &self,
        token: &str,
        claims: &Claims<AccountClaims>,
        directory: Option<Arc<Directory>>,
        store: TokenStore,
    ) -> Result<String, String> {
        let shared = &self.monitor.shared;
        let access = shared.access();
        let operators = access
            .operators()
            .ok_or_else(|| "not in operator mode".to_owned())?;
        let account = claims.subject.clone();
        // Untrusted tokens are not stored, so that they are not returned by a lookup.
        let has_expired = match operators.account(token, unix_seconds()) {
            Ok(_) => false,
            Err(OperatorError::Expired(_)) => true,
            Err(problem) => return Err(format!("jwt validation failed - {problem}")),
        };
        let is_known = access.knows_authority(&account);
        if store != TokenStore::Full && !is_known {
            return Ok(format!("{} skipped", store.update()));
        }
        if let Some(directory) = directory {
            let (account, token) = (account.clone(), token.to_owned());
            let stored = off_thread(move || directory.replace(&account, &token)).await;
            let failed = |problem: &dyn std::fmt::Display| {
                format!("{} resulted in error - {problem}", store.update())
            };
            match stored {
                Some(Ok(())) => {}
                Some(Err(problem)) => return Err(failed(&problem)),
                None => return Err(failed(&"the server stops")),
            }
        }
        let is_wanted = is_known || access.missing_exporters().contains(&account.as_str());
        let done = match has_expired {
            true => shared.remove_accounts(&[account]),
            false if is_wanted => shared.add_account(&account, token),
            // The account is loaded when it is needed.
            false => Ok(()),
        };
        done.map_err(|problem| format!("{} resulted in error - {problem}", store.update()))?;
        look_up_exporters(shared);
        Ok(store.updated().to_owned())
    }

    async fn take_deletion(
        &self,
        request: &Message,
        directory: Arc<Directory>,
    ) -> Result<(), Disconnected> {
        let token = std::str::from_utf8(request.payload()).unwrap_or_default();
        let by = verified::<GenericClaims>(token).map(|claims| claims.subject);
        let outcome = match &by {
            Ok(_) => self.delete(token, directory).await,
            Err(problem) => Err(words(problem)),
        };
        let result = Outcome {
            account: None,
            outcome: outcome.map_err(|problem| {
                let by = by.unwrap_or_default();
                format!("delete accounts request by {by} failed - {problem}")
            }),
        };
        self.report(request, result).await
    }

    async fn delete(&self, token: &str, directory: Arc<Directory>) -> Result<String, String> {
        let options = directory.options();
        if !options.is_cache && !options.allow_delete {
            return Err("delete must be enabled in server config".into());
        }
        let shared = &self.monitor.shared;
        let access = shared.access();
        let operators = access
            .operators()
            .ok_or_else(|| "not in operator mode".to_owned())?;
        let accounts =
            operators
                .deletions(token, unix_seconds())
                .map_err(|problem| match problem {
                    OperatorError::NotSelfSigned(_) => "not self signed".to_owned(),
                    OperatorError::Untrusted(_) => "not trusted".to_owned(),
                    OperatorError::Expired(_) => problem.to_string(),
                    _ => "malformed request".to_owned(),
                })?;
        let system = access.account(AccountId::SYSTEM);
        if system.is_some_and(|system| accounts.contains(&system.name)) {
            return Err("not allowed to delete system account".into());
        }
        let all = accounts.clone();
        let deleted = off_thread(move || delete_all(&directory, &all)).await;
        match deleted {
            Some(Ok(())) => {}
            Some(Err(problem)) => return Err(problem.to_string()),
            None => return Err("the server stops".into()),
        }
        let forgotten = shared.remove_accounts(&accounts);
        forgotten.map_err(|problem| problem.to_string())?;
        Ok(format!("deleted {} accounts", accounts.len()))
    }

    /// Logs the result of a change, and reports it to the requester.
    async fn report(&self, request: &Message, result: Outcome) -> Result<(), Disconnected> {
        let Outcome { account, outcome } = result;
        let mut answer = match &outcome {
            Ok(message) => {
                debug!("{message} - {}", account.as_deref().unwrap_or_default());
                let data = json!({"code": 200, "message": message});
                self.envelope.answer(&self.monitor, data)
            }
            Err(problem) => {
                error!("{problem} - {}", account.as_deref().unwrap_or_default());
                self.envelope.refusal(&self.monitor, 500, problem)
            }
        };
        let field = if outcome.is_ok() { "data" } else { "error" };
        if let Some(account) = account {
            answer[field]["account"] = Value::from(account);
        }
        self.reply(request, &answer).await
    }
}

/// Requests unknown accounts from which other accounts import.
fn look_up_exporters(shared: &Shared) {
    for exporter in shared.access().missing_exporters() {
        // The resolver adds the account. Nothing waits for that here.
        drop(shared.common.look_up_account(exporter.to_owned(), 0));
    }
}

/// Deletes tokens. A missing token counts as deleted.
fn delete_all(directory: &Directory, accounts: &[String]) -> Result<(), StoreError> {
    accounts
        .iter()
        .try_for_each(|account| directory.delete(account).map(drop))
}

/// Runs disk work on another thread, so that it does not delay this thread. Returns `None` if the server
/// stops.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    spawn_blocking(work).await.ok()
}

/// Returns the account in `$SYS.REQ.ACCOUNT.<account>.CLAIMS.…` or `$SYS.ACCOUNT.<account>.CLAIMS.…`.
fn account_of(subject: &str) -> Option<&str> {
    let rest = subject.strip_prefix("$SYS.REQ.ACCOUNT.");
    let rest = rest.or_else(|| subject.strip_prefix("$SYS.ACCOUNT."))?;
    rest.split_once('.').map(|(account, _)| account)
}

/// Combines the hashes of all tokens by XOR. Two folders with the same tokens have the same result.
fn hash_of_all(tokens: &[(String, String)]) -> [u8; SHA256_OUTPUT_LEN] {
    let mut all = [0; SHA256_OUTPUT_LEN];
    for (_, token) in tokens {
        let hash = digest(&SHA256, token.as_bytes());
        for (byte, more) in all.iter_mut().zip(hash.as_ref()) {
            *byte ^= more;
        }
    }
    all
}

/// Returns the error text of a token. It equals nats-server's if nats-server has one.
fn words(problem: &JwtError) -> String {
    match problem {
        JwtError::Parts => "expected 3 chunks".into(),
        JwtError::Type(..) => "not account claim".into(),
        JwtError::Signature => "claim failed V2 signature verification".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_store_determines_served_requests() {
        for (store, count) in [
            (TokenStore::Full, 7),
            (TokenStore::Cache, 5),
            (TokenStore::Nowhere, 2),
        ] {
            let subjects = store.subjects();
            assert_eq!(subjects.len(), count, "{store:?}");
            assert!(
                subjects
                    .iter()
                    .any(|(_, operation)| *operation == Operation::Update)
            );
        }
    }

    #[test]
    fn accounts_in_subjects() {
        for (subject, account) in [
            ("$SYS.REQ.ACCOUNT.A.CLAIMS.UPDATE", Some("A")),
            ("$SYS.ACCOUNT.A.CLAIMS.UPDATE", Some("A")),
            ("$SYS.REQ.CLAIMS.UPDATE", None),
        ] {
            assert_eq!(account_of(subject), account, "{subject}");
        }
    }

    #[test]
    fn the_same_tokens_have_the_same_hash_in_any_order() {
        let token = |text: &str| (String::new(), text.to_owned());
        let (one, two) = (token("a"), token("b"));
        let both = hash_of_all(&[one.clone(), two.clone()]);
        assert_eq!(both, hash_of_all(&[two, one.clone()]));
        assert_ne!(both, hash_of_all(&[one]));
        assert_eq!(hash_of_all(&[]), [0; SHA256_OUTPUT_LEN]);
    }
}
