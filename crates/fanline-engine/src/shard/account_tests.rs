//! Accounts are isolated, except for exports that other accounts import.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{Client, Simulation};
use crate::auth::{
    Access, AccessConfig, Auth, Export, ExportKind, Import, ImportKind, Mapping, ResponseKind, User,
};
use crate::limits::Limits;
use crate::subject::Filter;

pub(super) const SERVICE: ExportKind = ExportKind::Service {
    response: ResponseKind::Single,
    response_threshold: None,
    latency: None,
};

pub(super) fn export(kind: ExportKind, subject: &str) -> Export {
    Export {
        kind,
        subject: subject.into(),
        accounts: None,
        account_token_position: None,
        allow_trace: false,
    }
}

pub(super) fn import(kind: ImportKind, account: &str, subject: &str, to: Option<&str>) -> Import {
    Import {
        kind,
        account: account.into(),
        subject: subject.into(),
        to: to.map(String::from),
        allow_trace: false,
    }
}

pub(super) fn ask(account: &str, subject: &str, to: Option<&str>) -> Import {
    import(ImportKind::Service { share: false }, account, subject, to)
}

pub(super) fn read(account: &str, subject: &str, to: Option<&str>) -> Import {
    import(ImportKind::Stream, account, subject, to)
}

/// Returns a server with these accounts, as simulated shards.
pub(super) fn simulation(shards: usize, config: AccessConfig) -> (Simulation, Access) {
    let access = Access::new(config.clone()).unwrap();
    let simulation = Simulation::with(
        shards,
        Limits::default(),
        Auth::Directory(Access::new(config).unwrap().into()),
    );
    (simulation, access)
}

pub(super) fn client(
    simulation: &mut Simulation,
    access: &Access,
    shard: usize,
    account: &str,
) -> Client {
    let client = simulation.client(shard);
    let account = access.account_id(account).unwrap();
    simulation.shards[shard].broker.bind(client.id, account);
    client
}

/// Returns the reply subject of the only message that a client has received.
fn reply_of(sent: &str) -> String {
    let line = sent.lines().next().unwrap();
    line.split(' ').nth(3).unwrap().into()
}

fn two_accounts() -> AccessConfig {
    let mut config = AccessConfig::default();
    let exporter = config.account_mut("A");
    exporter.exports = vec![
        export(ExportKind::Stream, "ev.>"),
        export(SERVICE, "svc.*"),
        export(
            ExportKind::Service {
                response: ResponseKind::Stream,
                response_threshold: None,
                latency: None,
            },
            "many.*",
        ),
    ];
    let importer = config.account_mut("B");
    importer.imports = vec![
        read("A", "ev.*.x", Some("seen.$1")),
        ask("A", "svc.*", Some("ask.*")),
        ask("A", "many.*", None),
    ];
    config.account_mut("C");
    config
}

#[test]
fn nothing_crosses_without_an_import() {
    for shards in [1, 2] {
        let (mut simulation, access) = simulation(shards, two_accounts());
        let last = shards - 1;
        let a = client(&mut simulation, &access, 0, "A");
        let b = client(&mut simulation, &access, last, "B");
        let c = client(&mut simulation, &access, last, "C");
        let global = simulation.client(last);
        for other in [b, c, global] {
            simulation.send(other, "SUB > 1\r\nSUB * 2\r\nSUB p q 3\r\nSUB _R_.> 4\r\n");
        }
        simulation.send(a, "SUB > 1\r\n");
        simulation.send(
            a,
            "PUB p 2\r\nhi\r\nPUB ev.1.y 2\r\nhi\r\nPUB seen.1 2\r\nhi\r\nPUB svc.x r.1 2\r\nhi\r\nPUB $JS.API.INFO r.2 0\r\n\r\nPUB _R_.0.1 0\r\n\r\n",
        );
        for other in [b, c, global] {
            assert_eq!(simulation.read(other), "", "{shards} shards");
        }
        simulation.read(a);
        simulation.send(
            b,
            "PUB p 2\r\nhi\r\nPUB ev.1.x 2\r\nhi\r\nPUB svc.x r.1 2\r\nhi\r\nPUB _R_.0.1 0\r\n\r\n",
        );
        for other in [a, c, global] {
            assert_eq!(simulation.read(other), "", "{shards} shards");
        }
    }
}

