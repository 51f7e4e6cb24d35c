//! Each entry of the table is read, shown, and documented. Each block rejects keys without an entry.

use std::collections::HashSet;

use fanline_engine::auth::jwt::sign;
use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use serde_json::{Value as Json, json};

use super::read::Given;
use super::show::values;
use super::table::{self, About, Block, Entry, Inside, Kind, Node, Standing, TREE};
use super::tests::loaded;
use super::{Place, reference, value};

/// Pairs of a name and a configuration. The tested option replaces `@` in the configuration. The name is the
/// block that contains the option, or `=` followed by the path of one option.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "=tls.verify_cert_and_check_known_urls",
        "cluster { name: x, port: 1, tls { cert_file: c, key_file: k, @ } }",
    ),
    ("=authorization.password", "authorization { user: u, @ }"),
    (
        "authorization.users",
        "authorization { users: [ { user: u, @ } ] }",
    ),
    (
        "=authorization.users.nkey",
        "authorization { users: [ { @ } ] }",
    ),
    (
        "authorization.auth_callout",
        "authorization { users: [ { user: u, password: p } ], \
         auth_callout { issuer: ACCOUNT, auth_users: [u], @ } }",
    ),
    (
        "=authorization.auth_callout.account",
        "accounts { x { users: [ { user: u, password: p } ] } }\n\
         authorization { auth_callout { issuer: ACCOUNT, auth_users: [u], @ } }",
    ),
    (
        "=no_auth_user",
        "authorization { users: [ { user: x, password: p } ] }\n@",
    ),
    ("=system_account", "accounts { x {} }\n@"),
    ("mappings.*", "mappings { a { destination: d, @ } }"),
    (
        "accounts.*",
        "accounts { B { exports: [ { stream: s } ] }, A { @ } }",
    ),
    (
        "accounts.*.exports",
        "accounts { A { exports: [ { service: 's.*', @ } ] }, B {} }",
    ),
    (
        "=accounts.*.exports.stream",
        "accounts { A { exports: [ { @ } ] } }",
    ),
    (
        "accounts.*.exports.latency",
        "accounts { A { exports: [ { service: s, latency { subject: l, @ } } ] } }",
    ),
    (
        "accounts.*.imports",
        "accounts { B { exports: [ { service: s } ] }, A { imports: [ { service { account: B, subject: s }, @ } ] } }",
    ),
    (
        "=accounts.*.imports.stream",
        "accounts { B { exports: [ { stream: s } ] }, A { imports: [ { @ } ] } }",
    ),
    (
        "=accounts.*.imports.service.account",
        "accounts { B { exports: [ { service: s } ] }, A { imports: [ { service { subject: s, @ } } ] } }",
    ),
    (
        "=accounts.*.imports.service.subject",
        "accounts { B { exports: [ { service: x } ] }, A { imports: [ { service { account: B, @ } } ] } }",
    ),
    (
        "accounts.*.msg_trace",
        "accounts { A { msg_trace { dest: t, @ } } }",
    ),
    ("resolver", "resolver { type: full, dir: d, @ }"),
    (
        "=resolver.hard_delete",
        "resolver { type: full, dir: d, allow_delete: true, @ }",
    ),
    ("=resolver.ttl", "resolver { type: cache, dir: d, @ }"),
    ("=tls.cert_file", "tls { key_file: k, @ }"),
    ("=tls.key_file", "tls { cert_file: c, @ }"),
    (
        "=tls.allow_insecure_cipher_suites",
        "tls { cert_file: c, key_file: k, cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA], @ }",
    ),
    (
        "tls.certs",
        "tls { certs: [ { cert_file: c, key_file: k, @ } ] }",
    ),
    ("websocket", "websocket { port: 1, no_tls: true, @ }"),
    ("=websocket.no_tls", "websocket { port: 1, @ }"),
    (
        "=websocket.jwt_cookie",
        "trusted_keys: OPERATOR\nwebsocket { port: 1, no_tls: true, @ }",
    ),
    (
        "=websocket.no_auth_user",
        "authorization { users: [ { user: x, password: p } ] }\nwebsocket { port: 1, no_tls: true, @ }",
    ),
    (
        "websocket.authorization",
        "websocket { port: 1, no_tls: true, authorization { @ } }",
    ),
    (
        "websocket.headers",
        "websocket { port: 1, no_tls: true, headers { @ } }",
    ),
    ("mqtt", "mqtt { port: 1, @ }"),
    (
        "=mqtt.no_auth_user",
        "authorization { users: [ { user: x, password: p } ] }\nmqtt { port: 1, @ }",
    ),
    (
        "mqtt.authorization",
        "mqtt { port: 1, authorization { @ } }",
    ),
    ("cluster", "cluster { port: 1, @ }"),
    (
        "cluster.authorization",
        "cluster { port: 1, authorization { @ } }",
    ),
    ("leafnodes", "leafnodes { port: 1, @ }"),
    (
        "leafnodes.authorization",
        "leafnodes { port: 1, authorization { @ } }",
    ),
    (
        "=leafnodes.authorization.password",
        "leafnodes { port: 1, authorization { user: u, @ } }",
    ),
    (
        "leafnodes.authorization.users",
        "leafnodes { port: 1, authorization { users: [ { user: u, @ } ] } }",
    ),
    (
        "leafnodes.compression",
        "leafnodes { port: 1, compression { @ } }",
    ),
    (
        "leafnodes.remotes",
        "leafnodes { remotes: [ { url: 'nats://h', @ } ] }",
    ),
    (
        "leafnodes.remotes.compression",
        "leafnodes { remotes: [ { url: 'nats://h', compression { @ } } ] }",
    ),
    (
        "leafnodes.remotes.proxy",
        "leafnodes { remotes: [ { url: 'nats://h', proxy { url: 'http://p:1', @ } } ] }",
    ),
    (
        "=leafnodes.remotes.proxy.username",
        "leafnodes { remotes: [ { url: 'nats://h', proxy { url: 'http://p:1', password: p, @ } } ] }",
    ),
    (
        "=leafnodes.remotes.proxy.password",
        "leafnodes { remotes: [ { url: 'nats://h', proxy { url: 'http://p:1', username: u, @ } } ] }",
    ),
    ("=jetstream.prev_key", "jetstream { key: k, @ }"),
    ("=jetstream.cipher", "jetstream { key: k, @ }"),
    ("gateway", "gateway { name: g, port: 1, @ }"),
    (
        "gateway.authorization",
        "gateway { name: g, port: 1, authorization { @ } }",
    ),
    (
        "gateway.gateways",
        "gateway { name: g, port: 1, gateways: [ { name: h, @ } ] }",
    ),
    ("=gateway.port", "gateway { name: g, @ }"),
    ("=gateway.name", "gateway { port: 1, @ }"),
    ("=gateway.listen", "gateway { name: g, @ }"),
    ("proxies.trusted", "proxies { trusted: [ { @ } ] }"),
    ("=operator", "resolver: MEMORY\n@"),
    (
        "=authorization.auth_callout.auth_users",
        "authorization { users: [ { user: u, password: p } ], auth_callout { issuer: ACCOUNT, @ } }",
    ),
    (
        "=accounts.*.imports.service",
        "accounts { B { exports: [ { service: s } ] }, A { imports: [ { @ } ] } }",
    ),
    ("tls", "tls { cert_file: c, key_file: k, @ }"),
    ("=tls.certs", "tls { @ }"),
    (
        "default_js_domain",
        "accounts { x {} }\ndefault_js_domain { @ }",
    ),
    ("=default_js_domain", "accounts { x {} }\n@"),
    (
        "=leafnodes.remotes.proxy.tls",
        "leafnodes { remotes: [ { url: 'nats://h', proxy { url: 'https://p:1', @ } } ] }",
    ),
    ("ocsp", "ocsp { mode: never, @ }"),
    ("=ocsp.mode", "ocsp { @ }"),
];

