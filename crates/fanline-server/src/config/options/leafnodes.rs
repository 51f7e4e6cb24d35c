//! Leaf nodes.

use fanline_engine::LinkLimits;
use fanline_engine::auth::User;
use serde_json::{Value as Json, json};

use super::duration_text;
use super::leafnode_remotes::{self, RemoteBlock};
use super::link::LinkBlock;
use super::listener::Listener;
use super::tls::{self, TlsBlock};
use crate::config::access::{self, UserBlock};
use crate::config::draft::Draft;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Blocks, Integer, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;
use crate::leaf;
use crate::{LeafnodeListener, LeafnodeOptions, LeafnodeUser, Limits, LinkCompression, TlsOptions};

pub(super) const COMPRESSIONS: &str =
    "`off`, `accept`, `s2_auto`, `s2_uncompressed`, `s2_fast`, `s2_better`, `s2_best`";

pub(super) const OPTIONS: &[super::Entry] = &[
    super::Entry::new("leafnodes", Block, read, show)
        .block::<LeafnodesBlock>()
        .alias(&["leaf"])
        .default("off")
        .help("Leaf nodes: the listener and remotes."),
    super::Entry::new(
        "connect_error_reports",
        Integer,
        |draft, given| {
            set(&mut draft.loaded.options.leafnodes.connect_error_reports, reports(given))
        },
        |draft| json!(draft.loaded.options.leafnodes.connect_error_reports),
    )
    .default("3, then one in 60")
    .reloads()
    .help("Interval of logged attempts to reach a remote, counted in attempts. The first one is always logged."),
    super::Entry::new(
        "reconnect_error_reports",
        Integer,
        |draft, given| {
            set(&mut draft.loaded.options.leafnodes.reconnect_error_reports, reports(given))
        },
        |draft| json!(draft.loaded.options.leafnodes.reconnect_error_reports),
    )
    .default("3, then one in 60")
    .reloads()
    .help("The same after a remote was connected."),
];

/// The block `leafnodes`.
struct LeafnodesBlock {
    options: LeafnodeOptions,
    listener: LeafnodeListener,
    port: Option<u16>,
    limits: Limits,
}

impl Listener for LeafnodesBlock {
    fn address(&self) -> (&String, Option<u16>) {
        (&self.listener.host, self.port)
    }

    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>) {
        (&mut self.listener.host, &mut self.port)
    }
}

impl LinkBlock for LeafnodesBlock {
    fn limits(&self) -> &LinkLimits {
        &self.limits.leafs
    }

    fn limits_mut(&mut self) -> &mut LinkLimits {
        &mut self.limits.leafs
    }
}

impl table::Block for LeafnodesBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::LISTEN,
        Entry::<Self>::HOST,
        Entry::<Self>::PORT,
        Entry::<Self>::new(
            "authorization",
            Block,
            |block, given| read_authorization(&mut block.listener, given),
            |block| table::show(Authorization::of(&block.listener)),
        )
        .block::<Authorization>()
        .help("Users of leaf nodes; those of clients if missing."),
        Entry::<Self>::new(
            "tls",
            Block,
            |block, given| set(&mut block.listener.tls, tls::read(given).map(Some)),
            |block| block.listener.tls.as_ref().map_or(Json::Null, tls::show),
        )
        .block::<TlsBlock>()
        .like("tls")
        .apart()
        .reloads()
        .help("TLS for this listener. A reload may turn it on or off."),
        Entry::<Self>::text("advertise", |block| &mut block.listener.advertise)
            .alias(&["leafnode_advertise"])
            .help("The address advertised to leaf nodes."),
        Entry::<Self>::flag("no_advertise", |block| &mut block.listener.no_advertise)
            .default("false")
            .help("Advertise no addresses."),
        Entry::<Self>::new(
            "min_version",
            Text,
            |block, given| {
                block.listener.min_version = given.some_text()?;
                match &block.listener.min_version {
                    Some(version) => leaf::check_version(version).map_err(|why| given.fault(why)),
                    None => Ok(()),
                }
            },
            |block| json!(block.listener.min_version),
        )
        .alias(&["minimum_version"])
        .help("The oldest accepted version of leaf nodes."),
        Entry::<Self>::new(
            "compression",
            Any,
            |block, given| set(&mut block.listener.compression, compression(given, &LinkCompression::default())),
            |block| show_compression(&block.listener.compression),
        )
        .block::<Compression>()
        .default("s2_auto")
        .limit(COMPRESSIONS)
        .apart()
        .reloads()
        .help("Compression of leaf connections, or `{ mode, rtt_thresholds }`: for `s2_auto` the round-trip times up to which the level is none, fast, or better. `accept` follows the other side. A reload affects new connections."),
        Entry::<Self>::duration("reconnect", |block| &mut block.options.reconnect)
            .needs_unit()
            .alias(&["reconnect_delay", "reconnect_interval"])
            .default("1s")
            .help("Delay before a remote is dialed again; grows up to eight times while it does not answer."),
        Entry::<Self>::duration("dial_timeout", |block| &mut block.options.dial_timeout)
            .needs_unit()
            .default("1s")
            .help("Time limit of connection attempts."),
        Entry::<Self>::flag("isolate_leafnode_interest", |block| &mut block.listener.isolates)
            .alias(&["isolate"])
            .default("false")
            .help("Do not send subscriptions of one leaf node to others."),
        Entry::<Self>::WRITE_DEADLINE,
        Entry::<Self>::WRITE_TIMEOUT,
        Entry::<Self>::new(
            "remotes",
            Blocks,
            |block, given| {
                let remotes: Read<Vec<_>> = given.items()?.iter().map(leafnode_remotes::read).collect();
                set(&mut block.options.remotes, remotes)
            },
            |block| block.options.remotes.iter().map(leafnode_remotes::show).collect(),
        )
        .block::<RemoteBlock>()
        .apart()
        .reloads()
        .help("Remotes to connect to as a leaf node."),
    ];
}