/// Regression: the last message of a limited subscription removed the route of its subject. The shard then
/// used the removed route to look for responses, and panicked.
#[test]
fn message_from_another_shard_may_end_a_subscription_to_an_exported_subject() {
    let (mut simulation, access) = simulation(2, two_accounts());
    let publisher = client(&mut simulation, &access, 0, "A");
    let subscriber = client(&mut simulation, &access, 1, "A");
    let importer = client(&mut simulation, &access, 1, "B");
    simulation.send(subscriber, "SUB ev.> 1\r\nUNSUB 1 1\r\n");
    simulation.send(importer, "SUB seen.* 1\r\n");
    for number in 0..3 {
        simulation.send(publisher, &format!("PUB ev.1.x 1\r\n{number}\r\n"));
    }
    assert_eq!(simulation.read(subscriber), "MSG ev.1.x 1 1\r\n0\r\n");
    let imported: String = (0..3)
        .map(|number| format!("MSG seen.1 1 1\r\n{number}\r\n"))
        .collect();
    assert_eq!(simulation.read(importer), imported);
}

#[test]
fn stream_imports_are_renamed() {
    for shards in [1, 2] {
        let (mut simulation, access) = simulation(shards, two_accounts());
        let a = client(&mut simulation, &access, 0, "A");
        let b = client(&mut simulation, &access, shards - 1, "B");
        simulation.send(b, "SUB seen.* 1\r\nSUB seen.> q 2\r\nSUB ev.> 3\r\n");
        for _ in 0..3 {
            simulation.send(a, "PUB ev.t.x r.1 2\r\nhi\r\nPUB ev.t.y 2\r\nno\r\n");
            let got = simulation.read(b);
            let expected = "MSG seen.t 1 r.1 2\r\nhi\r\nMSG seen.t 2 r.1 2\r\nhi\r\n";
            assert_eq!(got, expected, "{shards} shards");
        }
    }
}

#[test]
fn requests_are_answered_across_accounts() {
    for shards in [1, 2, 3] {
        let (mut simulation, access) = simulation(shards, two_accounts());
        let service = client(&mut simulation, &access, 0, "A");
        let other = client(&mut simulation, &access, 0, "A");
        let b = client(&mut simulation, &access, shards - 1, "B");
        simulation.send(service, "SUB svc.* q 1\r\n");
        simulation.send(b, "SUB in.* 1\r\n");
        for _ in 0..3 {
            simulation.send(b, "PUB ask.t in.1 2\r\nhi\r\n");
            let request = simulation.read(service);
            assert!(request.starts_with("HMSG svc.t 1 _R_."), "{request}");
            assert!(
                request.contains("\r\nNats-Request-Info: {\"acc\":\"B\""),
                "{request}"
            );
            assert!(request.ends_with("\r\n\r\nhi\r\n"), "{request}");
            let reply = reply_of(&request);
            simulation.send(other, &format!("PUB {reply} 2\r\nho\r\n"));
            assert_eq!(
                simulation.read(b),
                "MSG in.1 1 2\r\nho\r\n",
                "{shards} shards"
            );
            // A second response is not delivered.
            simulation.send(service, &format!("PUB {reply} 2\r\nho\r\n"));
            assert_eq!(simulation.read(b), "");
        }
        let waiting = simulation
            .shards
            .iter()
            .map(|s| s.broker.accounts.requests.len());
        assert_eq!(waiting.sum::<usize>(), 0);
        // This request has no responder.
        simulation.send(b, "PUB many.t in.2 2\r\nhi\r\n");
        let none = simulation.read(b);
        assert!(none.starts_with("HMSG in.2 1 "), "{none}");
        assert!(
            none.contains("NATS/1.0 503\r\nNats-Subject: many.t"),
            "{none}"
        );
    }
}

