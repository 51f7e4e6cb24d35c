//! Tests of configurations as texts.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_engine::jetstream::Nanos;
use proptest::prelude::*;

use super::{ConfigError, Loaded, Map, Source, Value, load_over, parse, reference};
use crate::{AssetLimits, BatchLimits, ResolverOptions};

/// Files and an environment that exist in the test only. The first file is loaded.
struct Files(HashMap<String, String>);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Files(files.iter().map(own).collect())
    }
}

impl Source for Files {
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let text = self.0.get(&path.display().to_string());
        let text = text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(text.clone().into_bytes())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(&format!("${name}")).cloned()
    }
}

fn read(text: &str, more: &[(&str, &str)]) -> Result<Map, ConfigError> {
    let mut files = Files::new(more);
    files.0.insert("c.conf".into(), text.into());
    parse("c.conf".as_ref(), &files)
}

pub(super) fn loaded(text: &str) -> Result<Loaded, ConfigError> {
    let files = Files::new(&[("c.conf", text)]);
    load_over("c.conf".as_ref(), Loaded::default(), &files)
}

/// Formats a value: strings in quotes, lists and blocks in brackets.
fn show(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Date(value) => value.to_string(),
        Value::Text(value) => format!("{value:?}"),
        Value::List(nodes) => {
            let shown: Vec<String> = nodes.iter().map(|node| show(&node.value)).collect();
            format!("[{}]", shown.join(" "))
        }
        Value::Map(map) => show_map(map),
    }
}

fn show_map(map: &Map) -> String {
    let shown: Vec<String> = map
        .entries()
        .iter()
        .map(|entry| format!("{}={}", entry.key, show(&entry.node.value)))
        .collect();
    format!("{{{}}}", shown.join(" "))
}

fn check(text: &str, expected: &str) {
    match read(text, &[]) {
        Ok(map) => assert_eq!(show_map(&map), expected, "{text:?}"),
        Err(error) => panic!("{text:?}: {error}"),
    }
}

fn check_refused(text: &str, expected: &str) {
    match read(text, &[]) {
        Ok(map) => panic!("{text:?} is {}", show_map(&map)),
        Err(error) => assert!(error.to_string().contains(expected), "{text:?}: {error}"),
    }
}

#[test]
fn keys_separators_and_comments() {
    for text in [
        "a: 1\nb: x",
        "a 1\nb x",
        "a = 1; b = x",
        "a:1,b:x",
        "'a': 1\n\"b\": 'x'",
        "'a'1\n'b''x'",
        "a\n1\nb\nx",
        "{a: 1, b: x}",
        "{\"a\":1,\n \"b\":\"x\"}",
        "# c\na: 1 # c\n// c\nb: x // c",
        "\ta:\t1\r\nb: x\r\n",
        "a: 1\nb: x}",
        "{a: 1}\nb: x",
    ] {
        check(text, "{a=1 b=\"x\"}");
    }
    check("a: 1\na: 2", "{a=2}");
    check(
        "a {b {c: 1}, d: 2\n e = 3; f [x\n y, z]}",
        "{a={b={c=1} d=2 e=3 f=[\"x\" \"y\" \"z\"]}}",
    );
    check("a: []\nb [ # c\n]\nc {}", "{a=[] b=[] c={}}");
    check("a: [[1], {b: 2}]", "{a=[[1] {b=2}]}");
    for (text, expected) in [
        ("a", "c.conf:1:2: expected a value, but the file ends here"),
        (
            "a:\n1",
            "c.conf:1:3: expected a value, but the line ends here",
        ),
        ("a: 1 b: 2", "c.conf:1:6: expected the value to end"),
        (": 1", "c.conf:1:1: expected a key before the separator ':'"),
        (
            "\n  / c",
            "c.conf:2:3: expected a key; a comment begins with //",
        ),
        ("a {b: 1", "expected a comma, a new line or a `}`"),
        (
            "a {b: 1\n",
            "c.conf:2:1: expected a `}` at the end of the block",
        ),
        (
            "a: [1 2]",
            "c.conf:1:7: expected a comma, a new line or a `]`",
        ),
        ("a: [1,,2]", "c.conf:1:7: expected a value, but got ','"),
        ("}\na: 1", "c.conf:1:1: this `}` closes nothing"),
        ("", "c.conf: config has no values or is empty"),
        ("# c", "c.conf: config has no values or is empty"),
        ("a: \0", "c.conf:1:4: a NUL byte"),
    ] {
        check_refused(text, expected);
    }
}

