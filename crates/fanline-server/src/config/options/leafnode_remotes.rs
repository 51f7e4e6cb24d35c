//! Remotes of leaf nodes.

use fanline_engine::Filter;
use serde_json::{Value as Json, json};

use super::leafnodes::{COMPRESSIONS, Compression, compression, show_compression};
use super::tls::{self, TlsBlock};
use crate::client::url::Url;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::leaf;
use crate::{LeafnodeProxy, LeafnodeRemote, LinkCompression};

/// An entry of `remotes`.
pub(super) struct RemoteBlock(LeafnodeRemote);

impl table::Block for RemoteBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "url",
            Texts,
            |block, given| {
                let urls = given.texts()?.into_iter();
                block.0.urls.extend(urls.filter(|url| !url.trim().is_empty()));
                Ok(())
            },
            |block| json!(block.0.shown_urls()),
        )
        .shown_as("urls")
        .alias(&["urls"])
        .help(
            "`nats-leaf://user:password@host:7422` or shorter, or `wss://host:443`; a list for several servers \
             of one cluster, of which one is used at a time. `ws` and `wss` use WebSocket, `tls` and `wss` \
             require TLS; any other scheme is TCP, with TLS if the other server requires it.",
        ),
        Entry::<Self>::new(
            "account",
            Text,
            |block, given| given.overwrite(&mut block.0.account),
            |block| json!(block.0.account),
        )
        .alias(&["local"])
        .default("$G")
        .help("The local account."),
        Entry::<Self>::path("credentials", |block| &mut block.0.credentials)
            .alias(&["creds"])
            .help("Credentials file with a user's JWT and the seed of its key."),
        Entry::<Self>::text("nkey", |block| &mut block.0.nkey)
            .shown_as("seed")
            .alias(&["seed"])
            .secret()
            .help("Seed of an nkey, or a file with it."),
        Entry::<Self>::new(
            "tls",
            Block,
            |block, given| set(&mut block.0.tls, tls::read(given).map(Some)),
            |block| block.0.tls.as_ref().map_or(Json::Null, tls::show),
        )
        .block::<TlsBlock>()
        .dialer()
        .like("tls")
        .help("TLS to the remote: `ca_file`, `cert_file`, `key_file`, `handshake_first`, `timeout`."),
        Entry::<Self>::flag("hub", |block| &mut block.0.is_hub)
            .default("false")
            .help("This side is the hub, although it connects."),
        Entry::<Self>::new(
            "deny_imports",
            Texts,
            |block, given| set(&mut block.0.deny_imports, subjects(given)),
            |block| json!(block.0.deny_imports),
        )
        .alias(&["deny_import"])
        .help("Subjects that are not imported."),
        Entry::<Self>::new(
            "deny_exports",
            Texts,
            |block, given| set(&mut block.0.deny_exports, subjects(given)),
            |block| json!(block.0.deny_exports),
        )
        .alias(&["deny_export"])
        .help("Subjects that are not exported."),
        Entry::<Self>::flag("no_randomize", |block| &mut block.0.no_randomize)
            .alias(&["dont_randomize"])
            .default("false")
            .help("Try URLs in their order."),
        Entry::<Self>::flag("ws_compression", |block| &mut block.0.websocket_compression)
            .alias(&["ws_compress", "websocket_compress", "websocket_compression"])
            .default("false")
            .help("Over WebSocket, request WebSocket compression instead."),
        Entry::<Self>::flag("ws_no_masking", |block| &mut block.0.websocket_no_masking)
            .alias(&["websocket_no_masking"])
            .default("false")
            .help("Over WebSocket, request frames without masks."),
        Entry::<Self>::new(
            "compression",
            Any,
            |block, given| set(&mut block.0.compression, compression(given, &LinkCompression::default())),
            |block| show_compression(&block.0.compression),
        )
        .block::<Compression>()
        .default("s2_auto")
        .limit(COMPRESSIONS)
        .help("Compression of the connection, as for the listener."),
        Entry::<Self>::duration("first_info_timeout", |block| &mut block.0.first_info_timeout)
            .needs_unit()
            .default("1s")
            .help("Time limit of the remote's INFO."),
        Entry::<Self>::maybe_duration("dial_timeout", |block| &mut block.0.dial_timeout)
            .needs_unit()
            .default("that of the block")
            .help("Time limit of a connection attempt."),
        Entry::ignored("jetstream_cluster_migrate", Any)
            .alias(&["js_cluster_migrate"])
            .help("No effect: a single server has nothing to migrate."),
        Entry::<Self>::flag("isolate_leafnode_interest", |block| &mut block.0.isolates)
            .alias(&["isolate"])
            .default("false")
            .help("Do not send subscriptions of other leaf nodes to the remote."),
        Entry::<Self>::flag("request_isolation", |block| &mut block.0.requests_isolation)
            .default("false")
            .help("Request that the remote does not send subscriptions of its other leaf nodes."),
        Entry::<Self>::flag("disabled", |block| &mut block.0.is_disabled)
            .default("false")
            .help("Do not dial the remote."),
        Entry::<Self>::flag("ignore_discovered_servers", |block| {
            &mut block.0.ignore_discovered_servers
        })
        .default("false")
        .help("Ignore addresses that the remote advertises."),
        Entry::<Self>::new(
            "proxy",
            Block,
            |block, given| set(&mut block.0.proxy, read_proxy(given).map(Some)),
            |block| block.0.proxy.as_ref().map_or(Json::Null, show_proxy),
        )
        .block::<ProxyBlock>()
        .help("An HTTP proxy to the remote (`CONNECT`)."),
    ];
}