#[test]
fn every_account_has_imports_from_the_system_account() {
    for shards in [1, 2, 3] {
        let mut config = AccessConfig::default();
        config.account_mut("A");
        config.system_account = Some("SYS".into());
        let (mut simulation, access) = simulation(shards, config);
        let system = client(&mut simulation, &access, shards - 1, "SYS");
        simulation.send(
            system,
            "SUB $SYS.REQ.USER.*.INFO 1\r\nSUB $SYS.REQ.ACCOUNT.*.* 2\r\nSUB $SYS.REQ.SERVER.> 3\r\n",
        );
        for (account, subject, expected) in [
            ("A", "$SYS.REQ.USER.INFO", "$SYS.REQ.USER.A.INFO 1"),
            ("$G", "$SYS.REQ.USER.INFO", "$SYS.REQ.USER.$G.INFO 1"),
            ("SYS", "$SYS.REQ.USER.INFO", "$SYS.REQ.USER.SYS.INFO 1"),
            (
                "A",
                "$SYS.REQ.ACCOUNT.PING.CONNZ",
                "$SYS.REQ.ACCOUNT.A.CONNZ 2",
            ),
            (
                "A",
                "$SYS.REQ.SERVER.PING.CONNZ",
                "$SYS.REQ.ACCOUNT.A.CONNZ 2",
            ),
            (
                "$G",
                "$SYS.REQ.ACCOUNT.PING.STATZ",
                "$SYS.REQ.ACCOUNT.$G.STATZ 2",
            ),
        ] {
            let requester = client(&mut simulation, &access, 0, account);
            simulation.send(requester, "SUB in.* 9\r\n");
            for _ in 0..2 {
                simulation.send(requester, &format!("PUB {subject} in.1 0\r\n\r\n"));
                let request = simulation.read(system);
                assert!(
                    request.starts_with(&format!("HMSG {expected} _R_.0.")),
                    "{request}"
                );
                // Only requests about users contain the user's name.
                assert_eq!(
                    request.contains("\"id\":"),
                    subject.contains("USER"),
                    "{request}"
                );
                assert!(
                    request.contains(&format!("\"acc\":\"{account}\"")),
                    "{request}"
                );
                simulation.send(system, &format!("PUB {} 2\r\nme\r\n", reply_of(&request)));
                assert_eq!(simulation.read(requester), "MSG in.1 9 2\r\nme\r\n");
            }
        }
        // Nothing else of the system account is accessible.
        let a = client(&mut simulation, &access, 0, "A");
        for subject in [
            "$SYS.REQ.SERVER.PING.VARZ",
            "$SYS.REQ.USER.$G.INFO",
            "$SYS.REQ.ACCOUNT.$G.CONNZ",
            "$SYS.REQ.ACCOUNT.PING.INFO",
        ] {
            simulation.send(a, &format!("PUB {subject} in.1 0\r\n\r\n"));
            assert_eq!(simulation.read(system), "", "{subject}");
        }
    }
}

#[test]
fn system_client_is_not_counted() {
    let mut config = AccessConfig::default();
    config
        .account_mut("A")
        .users
        .push(User::new("ada", "secret"));
    let limits = Limits {
        subscriptions_max: Some(1),
        ..Limits::default()
    };
    let access = Access::new(config.clone()).unwrap();
    let mut simulation = Simulation::with(1, limits, Auth::Directory(access.into()));
    let server = simulation.open(0);
    simulation.shards[0].admit_system_client(server.id, crate::auth::AccountId::SYSTEM);
    simulation.read(server);
    simulation.send(server, "SUB a 1\r\nSUB b 2\r\nPING\r\n");
    assert_eq!(simulation.read(server), "PONG\r\n");
    // After a reload of users and accounts, the system client stays connected.
    let access = Access::new(config).unwrap();
    simulation.shards[0].replace_access(access.into(), std::time::Duration::ZERO);
    simulation.send(server, "PUB b 2\r\nhi\r\n");
    assert_eq!(simulation.read(server), "MSG b 2 2\r\nhi\r\n");
    let status = simulation.shards[0].status();
    assert_eq!((status.connections, status.subscriptions), (0, 0));
    assert_eq!(status.total_connections, 0);
    assert_eq!(simulation.shards[0].session_ids().count(), 0);
    assert!(!simulation.shards[0].kick(1));
}

