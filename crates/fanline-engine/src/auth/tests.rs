//! Valid and invalid configurations.

use super::*;
use crate::auth::certificate::CertificateNames;
use crate::auth::{Peer, TlsPeer};

fn export(kind: ExportKind, subject: &str, accounts: Option<&[&str]>) -> Export {
    Export {
        kind,
        subject: subject.into(),
        accounts: accounts.map(|names| names.iter().map(|n| (*n).into()).collect()),
        account_token_position: None,
        allow_trace: false,
    }
}

fn import(account: &str, subject: &str, to: Option<&str>) -> Import {
    Import {
        kind: ImportKind::Stream,
        account: account.into(),
        subject: subject.into(),
        to: to.map(String::from),
        allow_trace: false,
    }
}

fn config(change: impl FnOnce(&mut AccessConfig)) -> AccessConfig {
    let mut config = AccessConfig::default();
    change(&mut config);
    config
}

#[test]
fn accounts_get_ids_in_order() {
    let access = Access::new(config(|config| {
        config.system_account = Some("ROOT".into());
        config.account_mut("A").users.push(User::new("ada", "pw"));
        config
            .account_mut("ROOT")
            .users
            .push(User::new("root", "pw"));
        config.no_auth_user = Some("ada".into());
    }))
    .unwrap();
    let names: Vec<&str> = access.accounts().iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["$G", "ROOT", "A"]);
    assert_eq!(access.account_id("ROOT"), Some(AccountId::SYSTEM));
    assert_eq!(access.account_id("A"), Some(AccountId(2)));
    assert_eq!(access.no_auth_user().map(User::name), Some("ada"));
    assert!(access.is_required() && !access.needs_nonce());
    assert!(!Access::open().is_required());
    assert!(Access::token("t").is_required());
}

#[test]
fn successor_keeps_account_ids() {
    let with = |names: &[&str]| {
        config(|config| config.accounts = names.iter().map(|name| Account::new(*name)).collect())
    };
    let first = Access::new(with(&["A", "B"])).unwrap();
    let second = first.successor(with(&["C", "B"])).unwrap();
    for name in ["$G", "$SYS", "A", "B"] {
        assert_eq!(second.account_id(name), first.account_id(name), "{name}");
    }
    assert_eq!(second.account_id("C"), Some(AccountId(4)));
}