/// The options that are part of the settings even without a listener.
const OF_REMOTES: [&str; 3] = ["remotes", "write_deadline", "write_timeout"];

fn read(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    let options = &mut draft.loaded.options;
    let block = LeafnodesBlock {
        options: options.leafnodes.clone(),
        listener: LeafnodeListener {
            host: draft.listener_host.clone(),
            ..LeafnodeListener::default()
        },
        port: None,
        limits: options.limits.clone(),
    };
    let mut block = table::read(block, given)?;
    // The default depends on this listener's TLS, not on that of the client listener.
    let of_tls = block.listener.tls.as_ref().map(TlsOptions::auth_timeout);
    let usual = of_tls.unwrap_or_else(|| Limits::default().auth_timeout);
    block.listener.auth_timeout.get_or_insert(usual);
    options.leafnodes = block.options;
    options.leafnodes.listener = block.port.map(|port| LeafnodeListener {
        port,
        ..block.listener
    });
    options.limits = block.limits;
    Ok(())
}

fn show(draft: &Draft) -> Json {
    let options = &draft.loaded.options;
    let listener = options.leafnodes.listener.as_ref();
    let mut shown = table::show(LeafnodesBlock {
        options: options.leafnodes.clone(),
        listener: listener.cloned().unwrap_or_default(),
        port: listener.map(|listener| listener.port),
        limits: options.limits.clone(),
    });
    if let (Json::Object(fields), None) = (&mut shown, listener) {
        fields.retain(|name, _| OF_REMOTES.contains(&name.as_str()));
    }
    shown
}

/// The block `compression`.
#[derive(Default)]
pub(super) struct Compression {
    mode: LinkCompression,
    /// The mode whose name is `on`.
    on: LinkCompression,
    thresholds: Vec<std::time::Duration>,
}

impl table::Block for Compression {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "mode",
            Text,
            |block, given| {
                let on = block.on.clone();
                set(&mut block.mode, compression(given, &on))
            },
            |block| block.mode.name().into(),
        )
        .limit(COMPRESSIONS)
        .help("Compression mode."),
        Entry::<Self>::new(
            "rtt_thresholds",
            Texts,
            |block, given| set(&mut block.thresholds, rtt_thresholds(given)),
            |block| {
                block
                    .thresholds
                    .iter()
                    .map(|time| duration_text(*time))
                    .collect()
            },
        )
        .alias(&["thresholds", "rtts", "rtt"])
        .default("10ms, 50ms, 100ms")
        .help("Round-trip times of `s2_auto`."),
    ];
}

/// Reads compression. `on` is the mode of this name.
pub(super) fn compression(field: &Given<'_>, on: &LinkCompression) -> Read<LinkCompression> {
    match &field.node.value {
        Value::Bool(true) => Ok(on.clone()),
        Value::Bool(false) => Ok(LinkCompression::Off),
        Value::Map(_) => {
            let block = Compression {
                on: on.clone(),
                ..Compression::default()
            };
            let block = table::read(block, field)?;
            Ok(match block.mode {
                LinkCompression::Auto(_) if !block.thresholds.is_empty() => {
                    LinkCompression::Auto(block.thresholds)
                }
                mode => mode,
            })
        }
        _ => {
            let name = field.text()?;
            if ["on", "enabled"].contains(&&*name.to_ascii_lowercase()) {
                return Ok(on.clone());
            }
            LinkCompression::parse(name)
                .ok_or_else(|| field.fault(format!("unsupported compression mode {name:?}")))
        }
    }
}

