//! Checks options of leaf nodes, and converts them to the engine's settings.

use std::net::SocketAddr;
use std::sync::Arc;

use fanline_engine::auth::{Access, AccessConfig, ConnectionKind, GLOBAL_ACCOUNT};
use fanline_engine::leaf::LeafListener;
use fanline_engine::{Filter, ShardConfig};

use super::Hub;
use crate::listen::reachable_urls;
use crate::options::{
    ClientCertificates, LeafnodeListener, LeafnodeOptions, LeafnodeRemote, Options,
};
use crate::tls;

/// The oldest version that `min_version` may require. Servers of earlier versions do not send their version.
const OLDEST_VERSION: [u32; 3] = [2, 8, 0];

/// Checks all options of leaf nodes.
///
/// # Errors
///
/// Returns the error of the first invalid option.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let access = options.auth.directory();
    let known = |account: &str| match access.account_id(account) {
        Some(_) => Ok(()),
        None => Err(format!(
            "cannot find local account {account:?} specified in leafnode authorization"
        )),
    };
    let remotes = &options.leafnodes.remotes;
    for (at, remote) in remotes.iter().enumerate() {
        let is_same = |other: &LeafnodeRemote| {
            (&other.urls, &other.account) == (&remote.urls, &remote.account)
        };
        if remotes[..at].iter().any(is_same) {
            let (urls, account) = (remote.shown_urls(), &remote.account);
            return Err(format!(
                "duplicate remote urls={urls:?}, account={account:?}"
            ));
        }
        known(&remote.account)?;
        let denied = remote.deny_imports.iter().chain(&remote.deny_exports);
        for subject in denied {
            let is_subject = Filter::parse(subject.as_bytes()).is_ok();
            is_subject
                .then_some(())
                .ok_or_else(|| format!("leafnode remote: {subject:?} is not a valid subject"))?;
        }
        Hub::new(0, remote)?;
    }
    let Some(listener) = &options.leafnodes.listener else {
        return Ok(());
    };
    let accounts = listener.users.iter().map(|user| &user.account);
    for account in accounts.chain([&listener.account]).flatten() {
        known(account)?;
    }
    if let Some(version) = &listener.min_version {
        check_version(version)?;
    }
    own_access(listener).map(drop)
}

/// Checks a minimum version.
///
/// # Errors
///
/// Fails if the version is invalid or too old.
pub(crate) fn check_version(version: &str) -> Result<(), String> {
    let numbers: Result<Vec<u32>, _> = version
        .trim_start_matches('v')
        .split('.')
        .map(str::parse)
        .collect();
    let is_known = |numbers: &Vec<u32>| numbers.len() == 3 && numbers[..] >= OLDEST_VERSION[..];
    match numbers.as_ref().is_ok_and(is_known) {
        true => Ok(()),
        false => Err(format!(
            "invalid leafnode minimum version {version:?}: it must be 2.8.0 or later"
        )),
    }
}

/// Returns the engine's settings of a listener.
///
/// # Errors
///
/// Fails if the listener's users are invalid.
pub(crate) fn listener_info(
    listener: &LeafnodeListener,
    address: SocketAddr,
) -> Result<LeafListener, String> {
    let urls = match &listener.advertise {
        _ if listener.no_advertise => Vec::new(),
        Some(advertised) => vec![advertised.clone()],
        None if address.ip().is_unspecified() => reachable_urls(address),
        None => vec![address.to_string()],
    };
    Ok(LeafListener {
        host: listener.host.clone(),
        port: address.port(),
        urls,
        tls: tls::info_of(listener.tls.as_ref(), false),
        access: own_access(listener)?.map(Arc::new),
        account: listener.account.clone(),
        needs_proxy: listener.needs_proxy,
        min_version: listener.min_version.clone(),
        isolates: listener.isolates,
        compression: listener.compression.clone(),
    })
}

/// Returns the listener's options after a reload, which does not change the address.
pub(crate) fn listener_reloaded(
    before: &LeafnodeOptions,
    new: Option<LeafnodeListener>,
) -> Option<LeafnodeListener> {
    let before = before.listener.clone()?;
    Some(match new {
        None => before,
        Some(new) => LeafnodeListener {
            compression: new.compression,
            tls: new.tls,
            auth_timeout: new.auth_timeout,
            ..before
        },
    })
}

/// Returns the engine's settings of the listener after a reload.
pub(crate) fn listener_info_reloaded(
    before: &ShardConfig,
    options: &LeafnodeOptions,
) -> Option<Arc<LeafListener>> {
    let before = before.leafs.as_deref()?;
    let listener = options.listener.as_ref()?;
    Some(Arc::new(LeafListener {
        compression: listener.compression.clone(),
        tls: tls::info_of(listener.tls.as_ref(), false),
        // A reload does not change the users, but may change `verify_and_map`.
        access: own_access(listener).ok()?.map(Arc::new),
        ..before.clone()
    }))
}

/// Returns the access rules of the listener's own users, if there are any.
fn own_access(listener: &LeafnodeListener) -> Result<Option<Access>, String> {
    if listener.users.is_empty() {
        return Ok(None);
    }
    let mut config = AccessConfig::default();
    for user in &listener.users {
        let account = user.account.as_deref().unwrap_or(GLOBAL_ACCOUNT);
        config.account_mut(account).users.push(user.user.clone());
    }
    let tls = listener.tls.as_ref();
    if tls.is_some_and(|tls| tls.client_certificates == ClientCertificates::RequiredAndMapped) {
        config.certificate_kinds =
            vec![ConnectionKind::Leafnode, ConnectionKind::LeafnodeWebSocket];
    }
    let access = Access::new(config).map_err(|error| error.to_string())?;
    Ok(Some(access))
}