#[test]
fn errors_name_the_cause() {
    let check = |change: fn(&mut AccessConfig), expected: &str| {
        let error = Access::new(config(change)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(
        |config| {
            config.account_mut("A").users.push(User::new("ada", "x"));
            config.account_mut("B").users.push(User::new("ada", "y"));
        },
        "Duplicate user \"ada\" detected",
    );
    check(
        |config| {
            config.token = Some("t".into());
            config.account_mut("$G").users.push(User::new("ada", "x"));
        },
        "Can not have a token",
    );
    check(
        |config| config.no_auth_user = Some("nobody".into()),
        "no_auth_user: \"nobody\" not present as user",
    );
    check(
        |config| config.accounts = vec![Account::new("A"), Account::new("A")],
        "Duplicate Account Entry: A",
    );
    check(
        |config| {
            let one = export(ExportKind::Stream, "a", Some(&["NOBODY"]));
            config.account_mut("A").exports.push(one);
        },
        "\"NOBODY\", an account that is not configured",
    );
    check(
        |config| drop(config.default_domains.insert("A".into(), "hub".into())),
        "`default_js_domain` references non existing account \"A\"",
    );
    check(
        |config| {
            config.account_mut("A").jetstream = Some(Default::default());
            config.default_domains.insert("A".into(), "hub".into());
        },
        "default_js_domain contains account name \"A\" with enabled JetStream",
    );
    check(
        |config| drop(config.default_domains.insert("$G".into(), "a.b".into())),
        "invalid domain name \"a.b\"",
    );
}

#[test]
fn imports_need_an_export() {
    let check = |exported: Option<Export>, imported: Import, expected: Option<&str>| {
        let outcome = Access::new(config(|config| {
            config.account_mut("A").exports.extend(exported.clone());
            config.account_mut("B").imports.push(imported.clone());
        }));
        match expected {
            None => assert!(outcome.is_ok(), "{exported:?} {imported:?}"),
            Some(text) => {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains(text), "{error}");
            }
        }
    };
    let stream = |subject, accounts| Some(export(ExportKind::Stream, subject, accounts));
    check(stream("a.>", None), import("A", "a.b", None), None);
    check(stream("a.>", None), import("A", "a.*", Some("x.*")), None);
    check(stream("a.>", Some(&["B"])), import("A", "a.>", None), None);
    check(
        stream("a.*", None),
        import("A", "a.>", None),
        Some("not authorized"),
    );
    check(
        stream("a.>", Some(&["A"])),
        import("A", "a.b", None),
        Some("not authorized"),
    );
    check(None, import("A", "a", None), Some("not authorized"));
    check(None, import("C", "a", None), Some("not configured"));
    check(
        stream("a.>", None),
        import("A", "a.*", Some("x")),
        Some("mapped"),
    );
    let service = ExportKind::Service {
        response: ResponseKind::Single,
        response_threshold: None,
        latency: None,
    };
    let service = Some(export(service, "a.>", None));
    check(service, import("A", "a.b", None), Some("stream import"));
}

#[test]
fn import_cycles_are_refused() {
    let check = |a_to: &str, is_cycle: bool| {
        let outcome = Access::new(config(|config| {
            for (name, other, to) in [("A", "B", a_to), ("B", "A", "x")] {
                let account = config.account_mut(name);
                account.exports.push(export(ExportKind::Stream, ">", None));
                account.imports.push(import(other, "x", Some(to)));
            }
        }));
        let cycles = matches!(outcome, Err(AccessError::ImportCycle(..)));
        assert_eq!(cycles, is_cycle, "{a_to}");
    };
    check("x", true);
    check("y", false);
}

#[test]
fn mappings_are_checked() {
    assert!(Mapping::new("a.*", "b.$1").is_ok());
    let check = |source: &str, destinations: &[(&str, u8, Option<&str>)], expected: &str| {
        let error = Mapping::weighted(source, destinations).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check("a..b", &[("x", 100, None)], "not a valid subject");
    check("a", &[("b.$1", 100, None)], "out of range");
    check("a", &[("b", 60, None), ("c", 60, None)], "<= 100");
    check("a", &[("b", 20, None), ("b", 20, None)], "duplicate");
    assert!(Mapping::weighted("a", &[("b", 60, None), ("b", 60, Some("EAST"))]).is_ok());
}

#[test]
fn patterns_are_checked() {
    for (text, publish, subscribe) in [
        ("a.>", true, true),
        ("a.* workers", false, true),
        ("a.* workers.*", false, true),
        ("a b c", false, false),
        ("a..b", false, false),
        ("", false, false),
    ] {
        assert_eq!(Pattern::parse(text).is_ok(), publish, "{text}");
        assert_eq!(Pattern::parse_with_queue(text).is_ok(), subscribe, "{text}");
    }
}

#[test]
fn filters_cover_and_overlap() {
    for (a, b, covered, overlapping) in [
        ("a", "a", true, true),
        ("a.*", "a.b", true, true),
        ("a.b", "a.*", false, true),
        ("a.>", "a.*.c", true, true),
        ("a.*", "a.>", false, true),
        ("a.>", "a", false, false),
        ("*.b", "a.*", false, true),
        ("*.b", "a.c", false, false),
        (">", "a.>", true, true),
    ] {
        assert_eq!(covers(a, b), covered, "{a} covers {b}");
        assert_eq!(overlap(a, b), overlapping, "{a} overlaps {b}");
        assert_eq!(overlap(b, a), overlapping, "{b} overlaps {a}");
    }
}

/// A certificate identifies the user. A configured password is checked too.
#[test]
fn user_with_certificate_must_also_send_its_password() {
    let access = Access::new(config(|config| {
        let account = config.account_mut("A");
        account.users = vec![
            User::new("ada@example.org", "pw"),
            User::new("bob.example.org", ""),
            User::new("cat", "pw"),
        ];
        config.certificate_kinds = vec![ConnectionKind::Standard];
    }))
    .unwrap();
    let check = |name: &str, user: &str, pass: &str, expected: bool| {
        let names = CertificateNames {
            emails: vec![name.into()],
            ..CertificateNames::default()
        };
        let peer = Peer {
            tls: Some(Box::new(TlsPeer {
                names: Some(names),
                ..TlsPeer::default()
            })),
            ..Peer::default()
        };
        let shown = Credentials {
            user,
            pass,
            ..Credentials::default()
        };
        let decision = access.admit(&shown, &peer);
        let is_admitted = matches!(&decision, Decision::Admitted(grant) if *grant.user == *name);
        assert_eq!(is_admitted, expected, "{name} {user} {pass}");
    };
    check("ada@example.org", "", "pw", true);
    // The certificate determines the user, whatever name the client sends.
    check("ada@example.org", "cat", "pw", true);
    check("ada@example.org", "ada@example.org", "wrong", false);
    check("ada@example.org", "", "", false);
    check("bob.example.org", "", "", true);
    check("bob.example.org", "", "pw", false);
    check("nobody@example.org", "cat", "pw", false);
}

/// Regression: with `allow_non_tls` and `verify_and_map`, clients without TLS were admitted by their password
/// alone. A user without a password was admitted by name on any listener without certificate mapping.
#[test]
fn verify_and_map_cannot_be_bypassed() {
    let access = Access::new(config(|config| {
        let account = config.account_mut("A");
        let mut only_mqtt = User::new("eve", "");
        only_mqtt.connection_kinds = vec![ConnectionKind::Mqtt];
        account.users = vec![User::new("ada", "pw"), User::new("bob", ""), only_mqtt];
        config.no_auth_user = Some("ada".into());
        config.certificate_kinds = vec![ConnectionKind::Standard];
    }))
    .unwrap();
    let check = |kind: ConnectionKind, ip: &str, user: &str, pass: &str, expected: bool| {
        let peer = Peer {
            kind,
            ip: ip.into(),
            ..Peer::default()
        };
        let shown = Credentials {
            user,
            pass,
            ..Credentials::default()
        };
        let decision = access.admit(&shown, &peer);
        let is_admitted = matches!(decision, Decision::Admitted(_));
        assert_eq!(is_admitted, expected, "{kind:?} {ip:?} {user} {pass}");
    };
    let (standard, mqtt) = (ConnectionKind::Standard, ConnectionKind::Mqtt);
    check(standard, "127.0.0.1", "ada", "pw", false);
    check(standard, "127.0.0.1", "", "", false);
    check(standard, "127.0.0.1", "bob", "", false);
    check(mqtt, "127.0.0.1", "ada", "pw", true);
    check(mqtt, "127.0.0.1", "", "", true);
    check(mqtt, "127.0.0.1", "bob", "", false);
    // This user may not use a listener that maps certificates, so it needs no certificate.
    check(mqtt, "127.0.0.1", "eve", "", true);
    // A Unix socket has no TLS, so the password is checked there.
    check(standard, "", "ada", "pw", true);
    check(standard, "", "bob", "", false);
}

#[test]
fn plaintext_passwords_are_detected() {
    let check = |change: &dyn Fn(&mut AccessConfig), expected: bool| {
        let access = Access::new(config(change)).unwrap();
        assert_eq!(access.has_plain_passwords(), expected);
    };
    let add = |config: &mut AccessConfig, user: User| config.account_mut("A").users.push(user);
    let hash = "$2a$11$3kIDaCxw.Glsl1.u5nKa6eUnNDLV5HV9tIuUp7EHhMt6Nm9myW1aS";
    check(&|_| {}, false);
    check(&|config| add(config, User::new("ada", hash)), false);
    check(&|config| add(config, User::new("ada", "pw")), true);
    check(&|config| add(config, User::new("ada", "")), true);
    check(&|config| config.token = Some("t".into()), false);
    let by_certificate = |config: &mut AccessConfig| {
        add(config, User::new("ada", ""));
        config.certificate_kinds = vec![ConnectionKind::Standard];
    };
    check(&by_certificate, false);
}

/// Regression: clients that always send a token must be admitted by a server without an operator.
#[test]
fn token_without_an_operator_is_ignored() {
    let access = Access::new(config(|config| {
        config.account_mut("A").users.push(User::new("ada", "pw"));
        config.no_auth_user = Some("ada".into());
    }))
    .unwrap();
    let check = |shown: Credentials<'_>, expected: bool| {
        let decision = access.admit(&shown, &Peer::default());
        assert_eq!(matches!(decision, Decision::Admitted(_)), expected);
    };
    check(Credentials::default(), true);
    let jwt = Credentials {
        jwt: "eyJ",
        ..Credentials::default()
    };
    check(jwt, true);
    let token = Credentials {
        auth_token: "t",
        ..Credentials::default()
    };
    check(token, false);
}