/// Values of options that do not accept the usual sample of their kind.
const VALUES: &[(&str, &str)] = &[
    ("http", "'h:4998'"),
    ("dashboard", "write"),
    ("max_control_line", "5000"),
    ("max_pending", "80000000"),
    ("write_timeout", "retry"),
    ("authorization.users", "[ { user: u } ]"),
    ("authorization.users.nkey", "USER"),
    ("authorization.users.allowed_connection_types", "[MQTT]"),
    ("authorization.users.permissions", "{ publish: a }"),
    ("authorization.default_permissions", "{ publish: a }"),
    ("authorization.default_permissions.allow_responses", "true"),
    (
        "authorization.auth_callout",
        "{ issuer: ACCOUNT, auth_users: [u] }",
    ),
    ("authorization.auth_callout.issuer", "OTHER"),
    ("authorization.auth_callout.auth_users", "[u]"),
    ("authorization.timeout", "7"),
    ("websocket.authorization.timeout", "7"),
    ("mqtt.authorization.timeout", "7"),
    ("leafnodes.authorization.timeout", "7"),
    ("cluster.authorization.timeout", "7"),
    ("tls", "{ cert_file: c, key_file: k }"),
    ("cluster.tls", "{ cert_file: c, key_file: k }"),
    ("authorization.auth_callout.xkey", "CURVE"),
    ("proxies", "{ trusted: [ { key: USER } ] }"),
    ("proxies.trusted", "[ { key: USER } ]"),
    ("proxies.trusted.key", "USER"),
    ("mappings", "{ a: b }"),
    ("mappings.*.weight", "50"),
    ("accounts", "[x]"),
    ("accounts.*.users", "[ { user: u } ]"),
    ("accounts.*.default_permissions", "{ publish: a }"),
    ("accounts.*.jetstream", "enabled"),
    ("accounts.*.limits", "{ max_conn: 5 }"),
    ("accounts.*.exports", "[ { stream: s } ]"),
    ("accounts.*.exports.accounts", "[B]"),
    ("accounts.*.exports.account_token_position", "2"),
    ("accounts.*.exports.response", "stream"),
    ("accounts.*.exports.latency.sampling", "50"),
    (
        "accounts.*.imports",
        "[ { stream { account: B, subject: s } } ]",
    ),
    ("accounts.*.imports.stream", "{ account: B, subject: s }"),
    ("accounts.*.imports.service", "{ account: B, subject: s }"),
    ("accounts.*.imports.service.account", "B"),
    ("accounts.*.mappings", "{ a: b }"),
    ("accounts.*.msg_trace.sampling", "50"),
    ("operator", "OPERATOR_TOKEN"),
    ("trusted_keys", "OPERATOR"),
    ("resolver", "MEMORY"),
    ("resolver.type", "cache"),
    ("resolver_preload", "{ x: eyJx }"),
    ("resolver_preload.*", "eyJx"),
    ("tls.timeout", "7"),
    ("tls.min_version", "'1.3'"),
    ("tls.handshake_first", "true"),
    ("tls.cipher_suites", "[TLS_AES_128_GCM_SHA256]"),
    ("tls.curve_preferences", "[X25519]"),
    (
        "tls.pinned_certs",
        "['0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef']",
    ),
    ("tls.certs", "[ { cert_file: c, key_file: k } ]"),
    ("websocket", "{ port: 1, no_tls: true }"),
    ("websocket.headers", "{ a: b }"),
    ("websocket.authorization", "{ user: u }"),
    ("mqtt", "{ port: 1 }"),
    ("mqtt.authorization", "{ user: u }"),
    ("cluster.authorization", "{ user: u }"),
    ("cluster.routes", "['nats://x:1']"),
    ("cluster.accounts", "['$G']"),
    ("cluster.compression", "s2_fast"),
    ("leafnodes", "{ port: 1 }"),
    ("leafnodes.min_version", "'2.8.0'"),
    ("leafnodes.write_timeout", "close"),
    ("cluster.write_timeout", "close"),
    ("cluster.permissions", "{ import: a }"),
    ("cluster.authorization.permissions", "{ import: a }"),
    ("leafnodes.compression", "s2_fast"),
    ("leafnodes.compression.mode", "s2_fast"),
    ("leafnodes.compression.rtt_thresholds", "[5ms]"),
    ("leafnodes.authorization", "{ user: u }"),
    ("leafnodes.authorization.users", "[ { user: u } ]"),
    ("leafnodes.authorization.users.*", "true"),
    ("leafnodes.remotes", "[ { url: 'nats://h' } ]"),
    ("leafnodes.remotes.url", "'nats://x'"),
    ("leafnodes.remotes.compression", "s2_fast"),
    ("leafnodes.remotes.compression.mode", "s2_fast"),
    ("leafnodes.remotes.compression.rtt_thresholds", "[5ms]"),
    ("leafnodes.remotes.proxy", "{ url: 'http://p:1' }"),
    ("leafnodes.remotes.proxy.url", "'http://x:1'"),
    ("jetstream", "true"),
    ("jetstream.sync_interval", "31s"),
    ("jetstream.cipher", "chacha"),
    ("jetstream.limits", "{ max_ack_pending: 5 }"),
    ("jetstream.limits.batch", "{ max_msgs: 5 }"),
    ("log_format", "json"),
    ("default_js_domain", "{ x: y }"),
    ("server_metadata", "{ x: y }"),
    ("cluster", "{ name: x }"),
    ("gateway", "{ name: g, port: 1 }"),
    ("gateway.authorization", "{ user: u }"),
    ("gateway.authorization.timeout", "7"),
    ("gateway.tls", "{ cert_file: c, key_file: k }"),
    ("gateway.gateways", "[ { name: h, url: 'nats://x:1' } ]"),
    ("gateway.gateways.url", "'nats://x:1'"),
    ("gateway.write_timeout", "close"),
    ("ocsp.mode", "never"),
];