#[test]
fn response_stream_ends_with_an_empty_message_or_its_subscriber() {
    let (mut simulation, access) = simulation(2, two_accounts());
    let service = client(&mut simulation, &access, 0, "A");
    let b = client(&mut simulation, &access, 1, "B");
    simulation.send(service, "SUB many.* 1\r\n");
    simulation.send(b, "SUB in.* 1\r\nPUB many.t in.1 0\r\n\r\n");
    let reply = reply_of(&simulation.read(service));
    let input = format!(
        "PUB {reply} 1\r\na\r\nPUB {reply} 1\r\nb\r\nPUB {reply} 0\r\n\r\nPUB {reply} 1\r\nc\r\n"
    );
    simulation.send(service, &input);
    let expected = "MSG in.1 1 1\r\na\r\nMSG in.1 1 1\r\nb\r\nMSG in.1 1 0\r\n\r\n";
    assert_eq!(simulation.read(b), expected);
    simulation.send(b, "PUB many.t in.2 0\r\n\r\n");
    assert_eq!(simulation.shards[1].broker.accounts.requests.len(), 1);
    simulation.send(b, "UNSUB 1\r\n");
    let due = simulation.shards[1]
        .broker
        .accounts
        .requests
        .next_timeout(None)
        .unwrap();
    simulation.shards[1].handle_timeout(due);
    assert_eq!(simulation.shards[1].broker.accounts.requests.len(), 0);
}

#[test]
fn request_times_out() {
    let (mut simulation, access) = simulation(1, two_accounts());
    let service = client(&mut simulation, &access, 0, "A");
    let b = client(&mut simulation, &access, 0, "B");
    simulation.send(service, "SUB svc.* 1\r\n");
    simulation.send(b, "SUB in.* 1\r\nPUB ask.t in.1 0\r\n\r\n");
    let reply = reply_of(&simulation.read(service));
    let almost = std::time::Duration::from_secs(119);
    simulation.shards[0].broker.expire_requests(almost);
    assert_eq!(simulation.shards[0].broker.accounts.requests.len(), 1);
    simulation.shards[0].broker.expire_requests(almost * 2);
    assert_eq!(simulation.shards[0].broker.accounts.requests.len(), 0);
    simulation.send(service, &format!("PUB {reply} 1\r\na\r\n"));
    assert_eq!(simulation.read(b), "");
}

#[test]
fn subjects_are_mapped() {
    let mut config = AccessConfig::default();
    let mapping = Mapping::new("old.*", "new.$1").unwrap();
    config.account_mut("$G").mappings.push(mapping);
    config.account_mut("A");
    let (mut simulation, access) = simulation(1, config);
    let global = simulation.client(0);
    let a = client(&mut simulation, &access, 0, "A");
    for client in [global, a] {
        simulation.send(
            client,
            "SUB > 1\r\nPUB old.1 2\r\nhi\r\nPUB old.1 2\r\nhi\r\nPUB x 0\r\n\r\n",
        );
    }
    let renamed = "MSG new.1 1 2\r\nhi\r\nMSG new.1 1 2\r\nhi\r\nMSG x 1 0\r\n\r\n";
    assert_eq!(simulation.read(global), renamed);
    assert_eq!(simulation.read(a), renamed.replace("new", "old"));
    // A reload replaces the mappings.
    simulation.shards[0].broker.set_accounts(&Access::open());
    simulation.send(global, "PUB old.1 2\r\nhi\r\n");
    assert_eq!(simulation.read(global), "MSG old.1 1 2\r\nhi\r\n");
}

