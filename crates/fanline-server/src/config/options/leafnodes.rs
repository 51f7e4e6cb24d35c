//! Leaf nodes.

use fanline_engine::access::{Identity, User};
use serde_json::{Value as Json, json};

use super::{duration_text, text_or_null, tls};
use crate::config::access;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Path, Port, Text, Texts,
};
use crate::config::table::{Entry, within, works};
use crate::config::value::Value;
use crate::{LeafCompression, LeafnodeListener, LeafnodeRemote, LeafnodeUser};

const COMPRESSIONS: &str = "`off`, `accept`, `s2_auto`, `s2_fast`, `s2_better`, `s2_best`";

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "leafnodes",
        Block,
        |draft, given| {
            let host = draft.loaded.options.host.clone();
            let leafnodes = &mut draft.loaded.options.leafnodes;
            let mut listener = LeafnodeListener {
                host,
                ..LeafnodeListener::default()
            };
            let mut port = None;
            for field in given.fields()? {
                match field.key.to_ascii_lowercase().as_str() {
                    "reconnect" | "reconnect_delay" | "reconnect_interval" => {
                        leafnodes.reconnect = field.duration()?;
                    }
                    "dial_timeout" => leafnodes.dial_timeout = field.duration()?,
                    "remotes" => {}
                    _ => read_listener(&mut listener, &mut port, &field)?,
                }
            }
            leafnodes.listener = port.map(|port| LeafnodeListener { port, ..listener });
            Ok(())
        },
        |loaded| show(&loaded.options.leafnodes),
    )
    .alias(&["leaf"])
    .default("off")
    .help("Servers that attach to this one, and those that it attaches to."),
    within("leafnodes.listen", Address).help("`host` and `port` in one."),
    within("leafnodes.host", Text)
        .alias(&["net"])
        .help("The address to listen on."),
    within("leafnodes.port", Port)
        .default("off")
        .help("The port; -1 picks a free one."),
    within("leafnodes.authorization", Block).help("Who may come as a leaf node; clients' users when missing."),
    within("leafnodes.authorization.user", Text)
        .alias(&["username"])
        .help("The one user."),
    within("leafnodes.authorization.password", Text)
        .alias(&["pass"])
        .secret()
        .help("Its password."),
    within("leafnodes.authorization.nkey", Text).help("The public key of one who signs instead."),
    within("leafnodes.authorization.users", Blocks).help("Several users, each with its `account`."),
    within("leafnodes.authorization.users.*", Any).help("As of clients."),
    within("leafnodes.authorization.account", Text).help("The account of the one user, or of everybody."),
    within("leafnodes.authorization.timeout", Any).help("How long it may take: as for clients."),
    within("leafnodes.authorization.proxy_required", Bool).help("Not supported."),
    within("leafnodes.tls", Block)
        .like("tls")
        .help("TLS for this listener."),
    within("leafnodes.advertise", Text).help("The address that leaf nodes are told."),
    within("leafnodes.no_advertise", Bool)
        .default("false")
        .help("They are told none."),
    within("leafnodes.min_version", Text).help("The oldest version that may come."),
    within("leafnodes.compression", Any)
        .default("s2_auto")
        .limit(COMPRESSIONS)
        .help("Whether links are compressed, or `{ mode, rtt_thresholds }`: for `s2_auto` the round trips up to which not at all, fast, better. `accept` does as the other side wants."),
    within("leafnodes.compression.mode", Text).limit(COMPRESSIONS).help("The same."),
    within("leafnodes.compression.rtt_thresholds", Texts)
        .alias(&["thresholds", "rtts"])
        .default("10ms, 50ms, 100ms")
        .help("Of `s2_auto`."),
    within("leafnodes.reconnect", Duration)
        .alias(&["reconnect_delay", "reconnect_interval"])
        .default("1s")
        .help("How long to wait before a remote is dialled again; up to eight times as long while nobody answers."),
    within("leafnodes.dial_timeout", Duration)
        .default("1s")
        .help("How long dialling may take."),
    within("leafnodes.isolate_leafnode_interest", Bool)
        .alias(&["isolate"])
        .default("false")
        .help("What one leaf node wants is not told to others."),
    within("leafnodes.write_deadline", Duration).help("Not supported: the server's holds."),
    within("leafnodes.write_timeout", Text).help("Not supported."),
    works(
        "leafnodes.remotes",
        Blocks,
        |draft, given| {
            let remotes: Read<Vec<_>> = given.items()?.iter().map(read_remote).collect();
            draft.loaded.options.leafnodes.remotes = remotes?;
            Ok(())
        },
        |loaded| {
            let remotes = &loaded.options.leafnodes.remotes;
            remotes.iter().map(show_remote).collect()
        },
    )
    .reloads()
    .help("Servers to attach to."),
    within("leafnodes.remotes.url", Text).help("`nats-leaf://user:password@host:7422` or shorter, or `wss://host:443`."),
    within("leafnodes.remotes.urls", Texts).help("Several of one cluster; one is used at a time."),
    within("leafnodes.remotes.account", Text)
        .alias(&["local"])
        .default("$G")
        .help("The account here."),
    within("leafnodes.remotes.credentials", Path)
        .alias(&["creds"])
        .help("A file with a user's JWT and the seed of its key."),
    within("leafnodes.remotes.nkey", Text)
        .alias(&["seed"])
        .secret()
        .help("The seed of an nkey, or a file with it."),
    within("leafnodes.remotes.tls", Block)
        .like("tls")
        .help("TLS towards it: `ca_file`, `cert_file`, `key_file`, `handshake_first`, `timeout`."),
    within("leafnodes.remotes.hub", Bool)
        .default("false")
        .help("This side is the hub, though it dials."),
    within("leafnodes.remotes.deny_imports", Texts)
        .alias(&["deny_import"])
        .help("Subjects that are not taken from there."),
    within("leafnodes.remotes.deny_exports", Texts)
        .alias(&["deny_export"])
        .help("Subjects that do not go there."),
    within("leafnodes.remotes.no_randomize", Bool)
        .default("false")
        .help("Addresses are tried in their order."),
    within("leafnodes.remotes.ws_compression", Bool)
        .alias(&["websocket_compression"])
        .default("false")
        .help("Over WebSocket, its own compression is asked for; it then takes the place of the other."),
    within("leafnodes.remotes.ws_no_masking", Bool)
        .alias(&["websocket_no_masking"])
        .default("false")
        .help("Over WebSocket, what is sent goes unmasked if the other side agrees."),
    within("leafnodes.remotes.compression", Any)
        .default("s2_auto")
        .limit(COMPRESSIONS)
        .help("Whether the link is compressed; as of the listener."),
    within("leafnodes.remotes.compression.mode", Text).limit(COMPRESSIONS).help("The same."),
    within("leafnodes.remotes.compression.rtt_thresholds", Texts)
        .alias(&["thresholds", "rtts"])
        .help("Of `s2_auto`."),
    within("leafnodes.remotes.first_info_timeout", Duration)
        .default("1s")
        .help("How long the other server's first word may take."),
    within("leafnodes.remotes.dial_timeout", Duration).help("Not supported: that of the block holds."),
    within("leafnodes.remotes.jetstream_cluster_migrate", Any)
        .alias(&["js_cluster_migrate"])
        .help("There is nothing to migrate on a server that runs alone."),
    within("leafnodes.remotes.isolate_leafnode_interest", Bool)
        .alias(&["isolate"])
        .default("false")
        .help("What other leaf nodes want is not told to it."),
    within("leafnodes.remotes.request_isolation", Bool)
        .default("false")
        .help("It is asked not to tell what its other leaf nodes want."),
    within("leafnodes.remotes.disabled", Bool)
        .default("false")
        .help("It is not dialled."),
    within("leafnodes.remotes.ignore_discovered_servers", Bool)
        .default("false")
        .help("Only these addresses are dialled, not those that the other server tells."),
    within("leafnodes.remotes.proxy", Block).help("Not supported."),
    within("leafnodes.remotes.proxy.*", Any).help("Not supported."),
];