/// Options that have an effect only together with others, or that have no effect with any accepted value.
const WITHOUT_EFFECT_ALONE: [&str; 3] = ["authorization", "ocsp", "feature_flags"];

/// Returns the text with generated keys and tokens in place of their placeholders.
fn with_keys(text: &str) -> String {
    let key = |kind, number| SecretKey::new(kind, [number; KEY_BYTES]);
    let operator = key(KeyKind::Operator, 1);
    let claims = json!({
        "sub": operator.public().encode(),
        "nats": { "type": "operator", "version": 2 },
    });
    text.replace("OPERATOR_TOKEN", &sign(claims, &operator))
        .replace("OPERATOR", &operator.public().encode())
        .replace("ACCOUNT", &key(KeyKind::Account, 2).public().encode())
        .replace("OTHER", &key(KeyKind::Account, 3).public().encode())
        .replace("USER", &key(KeyKind::User, 4).public().encode())
        .replace("CURVE", &key(KeyKind::Curve, 5).public().encode())
}

/// Returns the effects of a configuration: settings with their secrets, and warnings.
fn effect(text: &str) -> Result<(Vec<Json>, Vec<String>), String> {
    let loaded = loaded(&with_keys(text)).map_err(|error| error.to_string())?;
    let settings = values(&loaded).into_iter().map(|(_, value)| value);
    let warnings = loaded.warnings().map(|fault| fault.reason.clone());
    Ok((settings.collect(), warnings.collect()))
}

