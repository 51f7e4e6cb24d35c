//! Lookup of unknown accounts in operator mode.
//!
//! A thread fetches each account once for all concurrent requests. It adds the account to the server's
//! [`Access`](fanline_engine::Access). Then it completes each request through the requester's shard, so that
//! the shard knows the account before the requester continues.

mod url;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fanline_engine::auth::nkey::{KeyKind, PublicKey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::account_directory::{Directory, Stored};
use crate::ipc::{AccountRequest, AccountResolver, Command};
use crate::options::ResolverOptions;
use crate::shared::Shared;

/// Largest number of concurrent lookups. Further lookups wait.
const FETCHES_MAX: usize = 64;
/// Time limit of a lookup, as in nats-server.
const FETCH_TIMEOUT: Duration = Duration::from_millis(1_900);

/// A source of account tokens.
#[derive(Debug)]
enum Resolver {
    /// Only accounts in the configuration.
    Memory,
    Directory(Arc<Directory>),
    Url(url::Url),
}

impl Resolver {
    fn new(options: &ResolverOptions) -> io::Result<Self> {
        Ok(match options {
            ResolverOptions::Memory => Resolver::Memory,
            ResolverOptions::Directory(options) => {
                Resolver::Directory(Arc::new(Directory::open(options.clone())?))
            }
            ResolverOptions::Url(url) => {
                let url = url::Url::new(url);
                Resolver::Url(url.map_err(|error| io::Error::other(error.to_string()))?)
            }
        })
    }

    /// Returns an account's token, if the source has it.
    async fn fetch(&self, account: &str) -> Option<String> {
        // File names and URLs contain the name, so it must be a valid key.
        PublicKey::parse_as(KeyKind::Account, account)?;
        match self {
            Resolver::Memory => None,
            Resolver::Directory(directory) => directory.load(account),
            Resolver::Url(url) => match tokio::time::timeout(FETCH_TIMEOUT, url.get(account)).await
            {
                Ok(Ok(token)) => Some(token),
                Ok(Err(error)) => {
                    warn!("could not fetch <{}>: {error}", url.url_of(account));
                    None
                }
                Err(_) => {
                    warn!("could not fetch <{}>: timeout", url.url_of(account));
                    None
                }
            },
        }
    }
}

/// Starts the thread. It ends with the server.
pub(crate) fn start(
    options: &ResolverOptions,
    shared: &Arc<Shared>,
) -> io::Result<AccountResolver> {
    let resolver = Arc::new(Resolver::new(options)?);
    let directory = match &*resolver {
        Resolver::Directory(directory) => Some(Arc::clone(directory)),
        Resolver::Memory | Resolver::Url(_) => None,
    };
    if let Some(directory) = &directory {
        store_known(directory, shared);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // The channel contains at most one request for each connection that authenticates.
    let (wanted, requests) = mpsc::unbounded_channel();
    let shared = Arc::downgrade(shared);
    std::thread::Builder::new()
        .name("resolver".into())
        .spawn(move || runtime.block_on(run(&resolver, &shared, requests)))?;
    Ok(AccountResolver { wanted, directory })
}

/// Stores the configured accounts in the folder. A newer token in the folder takes precedence, because the
/// account was updated after the configuration was written.
fn store_known(directory: &Directory, shared: &Shared) {
    let access = shared.access();
    let known = access.accounts().iter();
    for (account, authority) in known.filter_map(|a| Some((&a.name, a.authority.as_ref()?))) {
        match directory.store(account, authority.token()) {
            Ok(Stored::Updated) => {}
            Ok(Stored::Older) => {
                let stored = directory.load(account);
                if let Some(stored) = stored.filter(|stored| stored != authority.token()) {
                    add(shared, account, &stored);
                }
            }
            Err(error) => warn!("account {account} could not be stored: {error}"),
        }
    }
}

async fn run(
    resolver: &Arc<Resolver>,
    shared: &Weak<Shared>,
    mut requests: mpsc::UnboundedReceiver<AccountRequest>,
) {
    let mut waiting: HashMap<String, Vec<AccountRequest>> = HashMap::new();
    let mut fetches = JoinSet::new();
    let fetch = |account: String| {
        let resolver = Arc::clone(resolver);
        async move {
            let token = resolver.fetch(&account).await;
            (account, token)
        }
    };
    loop {
        tokio::select! {
            next = requests.recv(), if waiting.len() < FETCHES_MAX => {
                let Some(next) = next else { return };
                let account = next.account.clone();
                let others = waiting.entry(account.clone()).or_default();
                if others.is_empty() {
                    fetches.spawn(fetch(account));
                }
                others.push(next);
            }
            Some(fetched) = fetches.join_next() => {
                let Ok((account, token)) = fetched else { continue };
                let Some(shared) = shared.upgrade() else { return };
                let added = token.is_some_and(|token| add(&shared, &account, &token));
                for request in waiting.remove(&account).unwrap_or_default() {
                    shared.send(request.shard, Command::Barrier(request.done));
                }
                if !added {
                    continue;
                }
                // The account may import from accounts that are still unknown.
                for exporter in shared.access().missing_exporters() {
                    if waiting.len() < FETCHES_MAX && !waiting.contains_key(exporter) {
                        waiting.insert(exporter.to_owned(), Vec::new());
                        fetches.spawn(fetch(exporter.to_owned()));
                    }
                }
            }
        }
    }
}

/// Adds an account by its token.
fn add(shared: &Shared, account: &str, token: &str) -> bool {
    let added = shared.add_account(account, token);
    match &added {
        Ok(()) => debug!("account {account} was added"),
        Err(error) => warn!("account {account} was rejected: {error}"),
    }
    added.is_ok()
}