#[test]
fn scalars() {
    for (text, expected) in [
        ("1", "1"),
        ("-1", "-1"),
        ("007", "7"),
        ("1k", "1000"),
        ("2K", "2000"),
        ("1kb", "1024"),
        ("1Ki", "1024"),
        ("1KiB", "1024"),
        ("1m", "1000000"),
        ("3MB", "3145728"),
        ("1gib", "1073741824"),
        ("-2k", "-2000"),
        ("1e", "1000000000000000000"),
        ("1.5", "1.5"),
        ("-1.5", "-1.5"),
        ("5e7bcd", "\"5e7bcd\""),
        ("1h30m", "\"1h30m\""),
        ("1_000", "\"1_000\""),
        ("1.2.3", "\"1.2.3\""),
        ("127.0.0.1:4222", "\"127.0.0.1:4222\""),
        ("+1", "\"+1\""),
        ("TRUE", "true"),
        ("yes", "true"),
        ("On", "true"),
        ("false", "false"),
        ("No", "false"),
        ("off", "false"),
        ("'yes'", "\"yes\""),
        ("yesterday", "\"yesterday\""),
        ("null", "\"null\""),
        ("2026-01-31T08:30:00Z", "2026-01-31T08:30:00Z"),
        ("nats://h:1", "\"nats://h:1\""),
        ("a#b", "\"a#b\""),
        ("a\\tb", "\"a\\tb\""),
        ("\"a\\x41\\n\\\"\\\\\"", "\"aA\\n\\\"\\\\\""),
        ("'a\\n'", "\"a\\\\n\""),
        ("'a\nb'", "\"a\\nb\""),
        ("$2a$11$abc", "\"$2a$11$abc\""),
        ("(\na\n  b)\n)", "\"\\na\\n  b)\\n\""),
        ("''", "\"\""),
    ] {
        check(&format!("k: {text}"), &format!("{{k={expected}}}"));
    }
    for (text, expected) in [
        ("-", "expected a digit"),
        ("-5s", "expected the value to end"),
        ("1.", "expected a digit after the point"),
        (".5", "a number must begin with a digit"),
        ("1.5k", "expected the value to end"),
        (
            "9223372036854775808",
            "integer '9223372036854775808' is out of the range",
        ),
        ("10e", "integer '10' is out of the range"),
        ("2026-01-31", "a date must look like"),
        ("2026-13-31T08:30:00Z", "a date must look like"),
        ("12-31", "a date must look like"),
        ("'a", "c.conf:1:4: this quote is never closed"),
        ("\"\\q\"", "c.conf:1:5: no such escape"),
        ("\"\\x4\"", "two hexadecimal digits"),
        ("\"\\x+4\"", "two hexadecimal digits"),
        ("\"\\xff\"", "the bytes of this text are not UTF-8"),
        ("(a)", "c.conf:1:4: this block of text is never closed"),
    ] {
        check_refused(&format!("k: {text}"), expected);
    }
}

#[test]
fn variables_and_includes() {
    check("V: 5\na: $V", "{V=5 a=5}");
    check("V: 5\nb {V: 6, a: $V}", "{V=5 b={V=6 a=6}}");
    check("V: {x: 1}\nb: [$V]", "{V={x=1} b=[{x=1}]}");
    check_refused(
        "b {V: 6}\na: $V",
        "variable reference for 'V' can not be found",
    );
    check_refused("a: $V\nV: 1", "c.conf:1:4: variable reference for 'V'");
    check_refused("V: $V", "variable reference for 'V'");

    let more = [
        ("$PORT", "5k"),
        ("$NAME", "'a b'"),
        ("$A", "$B"),
        ("$B", "$A"),
        ("inc/a.conf", "include b.conf\nx: 1"),
        ("inc/b.conf", "y: 2"),
        ("inc/variable.conf", "x: $OUTSIDE"),
        ("circle.conf", "include circle.conf"),
    ];
    let show_with = |text: &str| read(text, &more).map_or_else(|e| e.to_string(), |m| show_map(&m));
    assert_eq!(show_with("a: $PORT\nb: $NAME"), "{a=5000 b=\"a b\"}");
    assert!(show_with("a: $A").contains("variable reference cycle"));
    assert_eq!(show_with("x: 0\ninclude 'inc/a.conf'"), "{x=1 y=2}");
    assert_eq!(show_with("a {INCLUDE inc/b.conf; z: 3}"), "{a={y=2 z=3}}");
    assert_eq!(show_with("include: 1"), "{include=1}");
    assert!(show_with("OUTSIDE: 1\ninclude inc/variable.conf").contains("'OUTSIDE'"));
    assert!(show_with("include circle.conf").contains("at most 16 levels"));
    assert!(show_with("include none.conf").starts_with("c.conf:1:1: error parsing include file"));
}