fn accepted(text: &str) -> (Vec<Json>, Vec<String>) {
    effect(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns a configuration with this text among the options of a block. `key` is the option under test.
fn within(block: &str, key: &str, text: &str) -> String {
    let template = |name: &str| TEMPLATES.iter().find(|(known, _)| *known == name);
    let template = match template(&format!("={key}")).or_else(|| template(block)) {
        Some((_, template)) => (*template).to_owned(),
        None if block.is_empty() => "@".to_owned(),
        None => {
            let names = block
                .split('.')
                .map(|name| if name == "*" { "a" } else { name });
            let open: Vec<_> = names.collect();
            format!("{} {{ @ {}", open.join(" { "), "}".repeat(open.len()))
        }
    };
    // A configuration must not be empty.
    let text = template.replace('@', &format!("\n{text}\n"));
    format!("connect_error_reports: 3\n{text}")
}

/// Returns a value that is not the default.
fn sample(node: &Node) -> &'static str {
    let own = VALUES.iter().find(|(key, _)| *key == node.key);
    match (own, node.about.kind) {
        (Some((_, value)), _) => value,
        (None, Kind::Bool) if node.about.default == "true" => "false",
        (None, Kind::Bool) => "true",
        (None, Kind::Integer) => "7",
        (None, Kind::Size) => "100000",
        (None, Kind::Port) => "4999",
        (None, Kind::Address) => "'h:4998'",
        (None, Kind::Duration) => "'31s'",
        (None, Kind::Path) => "'/x'",
        (None, Kind::Block) => "{}",
        (None, Kind::Blocks) => "[ {} ]",
        (None, Kind::Text | Kind::Any) => "x",
        (None, Kind::Texts) => "[x]",
    }
}

/// Calls `check` with each option and its block.
fn each(mut check: impl FnMut(&str, &Node)) {
    table::visit("", &TREE, &mut |block, node| check(block, node));
}

/// Returns the names of an option. An entry for any name is tested as `proxy_required` among users, and as
/// `x` elsewhere.
fn names(block: &str, about: &About) -> Vec<&'static str> {
    match (about.name, block) {
        ("*", "leafnodes.authorization.users") => vec!["proxy_required"],
        ("*", _) => vec!["x"],
        (name, _) => [&[name], about.aliases].concat(),
    }
}

