//! The cluster: its name, the listener for routes, and the servers that it dials.

use fanline_engine::LinkLimits;
use fanline_engine::auth::Permissions;
use fanline_engine::codec::route::ROUTE_POOL_SIZE_MAX;
use fanline_engine::codec::s2::Level;
use serde_json::{Value as Json, json};

use super::duration_text;
use super::leafnodes::{COMPRESSIONS, Compression, compression, show_compression};
use super::link::LinkBlock;
use super::listener::Listener;
use super::tls::{self, TlsBlock, timeout};
use crate::cluster::RouteAddress;
use crate::config::access;
use crate::config::draft::Draft;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Integer, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::{ClientCertificates, ClusterOptions, LinkCompression, TlsOptions};

pub(super) const OPTIONS: &[super::Entry] = &[super::Entry::new("cluster", Block, read, show)
    .block::<ClusterBlock>()
    .default("off")
    .help(
        "Cluster of servers that clients see as one. A block without `port` only sets the cluster name of this \
         server.",
    )];

/// The block `cluster`.
struct ClusterBlock {
    name: Option<String>,
    options: ClusterOptions,
    port: Option<u16>,
    limits: LinkLimits,
}

impl LinkBlock for ClusterBlock {
    fn limits(&self) -> &LinkLimits {
        &self.limits
    }

    fn limits_mut(&mut self) -> &mut LinkLimits {
        &mut self.limits
    }
}

impl Listener for ClusterBlock {
    fn address(&self) -> (&String, Option<u16>) {
        (&self.options.host, self.port)
    }

    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>) {
        (&mut self.options.host, &mut self.port)
    }
}

impl table::Block for ClusterBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "name",
            Text,
            |block, given| {
                block.name = given.some_text()?;
                match &block.name {
                    Some(name) if name.contains(' ') => {
                        Err(given.fault("cluster name cannot contain spaces"))
                    }
                    _ => Ok(()),
                }
            },
            |block| json!(block.name),
        )
        .limit("no spaces")
        .help("Name of the cluster, in INFO and monitoring. All servers of a cluster have the same name."),
        Entry::<Self>::LISTEN,
        Entry::<Self>::HOST,
        Entry::<Self>::PORT,
        Entry::<Self>::new(
            "authorization",
            Block,
            |block, given| {
                let own = table::read(Credentials(block.options.clone()), given)?;
                block.options = own.0;
                Ok(())
            },
            |block| table::show(Credentials(block.options.clone())),
        )
        .block::<Credentials>()
        .apart()
        .reloads()
        .help("User and password that the other servers must send. A reload affects new connections."),
        Entry::<Self>::new(
            "routes",
            Texts,
            |block, given| {
                block.options.routes = given.texts()?;
                for url in &block.options.routes {
                    RouteAddress::parse(url).map_err(|why| given.fault(why))?;
                }
                Ok(())
            },
            |block| json!(block.options.shown_routes()),
        )
        .apart()
        .reloads()
        .help(
            "Other servers of the cluster, as `nats-route://user:password@host:6222`. One of them is enough to \
             find the others. A reload closes routes to removed addresses, and dials new ones.",
        ),
        Entry::<Self>::text("advertise", |block| &mut block.options.advertise)
            .alias(&["cluster_advertise"])
            .help("The address that other servers dial, as `host:port`."),
        Entry::<Self>::flag("no_advertise", |block| &mut block.options.no_advertise)
            .default("false")
            .help("Send neither this server's addresses for clients to other servers, nor theirs to clients."),
        Entry::<Self>::new(
            "connect_retries",
            Integer,
            |block, given| {
                block.options.connect_retries = given.count()?;
                Ok(())
            },
            |block| json!(block.options.connect_retries),
        )
        .default("0")
        .apart()
        .reloads()
        .help("Number of further attempts to reach a server that is not among `routes`."),
        Entry::<Self>::flag("connect_backoff", |block| &mut block.options.connect_backoff)
            .default("false")
            .apart()
            .reloads()
            .help("Double the delay between attempts, from 1 s to 30 s."),
        Entry::<Self>::new(
            "tls",
            Block,
            |block, given| set(&mut block.options.tls, read_tls(given).map(Some)),
            |block| block.options.tls.as_ref().map_or(Json::Null, tls::show),
        )
        .block::<TlsBlock>()
        .like("tls")
        .dialer()
        .help(
            "TLS between the servers. Each must present a certificate that is signed by an authority of \
             `ca_file`, for both directions. A reload reads the files again, for new connections.",
        ),
        Entry::<Self>::new(
            "permissions",
            Block,
            |block, given| set(&mut block.options.permissions, access::permissions(given)),
            |block| access::show_permissions(&block.options.permissions),
        )
        .block::<Permissions>()
        .like("authorization.default_permissions")
        .default("everything")
        .apart()
        .reloads()
        .help(
            "Subjects that cross routes: `import` those of messages that this server receives, `export` those of \
             messages that it sends. They apply to all accounts, also to the system account.",
        ),
        Entry::<Self>::new(
            "pool_size",
            Integer,
            |block, given| {
                block.options.pool_size = match given.integer()? {
                    0 => ClusterOptions::default().pool_size,
                    size => u32::try_from(size).unwrap_or(0),
                };
                match block.options.pool_size {
                    ..=ROUTE_POOL_SIZE_MAX => Ok(()),
                    _ => Err(given.fault(format!("at most {ROUTE_POOL_SIZE_MAX} connections are possible"))),
                }
            },
            |block| match block.options.pool_size {
                0 => json!(-1),
                size => json!(size),
            },
        )
        .default("3")
        .limit("at most 1024")
        .apart()
        .reloads()
        .help(
            "Number of connections to each server, among which accounts are divided by their names. -1 means one \
             connection for all accounts. A reload that changes it opens all routes again.",
        ),
        Entry::<Self>::texts("accounts", |block| &mut block.options.accounts)
            .apart()
            .reloads()
            .help(
                "Accounts with a connection of their own to each server. The system account always has one. A reload \
                 that changes them opens all routes again.",
            ),
        Entry::<Self>::new(
            "compression",
            Any,
            |block, given| {
                let on = LinkCompression::Always(Level::Fast);
                set(&mut block.options.compression, compression(given, &on))
            },
            |block| show_compression(&block.options.compression),
        )
        .block::<Compression>()
        .like("leafnodes.compression")
        .limit(COMPRESSIONS)
        .default("accept")
        .apart()
        .reloads()
        .help(
            "Compression of routes, as that of leaf connections. `on` is `s2_fast`. A reload affects new \
             connections.",
        ),
        Entry::<Self>::maybe_duration("ping_interval", |block| &mut block.limits.ping_interval)
            .needs_unit()
            .default("the server's")
            .limit("at most 30 s")
            .apart()
            .reloads()
            .help("Idle time after which another server is pinged."),
        Entry::<Self>::new(
            "ping_max",
            Integer,
            |block, given| {
                block.limits.pings_out_max = match given.integer()? {
                    ..=0 => None,
                    _ => Some(given.count()?),
                };
                Ok(())
            },
            |block| json!(block.limits.pings_out_max),
        )
        .default("the server's")
        .apart()
        .reloads()
        .help("Unanswered pings. After a further one the connection is closed."),
        Entry::<Self>::WRITE_DEADLINE,
        Entry::<Self>::WRITE_TIMEOUT,
    ];
}