#[test]
fn input_that_would_exhaust_memory_is_rejected() {
    check_refused(&format!("a: {}", "[".repeat(100)), "at most 64 levels");
    check_refused(&"a {".repeat(100), "at most 64 levels");
    let mut text = String::from("V0: [1, 1, 1, 1, 1, 1, 1, 1]\n");
    for i in 1..12 {
        let before = format!("$V{}, ", i - 1).repeat(8);
        text += &format!("V{i}: [{before}]\n");
    }
    check_refused(&text, "at most 4000000 values");
}

/// Digests that nats-server 2.15.2 prints for the same texts.
#[test]
fn the_digest_is_nats_servers() {
    for (text, expected) in [
        (
            "port: 4222",
            "sha256:797533ebd0dfba7d34a0f9337ecf147e442871f48ddfd07ed751575a5737267e",
        ),
        (
            "port=4222;host=h",
            "sha256:01fb2fc66127ef84e067da4bba8d60476b9447fa3f5a2b9842115b7b9f6826eb",
        ),
        (
            "server_name: 'a<b&c>'",
            "sha256:f40819549dc79ef2f47abf2368e7c8e0bf828b9b3720277c2d50b5d8aede9599",
        ),
        (
            "x: 3\nport: $x",
            "sha256:40ed10f33767e394dd957602b18d61b77b6b90ce3c4bf243e4d4b344c043208c",
        ),
    ] {
        let origin = loaded(text).expect(text).options.origin.expect("a file");
        assert_eq!(origin.digest, expected, "{text}");
    }
}

fn check_faults(text: &str, expected: &str) {
    match loaded(text) {
        Ok(_) => panic!("{text:?} is taken"),
        Err(error) => assert_eq!(error.to_string(), expected, "{text:?}"),
    }
}

/// Regression: a plus sign was accepted as the first of two digits.
#[test]
fn pinned_certificates_are_hexadecimal() {
    let text = |pin: &str| format!("tls {{cert_file: a, key_file: b, pinned_certs: [\"{pin}\"]}}");
    let tls = loaded(&text(&"aB".repeat(32))).expect("a pin").options.tls;
    assert!(tls.expect("TLS").pinned_certs.contains(&[0xab; 32]));
    for wrong in [
        "+a".repeat(32),
        "0g".repeat(32),
        "é".repeat(32),
        "0".repeat(62),
    ] {
        let error = loaded(&text(&wrong)).expect_err("not a pin").to_string();
        assert!(error.contains("expected 64 hexadecimal digits"), "{error}");
    }
}

#[test]
fn leaf_nodes_have_deadlines_and_proxies_of_their_own() {
    let text = "write_deadline: 3s\nleafnodes {\n  port: 7422\n  compression: s2_best\n  \
                write_deadline: 20s\n  write_timeout: close\n  authorization { timeout: 5 }\n  remotes: [ {\n    \
                url: \"ws://hub:1\"\n    dial_timeout: 4s\n    \
                proxy { url: \"http://squid:3128\", username: ada, password: secret, timeout: 9s }\n  } ]\n}";
    let options = loaded(text).expect("it is taken").options;
    let seconds = Duration::from_secs;
    assert_eq!(
        options.limits.write_deadline_of(ConnectionKind::Standard),
        seconds(3)
    );
    assert_eq!(
        options.limits.write_deadline_of(ConnectionKind::Leafnode),
        seconds(20)
    );
    assert!(options.limits.leafs.closes_at_deadline);
    let listener = options.leafnodes.listener.expect("it listens");
    assert_eq!(listener.auth_timeout, Some(seconds(5)));
    assert_eq!(listener.compression.name(), "s2_best");
    let remote = &options.leafnodes.remotes[0];
    assert_eq!(remote.dial_timeout, Some(seconds(4)));
    let proxy = remote.proxy.as_ref().expect("a proxy");
    assert_eq!(proxy.timeout, Some(seconds(9)));
    assert_eq!(proxy.username.as_deref(), Some("ada"));
    let text = "leafnodes { remotes: [ { url: hub, proxy { url: 'https://squid', tls { ca_file: a.pem } } } ] }";
    let remotes = loaded(text).expect("it is taken").options.leafnodes.remotes;
    let proxy = remotes[0].proxy.as_ref().expect("a proxy");
    let tls = proxy.tls.as_ref().expect("TLS");
    assert_eq!(tls.ca_file.as_deref(), Some("a.pem".as_ref()));
    for (remote, expected) in [
        (
            "deny_exports: [a..b]",
            "subject \"a..b\" is not a valid subject",
        ),
        (
            "proxy { url: \"http://squid\", tls { ca_file: ca.pem } }",
            "proxy TLS configuration requires an https proxy URL, got: http",
        ),
        (
            "proxy { url: \"http://squid\", username: ada }",
            "proxy username and password must both be specified or both be empty",
        ),
    ] {
        let text = format!("leafnodes {{ remotes: [ {{ url: \"hub\", {remote} }} ] }}");
        match loaded(&text) {
            Ok(_) => panic!("{text:?} is taken"),
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
        }
    }
}