fn read_listener(
    listener: &mut LeafnodeListener,
    port: &mut Option<u16>,
    field: &Given<'_>,
) -> Read<()> {
    match field.key.to_ascii_lowercase().as_str() {
        "listen" => {
            let (host, number) = field.address()?;
            if let Some(host) = host {
                listener.host = host;
            }
            *port = number;
        }
        "host" | "net" => {
            if let Some(host) = field.some_text()? {
                listener.host = host;
            }
        }
        "port" => *port = field.port()?,
        "authorization" => read_authorization(listener, field)?,
        "tls" => listener.tls = Some(tls::read(field)?),
        "advertise" => listener.advertise = field.some_text()?,
        "no_advertise" => listener.no_advertise = field.boolean()?,
        "min_version" => listener.min_version = field.some_text()?,
        "compression" => listener.compression = compression(field)?,
        "isolate_leafnode_interest" | "isolate" => listener.isolates = field.boolean()?,
        key @ ("write_deadline" | "write_timeout") => return Err(unsupported(field, key)),
        _ => {}
    }
    Ok(())
}

/// Taken without effect, it would promise what is not kept.
fn unsupported(field: &Given<'_>, key: &str) -> crate::config::Fault {
    field.fault(format!(
        "{key}: not supported by Fanline for leaf nodes yet"
    ))
}