#[test]
fn each_option_is_read_and_shown_under_all_its_names() {
    each(|block, node| {
        let about = node.about;
        if WITHOUT_EFFECT_ALONE.contains(&node.key.as_str()) {
            return;
        }
        let without = effect(&within(block, &node.key, ""));
        let value = sample(node);
        for name in names(block, about) {
            let text = within(block, &node.key, &format!("{name}: {value}"));
            match about.standing {
                Standing::Works => {
                    let with = accepted(&text);
                    assert_ne!(Ok(&with), without.as_ref(), "{text} has no effect");
                }
                Standing::Ignored => assert_eq!(Ok(accepted(&text)), without, "{text}"),
                Standing::Warned(sentence) => {
                    let (settings, warnings) = accepted(&text);
                    let expected = format!("{name}: {sentence}");
                    assert!(warnings.contains(&expected), "{text}: {warnings:?}");
                    let without = without.as_ref().map(|(settings, _)| settings);
                    assert_eq!(Ok(&settings), without, "{text}");
                }
                Standing::Refused(sentence) => {
                    let error = effect(&text).expect_err(&text);
                    assert!(
                        error.ends_with(&format!("{name}: {sentence}")),
                        "{text}: {error}"
                    );
                }
            }
        }
    });
}

/// Regression: a reader treated any unknown key as its last option. A key that only defines a variable must
/// not reach the reader of an option.
#[test]
fn a_variable_defined_in_a_block_changes_nothing() {
    each(|block, node| {
        let is_any = |node: &Node| node.about.name == "*";
        let mut siblings = 0;
        each(|other, sibling| siblings += usize::from(other == block && is_any(sibling)));
        let is_left_out = !matches!(node.about.standing, Standing::Works)
            || WITHOUT_EFFECT_ALONE.contains(&node.key.as_str())
            || is_any(node);
        // In a block that accepts any name, the name of a variable is an option, too.
        if is_left_out || siblings > 0 && block != "leafnodes.authorization.users" {
            return;
        }
        let (name, value) = (node.about.name, sample(node));
        let direct = within(block, &node.key, &format!("{name}: {value}"));
        let by_variable = format!("VARIABLE: {value}\n{name}: $VARIABLE");
        let by_variable = within(block, &node.key, &by_variable);
        assert_eq!(accepted(&by_variable), accepted(&direct), "{by_variable}");
    });
    let text = |limits: &str| format!("accounts {{ a {{ limits {{ {limits} }} }} }}");
    assert_eq!(
        accepted(&text("VARIABLE: 5, max_connections: $VARIABLE")),
        accepted(&text("max_connections: 5"))
    );
}