#[test]
fn a_web_server_with_accounts_may_have_tls_of_its_own() {
    let operator = SecretKey::new(KeyKind::Operator, [1; KEY_BYTES]);
    let text = format!(
        "resolver_tls {{ ca_file: ca.pem }}\ntrusted_keys: {}\nresolver: 'URL(https://a/)'",
        operator.public().encode()
    );
    let Some(ResolverOptions::Url(own)) = loaded(&text).expect(&text).options.resolver else {
        panic!("{text}");
    };
    let tls = own.tls.expect("TLS");
    assert_eq!(
        (&*own.url, tls.ca_file.as_deref()),
        ("https://a/", Some("ca.pem".as_ref()))
    );
    let text = format!("{text}\nresolver_pinned_accounts: [x]");
    let error = loaded(&text).expect_err(&text).to_string();
    assert!(
        error.contains("Not a valid public nkey for an account"),
        "{error}"
    );
}

#[test]
fn system_account_is_off_only_if_configured() {
    for (more, expected) in [
        ("", true),
        ("system_account: A\naccounts { A {} }", false),
        (
            "accounts { $SYS { users: [ {user: s, password: s} ] } }",
            false,
        ),
        ("accounts { A {} }", true),
    ] {
        let text = format!("no_sys_acc: true\n{more}");
        let options = loaded(&text).expect(&text).options;
        assert_eq!(options.no_system_account, expected, "{text}");
    }
}