/// Reads the block `tls`. Both sides of a route verify each other, as with nats-server.
fn read_tls(given: &Given<'_>) -> Read<TlsOptions> {
    let tls = tls::read_of_routes(given)?;
    if tls.certificates.is_empty() {
        return Err(given.fault("missing 'cert_file' in TLS configuration"));
    }
    let client_certificates = match tls.client_certificates {
        ClientCertificates::NotAsked => ClientCertificates::Required,
        required => required,
    };
    Ok(TlsOptions {
        client_certificates,
        ..tls
    })
}

/// The block `authorization`.
struct Credentials(ClusterOptions);

impl table::Block for Credentials {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("user", |own| &mut own.0.user)
            .alias(&["username"])
            .help("User name."),
        Entry::<Self>::text("password", |own| &mut own.0.password)
            .alias(&["pass"])
            .secret()
            .help("Password of the user."),
        Entry::<Self>::new(
            "timeout",
            Any,
            |own, given| set(&mut own.0.auth_timeout, timeout(given)),
            |own| json!(duration_text(own.0.auth_timeout)),
        )
        .default("2s")
        .help("Time limit of the handshake."),
        Entry::<Self>::unshown("permissions", Block, |own, given| {
            set(&mut own.0.permissions, access::permissions(given))
        })
        .block::<Permissions>()
        .like("authorization.default_permissions")
        .warns(|_, _| {
            let text = "setting \"permissions\" within cluster authorization block is deprecated";
            Some(text.into())
        })
        .help("The permissions of the cluster, if they are not beside this block."),
    ];
}

fn read(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    let options = &mut draft.loaded.options;
    let block = ClusterBlock {
        name: None,
        options: ClusterOptions {
            host: draft.listener_host.clone(),
            ..ClusterOptions::default()
        },
        port: None,
        limits: LinkLimits::default(),
    };
    let ClusterBlock {
        name,
        options: cluster,
        port,
        limits,
    } = table::read(block, given)?;
    options.limits.routes = limits;
    options.cluster_name = name;
    options.cluster = port.map(|port| ClusterOptions { port, ..cluster });
    Ok(())
}

fn show(draft: &Draft) -> Json {
    let options = &draft.loaded.options;
    let cluster = options.cluster.as_ref();
    if options.cluster_name.is_none() && cluster.is_none() {
        return Json::Null;
    }
    let mut shown = table::show(ClusterBlock {
        name: options.cluster_name.clone(),
        options: cluster.cloned().unwrap_or_default(),
        port: cluster.map(|cluster| cluster.port),
        limits: options.limits.routes.clone(),
    });
    if let (Json::Object(fields), None) = (&mut shown, cluster) {
        fields.retain(|name, _| name == "name");
    }
    shown
}