fn compression(field: &Given<'_>) -> Read<LeafCompression> {
    match &field.node.value {
        Value::Bool(true) => Ok(LeafCompression::default()),
        Value::Bool(false) => Ok(LeafCompression::Off),
        Value::Map(_) => {
            let (mut mode, mut thresholds) = (LeafCompression::default(), None);
            for part in field.fields()? {
                match part.key.to_ascii_lowercase().as_str() {
                    "mode" => mode = compression(&part)?,
                    "rtt_thresholds" | "thresholds" | "rtts" => {
                        thresholds = Some(rtt_thresholds(&part)?);
                    }
                    _ => {}
                }
            }
            Ok(match (mode, thresholds) {
                (LeafCompression::Auto(_), Some(given)) if !given.is_empty() => {
                    LeafCompression::Auto(given)
                }
                (mode, _) => mode,
            })
        }
        _ => {
            let name = field.text()?;
            LeafCompression::parse(name)
                .ok_or_else(|| field.fault(format!("unsupported compression mode {name:?}")))
        }
    }
}

/// A threshold of nothing passes over what it would be for.
fn rtt_thresholds(field: &Given<'_>) -> Read<Vec<std::time::Duration>> {
    let given: Read<Vec<_>> = field.items()?.iter().map(Given::duration).collect();
    let given = given?;
    let set: Vec<_> = given.iter().filter(|time| !time.is_zero()).collect();
    if set.is_empty() && !given.is_empty() {
        return Err(field.fault("compression mode \"s2_auto\" requires at least one RTT threshold"));
    }
    match set.is_sorted() {
        true => Ok(given),
        false => Err(field.fault(format!(
            "RTT threshold values {given:?} should be in ascending order"
        ))),
    }
}

/// As a configuration says it.
fn show_compression(compression: &LeafCompression) -> Json {
    match compression {
        LeafCompression::Auto(thresholds) if *compression != LeafCompression::default() => {
            let texts: Vec<Json> = thresholds.iter().map(|time| duration_text(*time)).collect();
            json!({ "mode": compression.name(), "rtt_thresholds": texts })
        }
        other => other.name().into(),
    }
}

fn read_authorization(listener: &mut LeafnodeListener, given: &Given<'_>) -> Read<()> {
    let (mut name, mut password, mut nkey, mut account) = (None, None, None, None);
    let mut users = Vec::new();
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "user" | "username" => name = field.some_text()?,
            "password" | "pass" => password = field.some_text()?,
            "nkey" => nkey = field.some_text()?,
            "account" => account = field.some_text()?,
            "users" => {
                for (user, item) in access::users(&field)?.into_iter().zip(field.items()?) {
                    let own = item.fields()?;
                    let own = own.iter().find(|f| f.key.eq_ignore_ascii_case("account"));
                    let account = own.map(Given::some_text).transpose()?.flatten();
                    users.push(LeafnodeUser { user, account });
                }
            }
            // Without effect, it would let in whom it is to keep out.
            "proxy_required" if field.boolean()? => {
                return Err(unsupported(&field, "proxy_required"));
            }
            _ => {}
        }
    }
    let single = match (nkey, name) {
        (Some(nkey), _) => Some(User::nkey(nkey)),
        (None, Some(name)) => Some(User::new(name, password.unwrap_or_default())),
        (None, None) => None,
    };
    if let Some(user) = single {
        if !users.is_empty() {
            return Err(given.fault("can not have a single user/pass and a users array"));
        }
        users.push(LeafnodeUser {
            user,
            account: account.clone(),
        });
    }
    (listener.users, listener.account) = (users, account);
    Ok(())
}