#[test]
fn default_js_domain_applies_to_accounts_without_jetstream() {
    let text = "accounts { A {}, B { jetstream: enabled } }\ndefault_js_domain { A: hub, B: '' }";
    let domains = loaded(text).expect(text).access.default_domains;
    let told: Vec<(&str, &str)> = domains.iter().map(|(a, d)| (&**a, &**d)).collect();
    assert_eq!(told, [("A", "hub"), ("B", "")]);
    for (text, expected) in [
        ("default_js_domain: x", "expected a block"),
        ("default_js_domain { A: hub }", "non existing account \"A\""),
        (
            "accounts { A { jetstream: enabled } }\ndefault_js_domain { A: hub }",
            "account name \"A\" with enabled JetStream",
        ),
    ] {
        let error = loaded(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn invalid_values_are_reported_with_their_position() {
    check_faults(
        "prot: 1",
        "c.conf:1:1: unknown field \"prot\"; did you mean \"port\"?",
    );
    check_faults(
        "max_file_store: 1\n\njetstream {\n  prot: 1\n  host: x }",
        "c.conf:1:1: unknown field \"max_file_store\"; it belongs in jetstream { }\n\
         c.conf:4:3: unknown field \"prot\"\n\
         c.conf:5:3: unknown field \"host\"; it belongs at the top, outside of all blocks",
    );
    check_faults("port: x", "c.conf:1:7: port: expected a number, got text");
    check_faults(
        "port: 70000",
        "c.conf:1:7: port: 70000 is not a port: 1 to 65535, or -1 for any",
    );
    check_faults(
        "listen: h",
        "c.conf:1:9: could not parse address string \"h\"",
    );
    check_faults("V: 5", "c.conf:1:1: unknown field \"V\"");
    check_faults(
        "debug: 'yes'",
        "c.conf:1:8: debug: expected true or false, got text",
    );
    check_faults(
        "mqtt { port: 1883, max_inflight: -1 }",
        "c.conf:1:34: max_inflight: invalid value, should be between 0 and 65535",
    );
    check_faults(
        "authorization {user: a, token: b}",
        "Cannot have a user/pass and token",
    );
    check_faults(
        "cluster {nam: x}",
        "c.conf:1:10: unknown field \"nam\"; did you mean \"name\"?",
    );
    check_faults(
        "tls {cert_file: x}",
        "c.conf:1:5: missing 'key_file' in TLS configuration",
    );
}

#[test]
fn proxies_are_named_by_their_keys() {
    let key = "UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX";
    let text = format!(
        "proxies {{trusted: [{{key: {key}}}]}}\n\
         authorization {{users: [{{user: a, password: b, proxy_required: true}}, {{user: c, password: d}}]}}"
    );
    let access = loaded(&text).unwrap().access;
    assert_eq!(access.proxies.len(), 1);
    assert_eq!(access.proxies[0].encode(), key);
    let users = &access.accounts[0].users;
    assert_eq!(
        [users[0].proxy_required, users[1].proxy_required],
        [true, false]
    );
    assert!(!access.proxy_required);
    let all = loaded("authorization {proxy_required: true, user: a, password: b}");
    assert!(all.unwrap().access.proxy_required);
    check_faults(
        "proxies {trusted: [{key: foo}]}",
        "c.conf:1:26: invalid proxy key \"foo\"",
    );
}

/// Secrets are masked in settings. They are still compared, so that a reload detects a new secret.
#[test]
fn changed_secret_of_a_leaf_node_is_a_change() {
    let with = |secret: &str, listener: &str| {
        let text = format!(
            "accounts {{ A {{}} }}\nleafnodes {{ port: -1, authorization {{ user: l, password: {listener} }}
             remotes: [ {{ url: 'nats://u:{secret}@h:7422', account: A }} ] }}"
        );
        loaded(&text).expect(&text)
    };
    let before = with("s3cret", "s3cret");
    let told = format!("{:?}", before.settings());
    assert!(
        told.contains(super::show::MASK) && !told.contains("s3cret"),
        "{told}"
    );
    let changes = before
        .changes(&with("other", "s3cret"))
        .expect("it reloads");
    let keys: Vec<&str> = changes.iter().map(|change| change.key).collect();
    assert_eq!(keys, ["leafnodes.remotes"]);
    let refused = before.changes(&with("s3cret", "other"));
    let refused = refused.expect_err("it takes a restart").to_string();
    assert!(!refused.contains("s3cret"), "{refused}");
    for proxy in [
        "url: 'http://squid:3128', username: p, password: SECRET",
        "url: 'http://p:SECRET@squid:3128'",
    ] {
        let with = |secret: &str| {
            let proxy = proxy.replace("SECRET", secret);
            let text = format!("leafnodes {{ remotes: [ {{ url: h, proxy {{ {proxy} }} }} ] }}");
            loaded(&text).expect(&text)
        };
        let before = with("s3cret");
        let told = format!("{:?}", before.settings());
        assert!(!told.contains("s3cret"), "{told}");
        let changes = before.changes(&with("other")).expect("it reloads");
        assert_eq!(changes.len(), 1, "{proxy}");
    }
}

#[test]
fn options_of_monitoring_and_traces_are_read() {
    let text = "
        server_tags: [ ' Ab ', ab, c ], server_metadata { rack: '7' }, http_base_path: 'x/y/'
        max_closed_clients: 5, max_sub_tokens: 4, max_traced_msg_len: 9, trace_headers: true";
    let options = loaded(text).expect(text).options;
    assert_eq!(options.server_tags, ["ab", "c"]);
    assert_eq!(options.server_metadata["rack"], "7");
    assert_eq!(options.monitoring_base_path, "/x/y");
    assert_eq!(options.closed_clients_max, 5);
    assert_eq!(options.limits.subscription_tokens_max, Some(4));
    assert_eq!(options.limits.traced_bytes_max, Some(9));
    assert!(options.limits.traces_headers_only && options.trace_protocol);
    for text in [
        "max_sub_tokens: 0",
        "max_sub_tokens: 256",
        "server_tags: 5",
        "server_metadata: x",
        "server_metadata { a: 1 }",
    ] {
        assert!(loaded(text).is_err(), "{text}");
    }
}

#[test]
fn common_options_cause_no_warning() {
    let text = "
        host: 0.0.0.0, port: -1, http: '127.0.0.1:-1', ports_file_dir: '/tmp'
        server_tags: [ a, b ], no_header_support: false, trusted_keys: []
        cluster { name: c, listen: '0.0.0.0:6222', routes: [ 'nats://a:6222' ], ping_max: 3 }
        websocket { port: -1, no_tls: true }
        jetstream { store_dir: '/s', max_memory_store: 1G, max_file_store: 10GB, strict: true
                    domain: d, limits { max_ack_pending: 5 } }";
    let loaded = loaded(text).expect(text);
    assert_eq!(loaded.warnings().count(), 0);
    assert_eq!(loaded.options.limits.routes.pings_out_max, Some(3));
    let cluster = loaded.options.cluster.as_ref().expect("it listens");
    assert_eq!((&*cluster.host, cluster.port), ("0.0.0.0", 6222));
    assert_eq!(cluster.routes, ["nats://a:6222"]);
    let jetstream = loaded.options.jetstream.expect("JetStream is on");
    assert_eq!(jetstream.memory_bytes_max, Some(1_000_000_000));
    assert_eq!(jetstream.file_bytes_max, Some(10 << 30));
    assert_eq!(jetstream.store_dir, Some("/s".into()));
    assert_eq!(jetstream.asset_limits.ack_pending_max, Some(5));
    assert_eq!(loaded.options.monitoring, Some(("127.0.0.1".into(), 0)));
}

#[test]
fn limits_of_streams_and_consumers() {
    let text = "jetstream { limits { max_ack_pending: 500, max_ha_assets: 3, max_request_batch: 50
                duplicate_window: '30s', default_max_consumers: -1
                batch { max_inflight_per_stream: 1, max_inflight_total: 2, max_msgs: 3, timeout: '1m' } } }";
    let limits = loaded(text).expect(text).jetstream.asset_limits;
    let expected = AssetLimits {
        ack_pending_max: Some(500),
        request_batch_max: Some(50),
        duplicate_window_max: Some(Nanos::from_secs(30)),
        consumers_default: None,
        batches: BatchLimits {
            open_per_stream_max: Some(1),
            open_max: Some(2),
            messages_max: Some(3),
            idle_max: Some(Duration::from_secs(60)),
        },
    };
    assert_eq!(limits, expected);
    for wrong in [
        "max_ack_pending: x",
        "duplicate_window: 5",
        "duplicate_window: x",
        "batch: 3",
        "batch { timeout: 5 }",
        "batch { more: 1 }",
        "more: 1",
        "max_ha_assets: x",
    ] {
        let text = format!("jetstream {{ limits {{ {wrong} }} }}");
        assert!(loaded(&text).is_err(), "{text}");
    }
}