#[test]
fn each_block_refuses_unknown_options() {
    each(|block, node| {
        let Inside::Block(options) = node.about.inside else {
            return;
        };
        let options = options();
        if options.iter().any(|option| option.name == "*") {
            return;
        }
        let name = names(block, node.about)[0];
        let inner = match node.about.kind {
            Kind::Blocks => format!("{name}: [ {{ zork: 1 }} ]"),
            _ => format!("{name}: {{ zork: 1 }}"),
        };
        let text = within(block, &node.key, &inner);
        let error = effect(&text).expect_err(&text);
        assert!(error.contains("unknown field \"zork\""), "{text}: {error}");
    });
}

#[test]
fn each_option_is_documented() {
    let page = reference();
    let mut rows = 0;
    each(|block, node| {
        let title = match block {
            "" => "## Options outside of blocks".to_owned(),
            block => format!("## `{}`", block.replace('*', "NAME")),
        };
        let section = page.split_once(&format!("{title}\n")).expect(&title).1;
        let section = section.split("\n## ").next().unwrap_or_default();
        let is_row = |line: &&str| line.starts_with(&format!("| `{}`", node.about.name));
        let row = section.lines().find(is_row).expect(&node.key);
        assert!(row.contains(node.about.help), "{row}");
        assert!(!node.about.help.is_empty(), "{}", node.key);
        rows += 1;
    });
    let all = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, all, "rows of the page without an option");
}

/// A name belongs to one option of its block. Blocks documented as alike have the same options.
#[test]
fn names_are_unique_and_like_blocks_are_equal() {
    each(|block, node| {
        let mut seen = HashSet::new();
        for about in node.within.iter().map(|node| node.about) {
            for name in [&[about.name], about.aliases].concat() {
                assert!(seen.insert(name.to_lowercase()), "{}: {name}", node.key);
            }
        }
        let Some(like) = node.about.like else {
            return;
        };
        let names = |about: &About| match about.inside {
            Inside::Block(options) => options().iter().map(|option| option.name).collect(),
            _ => Vec::new(),
        };
        let mut found = false;
        each(|_, other| {
            if other.key == like {
                assert_eq!(
                    names(other.about),
                    names(node.about),
                    "{block}: {}",
                    node.key
                );
                found = true;
            }
        });
        assert!(found, "{}: {like} is not documented", node.key);
    });
}

/// A block with two options, to test the reader of blocks directly.
#[derive(Debug, Default, PartialEq)]
struct Pair {
    allow: Vec<String>,
    deny: Vec<String>,
}

impl Block for Pair {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::texts("allow", |pair| &mut pair.allow).alias(&["permit"]),
        Entry::<Self>::texts("deny", |pair| &mut pair.deny),
    ];
}

/// The reader of a block passes each key to its own entry, independent of earlier checks.
#[test]
fn no_key_reaches_the_entry_of_another() {
    let place = Place {
        file: "c.conf".into(),
        line: 1,
        column: 1,
    };
    let node = value::Node {
        value: value::Value::Text("a".into()),
        place: place.clone(),
    };
    let read = |key: &str, is_variable| {
        let mut pair = Pair::default();
        let given = Given {
            key,
            place: &place,
            node: &node,
            is_variable,
        };
        table::read_option(&mut pair, &given).map(|()| pair)
    };
    let a = || vec!["a".to_owned()];
    let allow = Pair {
        allow: a(),
        ..Pair::default()
    };
    let deny = Pair {
        deny: a(),
        ..Pair::default()
    };
    assert_eq!(read("ALLOW", false).as_ref(), Ok(&allow));
    assert_eq!(read("permit", true), Ok(allow));
    assert_eq!(read("deny", false), Ok(deny));
    assert_eq!(read("other", true), Ok(Pair::default()));
    let error = read("other", false).expect_err("it is unknown");
    assert_eq!(error.to_string(), "c.conf:1:1: unknown field \"other\"");
}
