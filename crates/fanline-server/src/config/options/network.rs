//! Addresses, identity, and files of the server.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde_json::{Value as Json, json};

use super::{Entry, duration_text};
use crate::Dashboard;
use crate::config::table;
use crate::config::table::Kind::{Address, Block, Duration, Integer, Port, Text, Texts};

/// The client port if the configuration has no port, or port 0.
const PORT_DEFAULT: u16 = 4222;
/// Shortest duration of lame duck mode, in seconds.
const LAME_DUCK_SECONDS_MIN: u64 = 30;

pub(super) const OPTIONS: &[Entry] = &[
    Entry::new(
        "listen",
        Address,
        |draft, given| {
            let (host, port) = given.address()?;
            let options = &mut draft.loaded.options;
            options.host = host.unwrap_or_else(|| options.host.clone());
            options.port = port.unwrap_or(PORT_DEFAULT);
            Ok(())
        },
        // The options `host` and `port` show these values.
        |_| Json::Null,
    )
    .default("0.0.0.0:4222")
    .help("`host` and `port` of NATS clients in one. Port -1 picks a free one."),
    Entry::new(
        "host",
        Text,
        |draft, given| {
            if let Some(host) = given.some_text()? {
                draft.loaded.options.host = host;
            }
            Ok(())
        },
        |draft| json!(draft.loaded.options.host),
    )
    .alias(&["net"])
    .flags("-a, --addr, --net")
    .default("0.0.0.0")
    .help("Address to listen on; 127.0.0.1 under `fanline serve` by default."),
    Entry::new(
        "port",
        Port,
        |draft, given| {
            draft.loaded.options.port = given.port()?.unwrap_or(PORT_DEFAULT);
            Ok(())
        },
        |draft| json!(draft.loaded.options.port),
    )
    .flags("-p, --port")
    .default("4222")
    .limit("-1 to 65535")
    .help("Port for NATS clients; -1 picks a free one."),
    Entry::new(
        "server_name",
        Text,
        |draft, given| {
            let name = given.some_text()?;
            if name.as_ref().is_some_and(|name| name.contains(' ')) {
                return Err(given.fault("server name cannot contain spaces"));
            }
            draft.loaded.options.server_name = name;
            Ok(())
        },
        |draft| json!(draft.loaded.options.server_name),
    )
    .flags("-n, --name, --server_name")
    .default("the server's id")
    .limit("no spaces")
    .help("The server's name in INFO and monitoring."),
    Entry::new(
        "server_tags",
        Texts,
        |draft, given| {
            draft.loaded.options.server_tags = Vec::new();
            for tag in given.texts()? {
                let tag = tag.trim().to_lowercase();
                if !draft.loaded.options.server_tags.contains(&tag) {
                    draft.loaded.options.server_tags.push(tag);
                }
            }
            Ok(())
        },
        |draft| json!(draft.loaded.options.server_tags),
    )
    .reloads()
    .help("Tags in monitoring and events, by which requests can select servers."),
    Entry::new(
        "server_metadata",
        Block,
        |draft, given| {
            let metadata = table::read(BTreeMap::new(), given);
            table::set(&mut draft.loaded.options.server_metadata, metadata)
        },
        |draft| json!(draft.loaded.options.server_metadata),
    )
    .block::<BTreeMap<String, String>>()
    .reloads()
    .help("Metadata of the server, reported with its tags."),
    Entry::text("client_advertise", |d| &mut d.loaded.options.client_advertise)
    .reloads()
    .flags("--client_advertise")
    .help("The address in INFO for clients, in place of the listening one."),
    Entry::path("unix_socket", |d| &mut d.loaded.options.unix_socket)
    .help("An additional unix socket to listen on. nats-server does not have it."),
    Entry::flag("proxy_protocol", |d| &mut d.loaded.options.proxy_protocol)
    .default("false")
    .help("Connections begin with a PROXY header, version 1 or 2, which is trusted."),
    Entry::new(
        "http",
        Address,
        |draft, given| {
            let (host, port) = given.address()?;
            draft.monitor_host = host.or_else(|| draft.monitor_host.take());
            draft.http_port = port;
            Ok(())
        },
        |draft| {
            let monitoring = draft.loaded.options.monitoring.as_ref();
            json!(monitoring.map(|(host, port)| format!("{host}:{port}")))
        },
    )
    .default("off")
    .help("Address of monitoring over HTTP; a port alone is on `host`."),
    Entry::new(
        "http_port",
        Port,
        |draft, given| {
            draft.http_port = given.port()?;
            Ok(())
        },
        |draft| json!(draft.loaded.options.monitoring.as_ref().map(|(_, port)| port)),
    )
    .alias(&["monitor_port"])
    .flags("-m, --http_port")
    .default("off")
    .limit("-1 to 65535")
    .help("Port of monitoring over HTTP."),
    Entry::new(
        "https",
        Address,
        |draft, given| {
            let (host, port) = given.address()?;
            draft.monitor_host = host.or_else(|| draft.monitor_host.take());
            draft.https_port = port;
            Ok(())
        },
        |draft| json!(draft.loaded.options.monitoring_tls),
    )
    .default("off")
    .help("Address of monitoring over HTTPS, with the certificates of `tls`. Excludes `http`."),
    Entry::new(
        "https_port",
        Port,
        |draft, given| {
            draft.https_port = given.port()?;
            Ok(())
        },
        |draft| json!(draft.loaded.options.monitoring_tls),
    )
    .flags("-ms, --https_port")
    .default("off")
    .limit("-1 to 65535")
    .help("Port of monitoring over HTTPS."),
    Entry::new(
        "http_base_path",
        Text,
        |draft, given| {
            let path = given.text()?.trim_matches('/');
            draft.loaded.options.monitoring_base_path = match path {
                "" => String::new(),
                path => format!("/{path}"),
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.monitoring_base_path),
    )
    .default("/")
    .help("Prefix of monitoring paths. The dashboard has none."),
    Entry::new(
        "dashboard",
        Text,
        |draft, given| {
            let dashboard = match given.boolean() {
                // In the grammar, a bare `off` is a boolean.
                Ok(is_on) => Some(if is_on { Dashboard::ReadOnly } else { Dashboard::Off }),
                Err(_) => Dashboard::parse(given.text()?),
            };
            let fault = || given.fault("dashboard must be \"off\", \"read\" or \"write\"");
            draft.loaded.options.dashboard = dashboard.ok_or_else(fault)?;
            Ok(())
        },
        |draft| json!(draft.loaded.options.dashboard.name()),
    )
    .default("read")
    .limit("`off`, `read` or `write`")
    .help(
        "Access of the dashboard at the monitoring port: off, read, or write, which may publish and close \
         connections. Fanline only.",
    ),
    Entry::path("ports_file_dir", |d| &mut d.loaded.options.ports_file_dir)
    .flags("--ports_file_dir")
    .help("Folder for `<program>_<pid>.ports` with the ports in use."),
    Entry::path("pid_file", |d| &mut d.loaded.options.pid_file)
    .alias(&["pidfile"])
    .flags("-P, --pid")
    .reloads()
    .help("The PID file."),
    Entry::new(
        "shards",
        Integer,
        |draft, given| {
            draft.loaded.options.shards = NonZeroUsize::new(given.count()?);
            Ok(())
        },
        |draft| json!(draft.loaded.options.shards),
    )
    .default("half as many as cores")
    .help("Number of threads that share the connections. Fanline only."),
    Entry::new(
        "lame_duck_duration",
        Duration,
        |draft, given| {
            let duration = given.text_duration()?;
            if duration.as_secs() < LAME_DUCK_SECONDS_MIN {
                return Err(given.fault(format!(
                    "invalid lame_duck_duration of {}, minimum is {LAME_DUCK_SECONDS_MIN} seconds",
                    crate::clock::go_text(duration)
                )));
            }
            draft.loaded.options.lame_duck_duration = duration;
            Ok(())
        },
        |draft| duration_text(draft.loaded.options.lame_duck_duration),
    )
    .default("2m")
    .limit("at least 30s")
    .reloads()
    .help("Time over which lame duck mode closes all clients."),
    Entry::new(
        "lame_duck_grace_period",
        Duration,
        |draft, given| {
            draft.loaded.options.lame_duck_grace_period = given.text_duration()?;
            Ok(())
        },
        |draft| duration_text(draft.loaded.options.lame_duck_grace_period),
    )
    .default("10s")
    .limit("less than `lame_duck_duration`")
    .reloads()
    .help("Delay before lame duck mode closes the first client."),
];

/// The block `server_metadata`.
impl table::Block for BTreeMap<String, String> {
    const OPTIONS: &'static [table::Entry<Self>] =
        &[table::Entry::<Self>::unshown("*", Text, |metadata, given| {
            metadata.insert(given.key.to_owned(), given.text()?.to_owned());
            Ok(())
        })
        .help("An entry of the metadata.")];
}