fn read_remote(given: &Given<'_>) -> Read<LeafnodeRemote> {
    let mut remote = LeafnodeRemote::new("");
    remote.urls.clear();
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "url" => remote.urls.extend(field.some_text()?),
            "urls" => remote.urls.extend(field.texts()?),
            "account" | "local" => {
                if let Some(account) = field.some_text()? {
                    remote.account = account;
                }
            }
            "credentials" | "creds" => remote.credentials = field.path()?,
            "nkey" | "seed" => remote.nkey = field.some_text()?,
            "tls" => remote.tls = Some(tls::read(&field)?),
            "hub" => remote.is_hub = field.boolean()?,
            "deny_imports" | "deny_import" => remote.deny_imports = field.texts()?,
            "deny_exports" | "deny_export" => remote.deny_exports = field.texts()?,
            "no_randomize" => remote.no_randomize = field.boolean()?,
            "compression" => remote.compression = compression(&field)?,
            "ws_compression" | "websocket_compression" => {
                remote.websocket_compression = field.boolean()?;
            }
            "ws_no_masking" | "websocket_no_masking" => {
                remote.websocket_no_masking = field.boolean()?;
            }
            "first_info_timeout" => remote.first_info_timeout = field.duration()?,
            "isolate_leafnode_interest" | "isolate" => remote.isolates = field.boolean()?,
            "request_isolation" => remote.requests_isolation = field.boolean()?,
            "disabled" => remote.is_disabled = field.boolean()?,
            "ignore_discovered_servers" => {
                remote.ignore_discovered_servers = field.boolean()?;
            }
            // A server that runs alone has nothing to migrate.
            "jetstream_cluster_migrate" | "js_cluster_migrate" => {}
            key if field.boolean().unwrap_or(true) => return Err(unsupported(&field, key)),
            _ => {}
        }
    }
    if remote.credentials.is_some() && remote.nkey.is_some() {
        return Err(given.fault("remote leafnode can not have both creds and nkey defined"));
    }
    match remote.urls.is_empty() {
        true => Err(given.fault("remote leafnode needs a url")),
        false => Ok(remote),
    }
}

fn show(leafnodes: &crate::LeafnodeOptions) -> Json {
    let Some(listener) = &leafnodes.listener else {
        return Json::Null;
    };
    let users: Vec<Json> = (listener.users.iter())
        .map(|user| {
            let kind = match user.user.identity {
                Identity::Name(..) => "user",
                Identity::Nkey(_) => "nkey",
            };
            json!({ kind: user.user.name(), "account": user.account })
        })
        .collect();
    json!({
        "host": listener.host,
        "port": listener.port,
        "tls": listener.tls.as_ref().map(tls::show),
        "advertise": listener.advertise,
        "no_advertise": listener.no_advertise,
        "authorization": { "users": users, "account": listener.account },
        "min_version": listener.min_version,
        "isolate_leafnode_interest": listener.isolates,
        "compression": show_compression(&listener.compression),
        "reconnect": duration_text(leafnodes.reconnect),
        "dial_timeout": duration_text(leafnodes.dial_timeout),
    })
}

fn show_remote(remote: &LeafnodeRemote) -> Json {
    json!({
        "urls": remote.shown_urls(),
        "account": remote.account,
        "credentials": text_or_null(remote.credentials.as_deref()),
        "nkey": remote.nkey.as_ref().map(|_| "[REDACTED]"),
        "tls": remote.tls.as_ref().map(tls::show),
        "hub": remote.is_hub,
        "deny_imports": remote.deny_imports,
        "deny_exports": remote.deny_exports,
        "no_randomize": remote.no_randomize,
        "first_info_timeout": duration_text(remote.first_info_timeout),
        "isolate_leafnode_interest": remote.isolates,
        "request_isolation": remote.requests_isolation,
        "disabled": remote.is_disabled,
        "ignore_discovered_servers": remote.ignore_discovered_servers,
        "compression": show_compression(&remote.compression),
        "ws_compression": remote.websocket_compression,
        "ws_no_masking": remote.websocket_no_masking,
    })
}