/// Reads the round-trip times that separate the compression levels. A threshold of 0 skips its level.
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

/// Returns compression as JSON.
pub(super) fn show_compression(compression: &LinkCompression) -> Json {
    match compression {
        LinkCompression::Auto(thresholds) if *compression != LinkCompression::default() => {
            table::show(Compression {
                mode: compression.clone(),
                thresholds: thresholds.to_vec(),
                ..Compression::default()
            })
        }
        other => other.name().into(),
    }
}

/// Reads how often failed attempts are logged: a number `n` means every `n`th attempt. 0 or less means the
/// default.
fn reports(given: &Given<'_>) -> Read<Option<u64>> {
    let every = u64::try_from(given.integer()?).ok();
    Ok(every.filter(|every| *every > 0))
}

/// The block `authorization` of leaf nodes.
#[derive(Default)]
pub(super) struct Authorization {
    listener: LeafnodeListener,
    user: Option<String>,
    password: Option<String>,
    nkey: Option<String>,
}

impl Authorization {
    fn of(listener: &LeafnodeListener) -> Self {
        Authorization {
            listener: listener.clone(),
            ..Authorization::default()
        }
    }
}

impl table::Block for Authorization {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("user", |own| &mut own.user)
            .shown_elsewhere()
            .alias(&["username"])
            .help("The single user."),
        Entry::<Self>::text("password", |own| &mut own.password)
            .shown_elsewhere()
            .alias(&["pass"])
            .secret()
            .help("Password of the only user."),
        Entry::<Self>::text("nkey", |own| &mut own.nkey)
            .shown_elsewhere()
            .help("The public key of a user that authenticates by signature."),
        Entry::<Self>::new(
            "users",
            Blocks,
            |own, given| {
                let users: Read<Vec<_>> = given.items()?.iter().map(read_user).collect();
                set(&mut own.listener.users, users)
            },
            |own| own.listener.users.iter().map(show_user).collect(),
        )
        .block::<LeafUser>()
        .help("Several users, each with its `account`."),
        Entry::<Self>::text("account", |own| &mut own.listener.account)
            .help("The account of the single user, or of all leaf nodes."),
        Entry::<Self>::new(
            "timeout",
            Any,
            |own, given| {
                set(
                    &mut own.listener.auth_timeout,
                    tls::timeout(given).map(Some),
                )
            },
            |own| json!(own.listener.auth_timeout.map(duration_text)),
        )
        .default("2s; with `tls`, its `timeout` and 1s more")
        .apart()
        .reloads()
        .help("Time limit of a leaf node's authentication."),
        Entry::<Self>::flag("proxy_required", |own| &mut own.listener.needs_proxy)
            .default("false")
            .help("Require connections through one of `proxies`."),
    ];
}

fn read_authorization(listener: &mut LeafnodeListener, given: &Given<'_>) -> Read<()> {
    let own = table::read(Authorization::of(listener), given)?;
    *listener = own.listener;
    let user = match (own.nkey, own.user) {
        (Some(nkey), _) => User::nkey(nkey),
        (None, Some(name)) => User::new(name, own.password.unwrap_or_default()),
        (None, None) => return Ok(()),
    };
    if !listener.users.is_empty() {
        return Err(given.fault("can not have a single user/pass and a users array"));
    }
    let account = listener.account.clone();
    listener.users.push(LeafnodeUser { user, account });
    Ok(())
}

/// An entry of `users`: a user with an account.
#[derive(Default)]
struct LeafUser {
    user: UserBlock,
    account: Option<String>,
}

impl table::Block for LeafUser {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("account", |user| &mut user.account).help("Account of the user."),
        Entry::<Self>::unshown("*", Any, |user, given| {
            table::read_option(&mut user.user, given)
        })
        .help("As for clients."),
    ];
}

fn read_user(given: &Given<'_>) -> Read<LeafnodeUser> {
    let LeafUser { user, account } = table::read(LeafUser::default(), given)?;
    Ok(LeafnodeUser {
        user: user.finish(given)?,
        account,
    })
}

fn show_user(user: &LeafnodeUser) -> Json {
    let mut shown = access::show_user(&user.user);
    shown["account"] = json!(user.account);
    shown
}