#[test]
fn numbers_for_durations_are_deprecated() {
    let loaded = loaded("ping_interval: 5").expect("it is taken");
    assert_eq!(loaded.options.limits.ping_interval.as_secs(), 5);
    assert_eq!(
        loaded.deprecated[0].to_string(),
        "c.conf:1:16: invalid use of field \"ping_interval\": ping_interval should be converted \
         to a duration"
    );
}

#[test]
fn secrets_are_not_shown() {
    for text in [
        "authorization {user: a, password: s3cret}",
        "authorization {token: s3cret}",
    ] {
        let loaded = loaded(text).expect(text);
        let shown = format!("{:?}", loaded.settings());
        assert!(!shown.contains("s3cret"), "{text}: {shown}");
    }
}

#[test]
fn a_reload_is_all_or_nothing() {
    let changes = |before: &str, after: &str| {
        let (before, after) = (loaded(before).expect(before), loaded(after).expect(after));
        match before.changes(&after) {
            Ok(changes) => changes.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        }
    };
    let none: [&str; 0] = [];
    assert_eq!(changes("port: 4222", "debug: false"), none);
    assert_eq!(
        changes("debug: no", "debug: yes\nping_interval: '5s'"),
        ["ping_interval = 5s", "debug = true"]
    );
    assert_eq!(
        changes("debug: no", "debug: yes\nserver_name: x"),
        ["config reload not supported for ServerName: old=, new=x"]
    );
    let tls = "tls {cert_file: a.pem, key_file: a.key}";
    let time = |seconds: u8| format!("authorization timeout = {seconds}s");
    assert_eq!(changes("debug: no", tls), [&time(3), "tls = enabled"]);
    assert_eq!(changes(tls, "debug: no"), [&time(2), "tls = disabled"]);
    assert_eq!(
        changes(tls, &format!("{tls}\nallow_non_tls: true")),
        ["allow_non_tls = true"]
    );
    let leafs = |own: &str| format!("leafnodes {{ port: 7422\n {own} }}");
    assert_eq!(
        changes(&leafs(""), &leafs(tls)),
        [
            "leafnodes authorization timeout = 3s",
            "leafnodes tls = enabled"
        ]
    );
    let refused = "config reload not supported for Leafnodes: ";
    let moved = changes(&leafs(""), "leafnodes { port: 7423 }");
    assert!(moved[0].starts_with(refused), "{moved:?}");
    let mqtt = |own: &str| format!("mqtt {{ port: 1883\n {own} }}");
    assert_eq!(changes(&mqtt(tls), &mqtt("")), ["mqtt tls = disabled"]);
    assert_eq!(
        changes(&mqtt(""), &mqtt("max_ack_pending: 7, ack_wait: 40s")),
        ["mqtt ack_wait = 40s", "mqtt max_ack_pending = 7"]
    );
    // As in nats-server, a listener without `tls` needs an explicit `no_tls`.
    let websocket = |own: &str| format!("websocket {{ port: 8080\n {own} }}");
    let newer = tls.replace("}", ", timeout: 5}");
    assert_eq!(
        changes(&websocket(tls), &websocket(&newer)),
        ["websocket tls = enabled"]
    );
    let switched = changes(&websocket(tls), &websocket("no_tls: true"));
    let refused = "config reload not supported for Websocket: ";
    assert!(switched[0].starts_with(refused), "{switched:?}");
    assert_eq!(
        changes(
            "authorization {user: a, password: b}",
            "authorization {user: a, password: c}"
        ),
        ["authorization users"]
    );
}

