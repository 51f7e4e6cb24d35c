//! Configurations that nats-server accepts. An option without effect causes a warning. An option that would
//! leave the server less safe than configured is rejected.

use super::tests::loaded;
use super::{Loaded, load_over, source::Source};
use crate::{ClientCertificates, TlsHandshake};
use std::io;
use std::path::Path;

fn warnings(text: &str) -> Vec<String> {
    let loaded = loaded(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    loaded.unsupported.iter().map(ToString::to_string).collect()
}

/// Checks that a configuration is accepted with one warning that contains these words.
fn check_warning(text: &str, expected: &str) {
    let warnings = warnings(text);
    assert!(
        matches!(&warnings[..], [one] if one.contains(expected)),
        "{text:?}: {warnings:?}"
    );
}

fn check_faults(text: &str, expected: &str) {
    match loaded(text) {
        Ok(_) => panic!("{text:?} is taken"),
        Err(error) => assert!(error.to_string().contains(expected), "{text:?}: {error}"),
    }
}

fn check_taken(text: &str) {
    assert!(warnings(text).is_empty(), "{text:?}: {:?}", warnings(text));
}

#[test]
fn options_without_effect_start_with_a_warning() {
    for text in [
        "disable_sublist_cache: true",
        "prof_port: 6060",
        "prof_block_rate: 1",
        "ocsp_cache: true",
        "jetstream { max_buffered_size: 1GB }",
        "jetstream { max_buffered_msgs: 5 }",
        "jetstream { extension_hint: will_extend }",
        "jetstream { unique_tag: az }",
        "jetstream { max_outstanding_catchup: '1G' }",
        "jetstream { request_queue_limit: 5 }",
        "jetstream { info_queue_limit: 5 }",
        "jetstream { meta_compact: 5 }",
        "jetstream { meta_compact_size: '1G' }",
        "jetstream { meta_compact_sync: true }",
        "jetstream { max_concurrent_io: 8 }",
        "tls { cert_match: x }",
        "tls { cert_match_skip_invalid: true }",
        "tls { ca_certs_match: [a] }",
        "feature_flags { js_ack_fc_v2: true }",
        "write_timeout: retry",
        "resolver: MEMORY",
        "leafnodes { remotes: [ { url: 'nats://h', tls { insecure: true } } ] }",
        "resolver_tls { insecure: true }",
    ] {
        check_warning(text, "without effect");
    }
    for text in [
        "disable_sublist_cache: false",
        "prof_port: 0",
        "jetstream { meta_compact: 0, max_buffered_msgs: 0 }",
        "ocsp: false",
        "ocsp { mode: never }",
        "tls { insecure: true }",
    ] {
        check_taken(text);
    }
    // nats-server rejects these values. This server rejects them, too, even if the option would have no
    // effect.
    for (text, expected) in [
        ("prof_port: x", "expected a number"),
        ("cluster: x", "expected a block"),
        ("jetstream { max_concurrent_io: 3 }", "between 4 and 8192"),
        ("jetstream { meta_compact: -1 }", "not in the range"),
        ("jetstream { meta_compact_size: -1 }", "not negative"),
        ("feature_flags { a: 1 }", "expected true or false"),
        // Ignoring these would leave the server less safe than configured.
        ("ocsp: true", "OCSP is not supported"),
        ("ocsp { mode: must }", "OCSP is not supported"),
        ("tls { ocsp_peer: true }", "OCSP is not supported"),
        ("jetstream { tpm { keys_file: x } }", "TPM"),
    ] {
        check_faults(text, expected);
    }
}

#[test]
fn unsupported_limits_become_the_largest() {
    let text = "max_payload: -1\nmax_pending: 8MB";
    check_warning(text, "max_payload: taken as 8388608 bytes");
    let limits = loaded(text).unwrap().options.limits;
    assert_eq!(limits.payload_bytes_max, 8 << 20);
    check_warning("max_control_line: 1MB", "max_control_line: taken as 64KB");
    let limits = loaded("max_control_line: 1MB").unwrap().options.limits;
    assert_eq!(limits.control_line_bytes_max, 64 << 10);
    let limits = loaded("max_connections: -5\nmax_subs: -5")
        .unwrap()
        .options
        .limits;
    assert_eq!(
        (limits.connections_max, limits.subscriptions_max),
        (usize::MAX, None)
    );
}

#[test]
fn other_names_of_options_are_known() {
    for text in [
        "websocket { port: 80, no_tls: true, compress: true }",
        "jetstream {}\nmqtt { port: 1883, api_timeout: '5s', consumer_auto_cleanup: '5s', max_ack_pending: 0 }",
        "leafnodes { port: 1, leafnode_advertise: 'a:1', minimum_version: 2.8.0 }",
        "leafnodes { port: 1, compression { mode: s2_auto, rtt: [10ms] } }",
        "leafnodes { remotes: [ { urls: 'nats://h', dont_randomize: true, ws_compress: true } ] }",
        "leafnodes { remotes: [ { url: ['nats://h', 'leaf://i:1'], websocket_compress: true } ] }",
        "tls { certificates: [ { cert_file: a, key_file: b } ], handshake_first: auto_fallback }",
        "accounts { A { jetstream { memory: 5, store: 6 } } }",
        "proxies { trusted: [ { public_key: UBXHUHG5FGYLPD6RHL2MKWMP572O6KUXCZXDZJXS4T57ZTMAKBN7CEDX } ] }",
        "root_operators: []",
        "root_operator: []",
        "logfile_size_limit: -1\nlogfile_max_num: -1",
    ] {
        check_taken(text);
    }
    let handshake = |text: &str| loaded(text).unwrap().options.tls.unwrap().handshake;
    assert_eq!(
        handshake("tls { handshake_first: 'on' }"),
        TlsHandshake::First
    );
    assert_eq!(handshake("tls { first: 'false' }"), TlsHandshake::AfterInfo);
    let limits = loaded("tls { connection_rate_limit: -1 }").unwrap();
    assert_eq!(limits.options.tls.unwrap().connection_rate_limit, None);
}

#[test]
fn unsupported_cipher_suites_are_ignored() {
    let suites = |names: &str| {
        format!("tls {{ allow_insecure_cipher_suites: true, cipher_suites: [{names}] }}")
    };
    let good = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    let text = suites(&format!("TLS_RSA_WITH_RC4_128_SHA, {good}"));
    check_warning(
        &text,
        "ignored, because Fanline does not support them: TLS_RSA_WITH_RC4_128_SHA",
    );
    assert_eq!(
        loaded(&text).unwrap().options.tls.unwrap().cipher_suites,
        [good]
    );
    let text = format!("tls {{ cipher_suites: [{good}, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA] }}");
    check_warning(&text, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA");
    check_faults(
        "tls { cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA] }",
        "insecure cipher suites",
    );
    // An empty list would allow every suite, so a list without any supported suite stays unchanged.
    let old = suites("TLS_RSA_WITH_AES_128_CBC_SHA");
    let tls = loaded(&old).unwrap().options.tls.unwrap();
    assert_eq!(tls.cipher_suites, ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
    assert!(crate::tls::check(&tls).is_err());
    let curves = loaded("tls { curve_preferences: [CurveP521, CurveP256] }").unwrap();
    assert_eq!(curves.options.tls.unwrap().curve_preferences, ["CurveP256"]);
}

/// Regression: `no_tls: true` removed the `tls` block next to it, and a `websocket` block without `tls` and
/// `no_tls` was served without encryption.
#[test]
fn websocket_without_tls_needs_no_tls() {
    let tls = "tls { cert_file: a, key_file: b }";
    for inside in [
        format!("{tls}, no_tls: true"),
        format!("no_tls: true, {tls}"),
        tls.to_owned(),
    ] {
        let loaded = loaded(&format!("websocket {{ port: 443, {inside} }}")).unwrap();
        assert!(loaded.options.websocket.unwrap().tls.is_some(), "{inside}");
    }
    let plain = loaded("websocket { port: 80, no_tls: true }").unwrap();
    assert!(plain.options.websocket.unwrap().tls.is_none());
    let expected = "websocket requires TLS configuration";
    check_faults("websocket { port: 80 }", expected);
    check_faults("websocket { port: 80, no_tls: false }", expected);
    check_faults(
        "tls { cert_file: a, key_file: b }\nwebsocket { port: 80 }",
        expected,
    );
    assert!(loaded("websocket {}").unwrap().options.websocket.is_none());
}

/// Regression: a listener's default host was the host of the client listener if `host` stood above the
/// listener's block.
#[test]
fn default_hosts_do_not_depend_on_the_order_of_lines() {
    struct One(String);
    impl Source for One {
        fn file(&self, _: &Path) -> io::Result<Vec<u8>> {
            Ok(self.0.clone().into_bytes())
        }
        fn variable(&self, _: &str) -> Option<String> {
            None
        }
    }
    let blocks = "websocket { port: 1, no_tls: true }\njetstream {}\nmqtt { port: 2 }\nleafnodes { port: 3 }\nhttp: 4";
    for text in [
        format!("host: 1.2.3.4\n{blocks}"),
        format!("{blocks}\nhost: 1.2.3.4"),
    ] {
        let mut defaults = Loaded::default();
        defaults.options.host = "0.0.0.0".into();
        let loaded = load_over("c.conf".as_ref(), defaults, &One(text.clone())).unwrap();
        let options = &loaded.options;
        let hosts = [
            &options.websocket.as_ref().unwrap().host,
            &options.mqtt.as_ref().unwrap().host,
            &options.leafnodes.listener.as_ref().unwrap().host,
        ];
        assert_eq!(hosts, ["0.0.0.0"; 3], "{text:?}");
        assert_eq!(options.monitoring, Some(("1.2.3.4".into(), 4)), "{text:?}");
    }
}

#[test]
fn contradicting_options_are_rejected() {
    for (text, expected) in [
        (
            "http: 1\nhttps: 2",
            "can't specify both HTTP (1) and HTTPs (2) ports",
        ),
        (
            "https_port: 2\nhttp_port: 1",
            "can't specify both HTTP (1) and HTTPs (2) ports",
        ),
        (
            "websocket { port: 1, no_tls: true }\nws { port: 2 }",
            "\"ws\" and \"websocket\" are the same option",
        ),
        (
            "tls { verify: true }\nTLS {}",
            "\"TLS\" and \"tls\" are the same option",
        ),
        (
            "authorization { users: [ { user: a, permissions {}, permission { publish: x } } ] }",
            "\"permission\" and \"permissions\" are the same option",
        ),
        (
            "jetstream {}\nmqtt { port: 1, authorization { user: a } }\nauthorization { users: [ { user: b } ] }",
            "mqtt authentication username not compatible with presence of users/nkeys",
        ),
        (
            "authorization { user: a, password: b }\nno_auth_user: a",
            "no_auth_user: \"a\" present, but users/nkeys are not defined",
        ),
        (
            "websocket { port: 1, no_tls: true, no_auth_user: a }\nauthorization { user: a, password: b }",
            "no_auth_user: \"a\" present, but users/nkeys are not defined",
        ),
    ] {
        check_faults(text, expected);
    }
    // If an option with a single value is repeated, its last value counts.
    let last = loaded("host: a\nnet: b").unwrap();
    assert_eq!(last.options.host, "b");
    let only_https = loaded("http: 0\nhttps: 2").unwrap();
    assert!(only_https.options.monitoring_tls);
}

/// Regression: `trusted_keys` was rejected without a resolver. It needs no resolver, and clients without a
/// JWT are refused.
#[test]
fn trusted_keys_need_no_resolver() {
    let keys = "trusted_keys: OCFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYOCS";
    check_taken(keys);
    let users = format!("{keys}\nauthorization {{ users: [ {{ user: a, password: b }} ] }}");
    check_warning(&users, "ignored because trusted_keys is set");
    for text in [
        keys,
        &users,
        &format!("{keys}\nauthorization {{ token: t }}"),
    ] {
        let loaded = loaded(text).unwrap();
        let directory = loaded.options.auth.directory();
        assert!(
            directory.operators().is_some() && directory.is_required(),
            "{text}"
        );
    }
}

/// Regression: if only a system account was configured, all other clients were refused. Such clients must be
/// admitted to the account `$G`.
#[test]
fn system_account_alone_leaves_other_clients_open() {
    let users = "users: [ { user: s, password: p } ]";
    for (text, is_open) in [
        (format!("accounts {{ $SYS {{ {users} }} }}"), true),
        (
            format!("system_account: S\naccounts {{ S {{ {users} }} }}"),
            true,
        ),
        ("accounts { $SYS {} }".to_owned(), true),
        (format!("accounts {{ S {{ {users} }} }}"), false),
        (format!("accounts {{ $SYS {{ {users} }}, A {{}} }}"), false),
        (
            format!("authorization {{}}\naccounts {{ $SYS {{ {users} }} }}"),
            false,
        ),
    ] {
        let loaded = loaded(&text).unwrap();
        let access = loaded.options.auth.directory();
        let named = access.no_auth_user().map(|user| user.name());
        assert_eq!(named.is_some(), is_open, "{text}");
        assert!(access.is_required(), "{text}");
        let has_user = access.has_no_auth_user(fanline_engine::auth::ConnectionKind::Standard);
        assert!(!has_user, "{text}");
    }
}

#[test]
fn verify_and_map_is_read_in_any_order() {
    for inside in [
        "verify: true, verify_and_map: true",
        "verify_and_map: true, verify: true",
        "verify_and_map: true, verify: false",
    ] {
        let tls = loaded(&format!("tls {{ {inside} }}")).unwrap().options.tls;
        let found = tls.unwrap().client_certificates;
        assert_eq!(found, ClientCertificates::RequiredAndMapped, "{inside}");
    }
}
