//! Leaf nodes.

use fanline_engine::Filter;
use fanline_engine::auth::User;
use serde_json::{Value as Json, json};

use super::{duration_text, text_or_null, tls};
use crate::config::access;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Integer, Path, Port, Text, Texts,
};
use crate::config::table::{Entry, shown, within, works};
use crate::config::value::Value;
use crate::leaf;
use crate::{
    LeafCompression, LeafnodeListener, LeafnodeProxy, LeafnodeRemote, LeafnodeUser, Limits,
    TlsOptions,
};

const COMPRESSIONS: &str =
    "`off`, `accept`, `s2_auto`, `s2_uncompressed`, `s2_fast`, `s2_better`, `s2_best`";

/// The durations of the block and of a remote.
const DURATIONS: &[&str] = &[
    "reconnect",
    "reconnect_delay",
    "reconnect_interval",
    "dial_timeout",
];
const DURATIONS_OF_REMOTE: &[&str] = &["first_info_timeout", "dial_timeout"];

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "leafnodes",
        Block,
        |draft, given| {
            draft.note_numbers(given, DURATIONS)?;
            let host = draft.listener_host.clone();
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
                    // They can be reloaded, and have entries of their own.
                    "remotes" | "compression" | "write_deadline" | "write_timeout" => {}
                    _ => read_listener(&mut listener, &mut port, &field)?,
                }
            }
            // Not that of clients: what they have depends on their own TLS.
            let of_tls = listener.tls.as_ref().map(TlsOptions::auth_timeout);
            let usual = of_tls.unwrap_or_else(|| Limits::default().auth_timeout);
            listener.auth_timeout.get_or_insert(usual);
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
        .default("0.0.0.0")
        .help("The address to listen on, whatever `host` is; under `fanline serve` 127.0.0.1 unless the block says so."),
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
    shown("leafnodes.authorization.timeout", Any, |loaded| {
        let listener = loaded.options.leafnodes.listener.as_ref();
        let timeout = listener.and_then(|listener| listener.auth_timeout);
        timeout.map_or(Json::Null, duration_text)
    })
    .default("2s, or a second more than a handshake of its `tls` may take")
    .reloads()
    .help("How long a leaf node may take to say who it is."),
    within("leafnodes.authorization.proxy_required", Bool)
        .default("false")
        .help("All must come through one of `proxies`."),
    shown("leafnodes.tls", Block, |loaded| {
        let listener = loaded.options.leafnodes.listener.as_ref();
        let tls = listener.and_then(|listener| listener.tls.as_ref());
        tls.map_or(Json::Null, tls::show)
    })
    .like("tls")
    .reloads()
    .help("TLS for this listener. A reload turns it on or off, too."),
    within("leafnodes.advertise", Text)
        .alias(&["leafnode_advertise"])
        .help("The address that leaf nodes are told."),
    within("leafnodes.no_advertise", Bool)
        .default("false")
        .help("They are told none."),
    within("leafnodes.min_version", Text)
        .alias(&["minimum_version"])
        .help("The oldest version that may come."),
    works(
        "leafnodes.compression",
        Any,
        |draft, given| {
            let compression = compression(given)?;
            if let Some(listener) = &mut draft.loaded.options.leafnodes.listener {
                listener.compression = compression;
            }
            Ok(())
        },
        |loaded| {
            let listener = loaded.options.leafnodes.listener.as_ref();
            listener.map_or(Json::Null, |listener| show_compression(&listener.compression))
        },
    )
    .default("s2_auto")
    .limit(COMPRESSIONS)
    .reloads()
    .help("Whether links are compressed, or `{ mode, rtt_thresholds }`: for `s2_auto` the round trips up to which not at all, fast, better. `accept` does as the other side wants. A reload is for links that come later."),
    within("leafnodes.compression.mode", Text).limit(COMPRESSIONS).help("The same."),
    within("leafnodes.compression.rtt_thresholds", Texts)
        .alias(&["thresholds", "rtts", "rtt"])
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
    works(
        "leafnodes.write_deadline",
        Duration,
        |draft, given| {
            let deadline = draft.duration(given)?;
            let is_given = !deadline.is_zero();
            draft.loaded.options.limits.leaf_write_deadline = is_given.then_some(deadline);
            Ok(())
        },
        |loaded| {
            let deadline = loaded.options.limits.leaf_write_deadline;
            deadline.map_or(Json::Null, duration_text)
        },
    )
    .default("the server's")
    .reloads()
    .help("How long a write may wait for the other server, also for one that was dialled."),
    works(
        "leafnodes.write_timeout",
        Text,
        |draft, given| {
            draft.loaded.options.limits.leafs_close_at_deadline = match given.text()? {
                "default" | "retry" => false,
                "close" => true,
                _ => {
                    return Err(given.fault("write_timeout must be 'default', 'close' or 'retry'"));
                }
            };
            Ok(())
        },
        |loaded| match loaded.options.limits.leafs_close_at_deadline {
            true => json!("close"),
            false => json!("retry"),
        },
    )
    .default("retry")
    .limit("`default`, `retry`, `close`")
    .reloads()
    .help("What happens to a link at its write deadline: with `retry` it is closed only if the other server has taken nothing at all meanwhile."),
    works(
        "connect_error_reports",
        Integer,
        |draft, given| {
            draft.loaded.options.leafnodes.connect_error_reports = reports(given)?;
            Ok(())
        },
        |loaded| json!(loaded.options.leafnodes.connect_error_reports),
    )
    .default("3, then one in 60")
    .reloads()
    .help("Of how many attempts in a row to reach a remote leaf node one is logged, the first one always."),
    works(
        "reconnect_error_reports",
        Integer,
        |draft, given| {
            draft.loaded.options.leafnodes.reconnect_error_reports = reports(given)?;
            Ok(())
        },
        |loaded| json!(loaded.options.leafnodes.reconnect_error_reports),
    )
    .default("3, then one in 60")
    .reloads()
    .help("The same for a remote that was reached before."),
    works(
        "leafnodes.remotes",
        Blocks,
        |draft, given| {
            for remote in given.items()? {
                draft.note_numbers(&remote, DURATIONS_OF_REMOTE)?;
                for proxy in remote.fields()?.iter().filter(|field| field.key == "proxy") {
                    draft.note_numbers(proxy, &["timeout"])?;
                }
            }
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
    within("leafnodes.remotes.url", Texts)
        .alias(&["urls"])
        .help("`nats-leaf://user:password@host:7422` or shorter, or `wss://host:443`; a list for several servers of one cluster, of which one is used at a time. `ws` and `wss` are WebSocket, `tls` and `wss` insist on TLS; any other scheme is TCP, with TLS where the other server asks for it."),
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
        .alias(&["dont_randomize"])
        .default("false")
        .help("Addresses are tried in their order."),
    within("leafnodes.remotes.ws_compression", Bool)
        .alias(&["ws_compress", "websocket_compress", "websocket_compression"])
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
        .alias(&["thresholds", "rtts", "rtt"])
        .help("Of `s2_auto`."),
    within("leafnodes.remotes.first_info_timeout", Duration)
        .default("1s")
        .help("How long the other server's first word may take."),
    within("leafnodes.remotes.dial_timeout", Duration)
        .default("that of the block")
        .help("How long dialling it may take."),
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
    within("leafnodes.remotes.proxy", Block).help("An HTTP proxy that is asked to connect to it (`CONNECT`)."),
    within("leafnodes.remotes.proxy.url", Text).help("`http://host:3128`, or `https://host:443` to speak to it by TLS."),
    within("leafnodes.remotes.proxy.username", Text).help("Who the proxy is told that this is; with a `password`."),
    within("leafnodes.remotes.proxy.password", Text)
        .secret()
        .help("The password of `username`."),
    within("leafnodes.remotes.proxy.timeout", Duration)
        .default("`dial_timeout`")
        .help("How long it may take until the other server is reached."),
    within("leafnodes.remotes.proxy.tls", Block)
        .like("tls")
        .help("TLS towards the proxy, with an `https` URL: `ca_file`, `cert_file`, `key_file`."),
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
        "advertise" | "leafnode_advertise" => listener.advertise = field.some_text()?,
        "no_advertise" => listener.no_advertise = field.boolean()?,
        "min_version" | "minimum_version" => {
            listener.min_version = field.some_text()?;
            if let Some(version) = &listener.min_version {
                leaf::check_version(version).map_err(|reason| field.fault(reason))?;
            }
        }
        "isolate_leafnode_interest" | "isolate" => listener.isolates = field.boolean()?,
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
                    "rtt_thresholds" | "thresholds" | "rtts" | "rtt" => {
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

/// One in how many; nothing and less is what holds when nobody says.
fn reports(given: &Given<'_>) -> Read<Option<u64>> {
    let every = u64::try_from(given.integer()?).ok();
    Ok(every.filter(|every| *every > 0))
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
            "timeout" => listener.auth_timeout = Some(tls::timeout(&field)?),
            "users" => {
                for (user, item) in access::users(&field)?.into_iter().zip(field.items()?) {
                    let own = item.fields()?;
                    let own = own.iter().find(|f| f.key.eq_ignore_ascii_case("account"));
                    let account = own.map(Given::some_text).transpose()?.flatten();
                    users.push(LeafnodeUser { user, account });
                }
            }
            "proxy_required" => listener.needs_proxy = field.boolean()?,
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
            "url" | "urls" => {
                let urls = field
                    .texts()?
                    .into_iter()
                    .filter(|url| !url.trim().is_empty());
                remote.urls.extend(urls);
            }
            "account" | "local" => {
                if let Some(account) = field.some_text()? {
                    remote.account = account;
                }
            }
            "credentials" | "creds" => remote.credentials = field.path()?,
            "nkey" | "seed" => remote.nkey = field.some_text()?,
            "tls" => remote.tls = Some(tls::read(&field)?),
            "hub" => remote.is_hub = field.boolean()?,
            "deny_imports" | "deny_import" => remote.deny_imports = subjects(&field)?,
            "deny_exports" | "deny_export" => remote.deny_exports = subjects(&field)?,
            "no_randomize" | "dont_randomize" => remote.no_randomize = field.boolean()?,
            "compression" => remote.compression = compression(&field)?,
            "ws_compression" | "ws_compress" | "websocket_compression" | "websocket_compress" => {
                remote.websocket_compression = field.boolean()?;
            }
            "ws_no_masking" | "websocket_no_masking" => {
                remote.websocket_no_masking = field.boolean()?;
            }
            "first_info_timeout" => remote.first_info_timeout = field.duration()?,
            "dial_timeout" => remote.dial_timeout = Some(field.duration()?),
            "isolate_leafnode_interest" | "isolate" => remote.isolates = field.boolean()?,
            "request_isolation" => remote.requests_isolation = field.boolean()?,
            "disabled" => remote.is_disabled = field.boolean()?,
            "ignore_discovered_servers" => {
                remote.ignore_discovered_servers = field.boolean()?;
            }
            "proxy" => remote.proxy = Some(read_proxy(&field)?),
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

fn subjects(given: &Given<'_>) -> Read<Vec<String>> {
    let subjects = given.texts()?;
    let is_none = |subject: &&String| Filter::parse(subject.as_bytes()).is_err();
    match subjects.iter().find(is_none) {
        Some(subject) => Err(given.fault(format!("subject {subject:?} is not a valid subject"))),
        None => Ok(subjects),
    }
}

fn read_proxy(given: &Given<'_>) -> Read<LeafnodeProxy> {
    let mut proxy = LeafnodeProxy::new("");
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "url" => proxy.url = field.text()?.to_owned(),
            "username" => proxy.username = field.some_text()?,
            "password" => proxy.password = field.some_text()?,
            "timeout" => proxy.timeout = Some(field.duration()?),
            "tls" => proxy.tls = Some(tls::read(&field)?),
            _ => {}
        }
    }
    match leaf::check_proxy(&proxy) {
        Ok(_) => Ok(proxy),
        Err(why) => Err(given.fault(why)),
    }
}

fn show_proxy(proxy: &LeafnodeProxy) -> Json {
    // It may hold a password, too.
    let place = proxy.url.rsplit_once('@');
    let scheme = proxy.url.split_once("://").map_or("", |(scheme, _)| scheme);
    let own = proxy.password.as_ref();
    json!({
        "url": place.map_or_else(|| proxy.url.clone(), |(_, place)| format!("{scheme}://{place}")),
        "tls": proxy.tls.as_ref().map(tls::show),
        "username": proxy.username,
        // Masked where it is told, so that another one is seen to be another.
        "password": own.or_else(|| place.map(|_| &proxy.url)),
        "timeout": proxy.timeout.map(duration_text),
    })
}

fn show(leafnodes: &crate::LeafnodeOptions) -> Json {
    let Some(listener) = &leafnodes.listener else {
        return Json::Null;
    };
    let users: Vec<Json> = (listener.users.iter())
        .map(|user| {
            let mut shown = access::show_user(&user.user);
            shown["account"] = json!(user.account);
            shown
        })
        .collect();
    json!({
        "host": listener.host,
        "port": listener.port,
        "advertise": listener.advertise,
        "no_advertise": listener.no_advertise,
        "authorization": {
            "users": users,
            "account": listener.account,
        },
        "min_version": listener.min_version,
        "isolate_leafnode_interest": listener.isolates,
        "reconnect": duration_text(leafnodes.reconnect),
        "dial_timeout": duration_text(leafnodes.dial_timeout),
    })
}

fn show_remote(remote: &LeafnodeRemote) -> Json {
    json!({
        "urls": remote.shown_urls(),
        // Masked where it is told, so that another one is seen to be another.
        "password": remote.urls.iter().any(|url| url.contains('@')).then_some(&remote.urls),
        "account": remote.account,
        "credentials": text_or_null(remote.credentials.as_deref()),
        "seed": remote.nkey,
        "tls": remote.tls.as_ref().map(tls::show),
        "hub": remote.is_hub,
        "deny_imports": remote.deny_imports,
        "deny_exports": remote.deny_exports,
        "no_randomize": remote.no_randomize,
        "first_info_timeout": duration_text(remote.first_info_timeout),
        "dial_timeout": remote.dial_timeout.map(duration_text),
        "isolate_leafnode_interest": remote.isolates,
        "request_isolation": remote.requests_isolation,
        "disabled": remote.is_disabled,
        "ignore_discovered_servers": remote.ignore_discovered_servers,
        "compression": show_compression(&remote.compression),
        "ws_compression": remote.websocket_compression,
        "ws_no_masking": remote.websocket_no_masking,
        "proxy": remote.proxy.as_ref().map(show_proxy),
    })
}