/// On a server without JetStream, a request to JetStream goes to the configured domain.
#[test]
fn jetstream_request_without_a_domain_goes_to_the_default_domain() {
    let mut config = AccessConfig::default();
    config.account_mut("A");
    config.account_mut("B");
    config.default_domains.insert("A".into(), "hub".into());
    config.default_domains.insert("B".into(), String::new());
    let (mut simulation, access) = simulation(1, config);
    for (account, prefix) in [("A", "$JS.hub.API."), ("B", "")] {
        let own = client(&mut simulation, &access, 0, account);
        simulation.send(own, "SUB > 1\r\n");
        for (subject, elsewhere) in [
            ("$JS.API.INFO", "INFO"),
            ("$JS.API.STREAM.CREATE.S", "STREAM.CREATE.S"),
            ("$JS.API.CONSUMER.MSG.NEXT.S.C", "CONSUMER.MSG.NEXT.S.C"),
            ("$JS.API.DIRECT.GET.S", "DIRECT.GET.S"),
            ("$KV.b.k", "$KV.b.k"),
            ("$OBJ.b.C.x", "$OBJ.b.C.x"),
            ("$JS.other.API.INFO", ""),
            ("$JS.ACK.S.C.1", ""),
        ] {
            simulation.send(own, &format!("PUB {subject} 0\r\n\r\n"));
            let found = match (prefix, elsewhere) {
                ("", _) | (_, "") => subject.to_owned(),
                (prefix, elsewhere) => format!("{prefix}{elsewhere}"),
            };
            assert_eq!(
                simulation.read(own),
                format!("MSG {found} 1 0\r\n\r\n"),
                "{account}"
            );
        }
    }
}

#[test]
fn another_directory_removes_imports() {
    let (mut simulation, access) = simulation(1, two_accounts());
    let a = client(&mut simulation, &access, 0, "A");
    let b = client(&mut simulation, &access, 0, "B");
    simulation.send(b, "SUB seen.* 1\r\n");
    simulation.send(a, "PUB ev.t.x 1\r\n1\r\nPUB ev.t.x 1\r\n2\r\n");
    assert_eq!(
        simulation.read(b),
        "MSG seen.t 1 1\r\n1\r\nMSG seen.t 1 1\r\n2\r\n"
    );
    let mut config = two_accounts();
    config.account_mut("B").imports.clear();
    simulation.shards[0]
        .broker
        .set_accounts(&Access::new(config).unwrap());
    simulation.send(a, "PUB ev.t.x 1\r\n1\r\n");
    assert_eq!(simulation.read(b), "");
}

/// The fields of an import: whether it is a service, the index of the exporter, the index of the importer,
/// the index in `LINKS`, and whether it is renamed. The importer is always a later account, so imports form
/// no cycle.
type Link = (bool, usize, usize, usize, bool);

/// Subjects of imports, and the names under which they are imported.
const LINKS: [(&str, &str); 4] = [("a.*", "p.*"), ("b", "q.b"), (">", "all.>"), ("a.x", "a.y")];

/// The fields of each subscription: account, filter, and whether it is a member of the queue group.
type Wanted = Vec<(usize, String, bool)>;

/// The naive model of deliveries. Counts deliveries by subscription and subject. The queue group has a single
/// count, because only one member receives a message, across all accounts that stream imports lead to.
fn deliver(
    wanted: &Wanted,
    links: &[Link],
    (account, subject): (usize, &str),
    is_served: &mut bool,
    counts: &mut BTreeMap<(usize, String), usize>,
) {
    let is_match = |filter: &str| {
        Filter::parse(filter.as_bytes())
            .unwrap()
            .matches(subject.as_bytes())
    };
    for (at, (of, filter, queue)) in wanted.iter().enumerate() {
        if *of != account || !is_match(filter) {
            continue;
        }
        if !queue {
            *counts.entry((at, subject.into())).or_default() += 1;
        } else if !std::mem::replace(is_served, true) {
            *counts.entry(GROUP).or_default() += 1;
        }
    }
    for (is_service, exporter, importer, link, is_renamed) in links {
        let (exported, name) = LINKS[*link];
        let name = if *is_renamed { name } else { exported };
        let (from, to, at, there) = match is_service {
            false => (exported, name, *exporter, *importer),
            true => (name, exported, *importer, *exporter),
        };
        if at == account && is_match(from) {
            // The wildcard matches the rest of the subject.
            let stem = from.trim_end_matches(['*', '>']);
            let rest = &subject[stem.len()..];
            let made = match to.strip_suffix(['*', '>']) {
                Some(stem) => format!("{stem}{rest}"),
                None => to.into(),
            };
            match is_service {
                true => deliver(wanted, links, (there, made.as_str()), &mut false, counts),
                false => deliver(wanted, links, (there, made.as_str()), is_served, counts),
            }
        }
    }
}