/// `docs/configuration.md` equals the output of the table of options.
#[test]
fn the_reference_page_is_up_to_date() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    assert!(
        page == reference(),
        "write it again: cargo run -p fanline-cli -- config reference > docs/configuration.md"
    );
}

/// Values of all kinds, each with a way to write it.
fn value() -> impl Strategy<Value = (String, String)> {
    let scalar = prop_oneof![
        any::<i32>().prop_map(|n| (n.to_string(), n.to_string())),
        any::<bool>().prop_map(|b| (b.to_string(), b.to_string())),
        "[a-z]{1,5}x".prop_map(|text| (text.clone(), format!("{text:?}"))),
        "[a-z #/,;:{}$=]{0,8}".prop_map(|text| (format!("'{text}'"), format!("{text:?}"))),
        "[a-z \t\n\"\\\\]{0,8}".prop_map(|text| (format!("{text:?}"), format!("{text:?}"))),
    ];
    scalar.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|values| {
                let (texts, shown): (Vec<_>, Vec<_>) = values.into_iter().unzip();
                (
                    format!("[ {} ]", texts.join("\n , ").replace("\n ,", ",\n")),
                    format!("[{}]", shown.join(" ")),
                )
            }),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..5).prop_map(|pairs| {
                let separators = [": ", " = ", " "];
                let (texts, shown): (Vec<_>, Vec<_>) = pairs
                    .into_iter()
                    .filter(|(key, _)| key != "include")
                    .enumerate()
                    .map(|(i, (key, (text, shown)))| {
                        (
                            format!("{key}{}{text}", separators[i % 3]),
                            format!("{key}={shown}"),
                        )
                    })
                    .unzip();
                (
                    format!("{{ {} }}", texts.join("\n")),
                    format!("{{{}}}", shown.join(" ")),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn written_values_are_parsed_back(pair in value()) {
        let (text, expected) = pair;
        let map = read(&format!("k: {text}\nl: 1"), &[]);
        prop_assert_eq!(map.map(|map| show_map(&map)), Ok(format!("{{k={expected} l=1}}")));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ab:= \n\t\\[\\]{}(),;'\"\\\\#/$0-9.x-]{0,60}|include \\PC{0,20}|\\PC{0,60}") {
        let _ = loaded(&text);
    }
}

/// Credentials of listeners are accepted with all their options, and shown without secrets.
#[test]
fn listeners_have_their_own_credentials() {
    for (block, key) in [
        ("websocket {port: 1, no_tls: true, ", "websocket"),
        ("mqtt {port: 1, ", "mqtt"),
    ] {
        let with = |what: &str| loaded(&format!("{block}authorization {{{what}}}}}")).expect(what);
        let told = |loaded: &Loaded| {
            let settings = loaded.settings();
            let setting = settings.into_iter().find(|setting| setting.key == key);
            setting.expect(key).value["authorization"].to_string()
        };
        let user = with("user: ada, password: s3cret, timeout: 0.5");
        assert_eq!(
            told(&user),
            r#"{"password":"********","timeout":"500ms","user":"ada"}"#
        );
        assert_eq!(
            told(&with("token: s3cret")),
            r#"{"timeout":null,"token":"********"}"#
        );
        // Another secret is a change, although both are masked.
        let other = with("user: ada, password: other, timeout: 0.5");
        let refused = user.changes(&other).expect_err("it takes a restart");
        assert_eq!(refused.key, key);
        assert!(!refused.to_string().contains("s3cret"), "{refused}");
    }
    let open = loaded("websocket {port: 1, no_tls: true, no_auth_user: a}");
    let error = open.expect_err("there is no such user").to_string();
    assert!(error.contains("users/nkeys are not defined"), "{error}");
    let users = "authorization {users: [{user: a, password: b}]}\n";
    let guest = loaded(&format!(
        "{users}websocket {{port: 1, no_tls: true, no_auth_user: a}}"
    ));
    let websocket = guest
        .expect("a user")
        .options
        .websocket
        .expect("a listener");
    assert_eq!(websocket.no_auth_user.as_deref(), Some("a"));
}

/// By default, nats-server gives a client one second after the TLS handshake to authenticate.
#[test]
fn auth_timeout_defaults_to_tls_timeout_plus_one_second() {
    let tls = "cert_file: a.pem, key_file: a.key";
    let check = |text: &str, clients_ms: u128, leafs_ms: u128| {
        let leafs = format!("{text}\nleafnodes {{port: -1}}");
        let options = loaded(&leafs).expect(&leafs).options;
        assert_eq!(
            options.limits.auth_timeout.as_millis(),
            clients_ms,
            "{text}"
        );
        let listener = options.leafnodes.listener.expect("a listener");
        let timeout = listener.auth_timeout.expect("a time");
        assert_eq!(timeout.as_millis(), leafs_ms, "{text}");
    };
    check("debug: false", 2_000, 2_000);
    check(&format!("tls {{{tls}}}"), 3_000, 2_000);
    check(&format!("tls {{{tls}, timeout: 1.5}}"), 2_500, 2_000);
    check(
        &format!("tls {{{tls}, timeout: 5}}\nauthorization {{timeout: 0.5}}"),
        500,
        2_000,
    );
    check(
        &format!("tls {{{tls}}}\nauthorization {{timeout: 0}}"),
        3_000,
        2_000,
    );
    let leafs = format!("leafnodes {{port: -1, tls {{{tls}, timeout: 4}}}}");
    let listener = loaded(&leafs).expect(&leafs).options.leafnodes.listener;
    let timeout = listener.and_then(|listener| listener.auth_timeout);
    assert_eq!(timeout.map(|time| time.as_secs()), Some(5));
}

#[test]
fn numbers_for_durations_within_blocks_are_deprecated() {
    let check = |text: &str, expected: Option<&str>| {
        let noted = loaded(text).expect(text).deprecated;
        let noted: Vec<String> = noted.iter().map(ToString::to_string).collect();
        assert_eq!(noted.len(), usize::from(expected.is_some()), "{noted:?}");
        let key = expected.unwrap_or_default();
        let says = |line: &String| line.contains(&format!("{key} should be converted"));
        assert!(noted.iter().all(says), "{noted:?}");
    };
    check("leafnodes {reconnect: 5}", Some("reconnect"));
    check("leafnodes {reconnect: '5s'}", None);
    check("leafnodes {dial_timeout: 5}", Some("dial_timeout"));
    let remote = "leafnodes {remotes: [{url: 'nats://h:1', first_info_timeout: 4}]}";
    check(remote, Some("first_info_timeout"));
    check("mqtt {ack_wait: 5}", Some("ack_wait"));
    check("websocket {ping_interval: 5}", Some("ping_interval"));
    // nats-server does not warn about this option.
    check("websocket {handshake_timeout: 5}", None);
}

#[test]
fn tokens_in_cookies_need_an_operator() {
    let error = loaded("websocket {port: 1, no_tls: true, jwt_cookie: j}");
    let error = error.expect_err("nobody could be believed").to_string();
    assert!(error.contains("via cookie \"j\""), "{error}");
    // Without a port, the block has no effect.
    loaded("websocket {jwt_cookie: j}").expect("it says nothing");
}

#[test]
fn flags_without_effect_are_accepted() {
    for text in [
        "feature_flags {js_ack_fc_v2: false, js_raft_delete_range: true}",
        "feature_flags {JS_API_REPLY_V2: no}",
        "feature_flags {}",
    ] {
        assert_eq!(loaded(text).unwrap().unsupported, [], "{text}");
    }
    let warned = loaded("feature_flags {JS_API_REPLY_V2: on}").unwrap();
    assert_eq!(warned.unsupported.len(), 1);
    assert!(loaded("feature_flags {js_ack_fc_v2: 5}").is_err());
}

#[test]
fn connect_error_reports_are_read() {
    let check = |text: &str, expected: [Option<u64>; 2]| {
        let leafnodes = loaded(text).expect(text).options.leafnodes;
        let told = [
            leafnodes.connect_error_reports,
            leafnodes.reconnect_error_reports,
        ];
        assert_eq!(told, expected, "{text}");
    };
    check("connect_error_reports: 5", [Some(5), None]);
    check("reconnect_error_reports: 1", [None, Some(1)]);
    check("connect_error_reports: 0", [None, None]);
}

/// `-t` finds errors that would stop the server at its start.
#[test]
fn remotes_are_checked_with_the_files() {
    let check = |text: &str, expected: &str| {
        let outcome = loaded(text).expect(text).check_files();
        let said = outcome.err().map(|error| error.to_string());
        let said = said.unwrap_or_default();
        let is_expected = said.contains(expected) && said.is_empty() == expected.is_empty();
        assert!(is_expected, "{text}: {said}");
    };
    let remotes = |remotes: &str| format!("leafnodes {{remotes: [{remotes}]}}");
    check(&remotes("{url: 'nats://h:1'}"), "");
    check(
        &remotes("{url: 'nats://h:1', account: A}"),
        "cannot find local account \"A\"",
    );
    check(
        &remotes("{url: 'nats://h:1', credentials: nowhere.creds}"),
        "nowhere.creds",
    );
    check(
        &remotes("{url: 'nats://h:1'}, {url: 'nats://h:1'}"),
        "duplicate remote",
    );
}
