//! Gateways: the listener for other clusters, and the clusters that the server dials.

use fanline_engine::LinkLimits;
use serde_json::{Value as Json, json};

use super::duration_text;
use super::link::LinkBlock;
use super::listener::Listener;
use super::tls::{self, TlsBlock, timeout};
use crate::cluster::RouteAddress;
use crate::config::draft::Draft;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Blocks, Integer, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::{ClientCertificates, GatewayOptions, RemoteGateway, TlsOptions};

pub(super) const OPTIONS: &[super::Entry] = &[super::Entry::new("gateway", Block, read, show)
    .block::<GatewayBlock>()
    .default("off")
    .help(
        "Connections of this cluster to other clusters. All servers of the cluster need the same block. Not possible \
         together with `jetstream`.",
    )];

/// The block `gateway`.
struct GatewayBlock {
    options: GatewayOptions,
    port: Option<u16>,
    limits: LinkLimits,
}

impl LinkBlock for GatewayBlock {
    fn limits(&self) -> &LinkLimits {
        &self.limits
    }

    fn limits_mut(&mut self) -> &mut LinkLimits {
        &mut self.limits
    }
}

impl Listener for GatewayBlock {
    fn address(&self) -> (&String, Option<u16>) {
        (&self.options.host, self.port)
    }

    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>) {
        (&mut self.options.host, &mut self.port)
    }
}

impl table::Block for GatewayBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "name",
            Text,
            |block, given| set(&mut block.options.name, name(given)),
            |block| json!(block.options.name),
        )
        .limit("no spaces")
        .help("Name of this cluster, which is also that of the block `cluster`."),
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
        .help(
            "User and password that other clusters must send. This server sends them to other clusters, too, unless \
             their URL has its own.",
        ),
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
            "TLS between the clusters. Each server must present a certificate that is signed by an authority of \
             `ca_file`, for both directions. A reload reads the files again, for new connections.",
        ),
        Entry::<Self>::text("advertise", |block| &mut block.options.advertise)
            .help("The address that other clusters dial, as `host:port` or `host`."),
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
        .help("Number of further attempts to reach a cluster that is not among `gateways`."),
        Entry::<Self>::flag("connect_backoff", |block| &mut block.options.connect_backoff)
            .default("false")
            .help("Double the delay between attempts, from 1 s to 30 s."),
        Entry::<Self>::flag("reject_unknown_cluster", |block| {
            &mut block.options.rejects_unknown
        })
        .alias(&["reject_unknown"])
        .default("false")
        .help("Refuse clusters that are not among `gateways`."),
        Entry::<Self>::new(
            "gateways",
            Blocks,
            |block, given| {
                let read = |given: &Given<'_>| {
                    let none = RemoteGateway {
                        name: String::new(),
                        urls: Vec::new(),
                    };
                    Ok(table::read(RemoteBlock(none), given)?.0)
                };
                let remotes: Read<Vec<_>> = given.items()?.iter().map(read).collect();
                set(&mut block.options.gateways, remotes)
            },
            |block| {
                let remotes = block.options.gateways.iter().cloned();
                remotes.map(|remote| table::show(RemoteBlock(remote))).collect()
            },
        )
        .block::<RemoteBlock>()
        .help("The other clusters. Further ones are found through them. An entry with this cluster's name has no effect."),
        Entry::<Self>::WRITE_DEADLINE,
        Entry::<Self>::WRITE_TIMEOUT,
    ];
}

/// Reads the name of a cluster.
fn name(given: &Given<'_>) -> Read<String> {
    let name = given.text()?;
    match name.contains(' ') {
        true => Err(given.fault("gateway name cannot contain spaces")),
        false => Ok(name.to_owned()),
    }
}

/// Reads the block `tls`. Both sides of a connection verify each other, as with nats-server.
fn read_tls(given: &Given<'_>) -> Read<TlsOptions> {
    let tls = tls::read(given)?;
    if tls.client_certificates == ClientCertificates::RequiredAndMapped {
        return Err(given.fault("verify_and_map of gateways is not supported by Fanline"));
    }
    if tls.certificates.is_empty() {
        return Err(given.fault("missing 'cert_file' in TLS configuration"));
    }
    Ok(TlsOptions {
        client_certificates: ClientCertificates::Required,
        ..tls
    })
}

/// The block `authorization`.
struct Credentials(GatewayOptions);

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
    ];
}

/// An entry of `gateways`.
struct RemoteBlock(RemoteGateway);

impl table::Block for RemoteBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "name",
            Text,
            |block, given| set(&mut block.0.name, name(given)),
            |block| json!(block.0.name),
        )
        .help("Name of the cluster."),
        Entry::<Self>::new(
            "url",
            Texts,
            |block, given| {
                let urls = given.texts()?;
                for url in &urls {
                    RouteAddress::parse(url).map_err(|why| given.fault(why))?;
                }
                block.0.urls.extend(urls);
                Ok(())
            },
            |block| json!(block.0.shown_urls()),
        )
        .shown_as("urls")
        .alias(&["urls"])
        .help(
            "Servers of the cluster, as `nats://user:password@host:7222`. One of them is enough to find the others.",
        ),
        Entry::refused("tls", Any, "it is not supported by Fanline for a single cluster").help("TLS to this cluster. That of the block `gateway` is for all clusters."),
    ];
}

fn read(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    let options = &mut draft.loaded.options;
    let block = GatewayBlock {
        options: GatewayOptions {
            host: draft.listener_host.clone(),
            ..GatewayOptions::default()
        },
        port: None,
        limits: LinkLimits::default(),
    };
    let GatewayBlock {
        options: gateway,
        port,
        limits,
    } = table::read(block, given)?;
    let Some(port) = port else {
        return Err(given.fault(match &*gateway.name {
            "" => "gateway has no name".to_owned(),
            name => format!("gateway {name:?} has no port specified (select -1 for random port)"),
        }));
    };
    options.limits.gateways = limits;
    options.gateway = Some(GatewayOptions { port, ..gateway });
    Ok(())
}

fn show(draft: &Draft) -> Json {
    let options = &draft.loaded.options;
    let Some(gateway) = &options.gateway else {
        return Json::Null;
    };
    table::show(GatewayBlock {
        options: gateway.clone(),
        port: Some(gateway.port),
        limits: options.limits.gateways.clone(),
    })
}