/// The key of the queue group in `counts`, instead of a subscription's index and a subject.
const GROUP: (usize, String) = (usize::MAX, String::new());

fn filter() -> impl Strategy<Value = String> {
    let filters = ["a.*", "a.x", "b", ">", "p.>", "q.*", "all.>", "*.*.*"];
    prop::sample::select(filters.to_vec()).prop_map(String::from)
}

fn link() -> impl Strategy<Value = Link> {
    let accounts = (0usize..3).prop_flat_map(|from| (Just(from), from + 1..4));
    (any::<bool>(), accounts, 0..LINKS.len(), any::<bool>()).prop_map(
        |(is_service, (from, to), subject, is_renamed)| (is_service, from, to, subject, is_renamed),
    )
}

const NAMES: [&str; 4] = ["$G", "B", "C", "D"];

/// Returns a configuration with these imports; `None` if it is invalid.
fn config_with(links: &[Link]) -> Option<AccessConfig> {
    let mut config = AccessConfig::default();
    for name in NAMES {
        config.account_mut(name).exports =
            vec![export(ExportKind::Stream, ">"), export(SERVICE, ">")];
    }
    for (is_service, exporter, importer, subject, is_renamed) in links {
        let (subject, name) = LINKS[*subject];
        let to = is_renamed.then_some(name);
        let import = match is_service {
            true => ask(NAMES[*exporter], subject, to),
            false => read(NAMES[*exporter], subject, to),
        };
        config.account_mut(NAMES[*importer]).imports.push(import);
    }
    Access::new(config.clone()).is_ok().then_some(config)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// With any imports and on any shard, deliveries match the naive model.
    #[test]
    fn deliveries_match_the_naive_model(
        links in prop::collection::vec(link(), 0..4),
        wanted in prop::collection::vec((0usize..4, filter(), any::<bool>()), 1..8),
        published in prop::collection::vec((0usize..4, prop::sample::select(vec!["a.x", "b", "a.z", "p.x"])), 1..6),
        shards in 1usize..3,
    ) {
        // Stream imports and service imports lead in opposite directions, so together they may form a cycle.
        prop_assume!(!links.iter().any(|(is_service, ..)| *is_service)
            || links.iter().all(|(is_service, ..)| *is_service));
        let Some(config) = config_with(&links) else { return Ok(()) };
        let (mut simulation, access) = simulation(shards, config);
        let mut clients = Vec::new();
        for (at, (account, filter, queue)) in wanted.iter().enumerate() {
            let client = client(&mut simulation, &access, at % shards, NAMES[*account]);
            let queue = if *queue { " q" } else { "" };
            simulation.send(client, &format!("SUB {filter}{queue} 1\r\n"));
            clients.push(client);
        }
        for (at, (account, subject)) in published.iter().enumerate() {
            let publisher = client(&mut simulation, &access, at % shards, NAMES[*account]);
            simulation.send(publisher, &format!("PUB {subject} 0\r\n\r\n"));
            let mut expected = BTreeMap::new();
            deliver(&wanted, &links, (*account, *subject), &mut false, &mut expected);
            let mut counts: BTreeMap<(usize, String), usize> = BTreeMap::new();
            for (at, client) in clients.iter().enumerate() {
                let is_member = wanted[at].2;
                let sent = simulation.read(*client);
                for line in sent.lines().filter(|line| line.contains("MSG ")) {
                    let subject = line.split(' ').nth(1).unwrap();
                    let entry = if is_member { GROUP } else { (at, subject.into()) };
                    *counts.entry(entry).or_default() += 1;
                }
            }
            prop_assert_eq!(counts, expected, "{} to {}", subject, NAMES[*account]);
        }
    }
}