/// Reads an entry of `remotes`.
pub(super) fn read(given: &Given<'_>) -> Read<LeafnodeRemote> {
    let mut remote = LeafnodeRemote::new("");
    remote.urls.clear();
    let RemoteBlock(remote) = table::read(RemoteBlock(remote), given)?;
    if remote.credentials.is_some() && remote.nkey.is_some() {
        return Err(given.fault("remote leafnode can not have both creds and nkey defined"));
    }
    match remote.urls.is_empty() {
        true => Err(given.fault("remote leafnode needs a url")),
        false => Ok(remote),
    }
}

/// Returns an entry of `remotes` as JSON.
pub(super) fn show(remote: &LeafnodeRemote) -> Json {
    let mut shown = table::show(RemoteBlock(remote.clone()));
    // The URLs are masked later, so that a changed secret counts as a change.
    let has_secret = remote.urls.iter().any(|url| url.contains('@'));
    shown["password"] = json!(has_secret.then_some(&remote.urls));
    shown
}

fn subjects(given: &Given<'_>) -> Read<Vec<String>> {
    let subjects = given.texts()?;
    let is_none = |subject: &&String| Filter::parse(subject.as_bytes()).is_err();
    match subjects.iter().find(is_none) {
        Some(subject) => Err(given.fault(format!("subject {subject:?} is not a valid subject"))),
        None => Ok(subjects),
    }
}

/// The block `proxy`.
struct ProxyBlock(LeafnodeProxy);

impl table::Block for ProxyBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "url",
            Text,
            |block, given| {
                given.text()?.clone_into(&mut block.0.url);
                Ok(())
            },
            |block| json!(block.0.url),
        )
        .help("`http://host:3128`, or `https://host:443` for TLS to the proxy."),
        Entry::<Self>::text("username", |block| &mut block.0.username)
            .help("The user name for the proxy; needs a `password`."),
        Entry::<Self>::text("password", |block| &mut block.0.password)
            .secret()
            .help("Password of `username`."),
        Entry::<Self>::maybe_duration("timeout", |block| &mut block.0.timeout)
            .needs_unit()
            .default("`dial_timeout`")
            .help("Time limit until the remote is reached."),
        Entry::<Self>::new(
            "tls",
            Block,
            |block, given| set(&mut block.0.tls, tls::read(given).map(Some)),
            |block| block.0.tls.as_ref().map_or(Json::Null, tls::show),
        )
        .block::<TlsBlock>()
        .dialer()
        .like("tls")
        .help("TLS to the proxy, with an `https` URL: `ca_file`, `cert_file`, `key_file`."),
    ];
}

fn read_proxy(given: &Given<'_>) -> Read<LeafnodeProxy> {
    let ProxyBlock(proxy) = table::read(ProxyBlock(LeafnodeProxy::new("")), given)?;
    match leaf::check_proxy(&proxy) {
        Ok(_) => Ok(proxy),
        Err(why) => Err(given.fault(why)),
    }
}

fn show_proxy(proxy: &LeafnodeProxy) -> Json {
    let mut shown = table::show(ProxyBlock(proxy.clone()));
    // The URL may contain a password, too. It is masked later, so that a changed password counts as a change.
    let url = Url::split(&proxy.url);
    if url.user_info.is_some() {
        shown["url"] = url.without_user_info().into();
        if proxy.password.is_none() {
            shown["password"] = json!(proxy.url);
        }
    }
    shown
}
