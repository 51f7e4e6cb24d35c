use std::sync::Arc;
use std::time::Duration;

use super::SessionId;
use super::tests::{Client, Simulation};
use crate::auth::{
    Access, AccessConfig, Account, AccountId, Allowed, Auth, ConnectionKind, Peer, Permissions,
    User,
};
use crate::codec::leaf::LeafInfo;
use crate::codec::nats::error::CloseReason;
use crate::limits::{Limits, LinkLimits};
use crate::session::leaf::{Agreed, Dialled, LeafCredentials, LeafListener, LeafRemote};

/// Opens a leaf connection on the first shard.
fn leaf(simulation: &mut Simulation, name: &str) -> Client {
    leaf_of(simulation, name, name)
}

/// Opens a leaf connection of a server in a cluster.
fn leaf_of(simulation: &mut Simulation, name: &str, cluster: &str) -> Client {
    let id = simulation.open_leaf(None);
    let leaf = Client { shard: 0, id };
    assert!(simulation.read(leaf).contains("\"info_on_connect\":true"));
    let connect = format!(
        "CONNECT {{\"name\":\"{name}\",\"cluster\":\"{cluster}\",\"headers\":true,\"protocol\":3}}\r\n"
    );
    simulation.send(leaf, &connect);
    leaf
}

/// Opens a leaf connection and discards its first output.
fn quiet_leaf(simulation: &mut Simulation, name: &str) -> Client {
    let leaf = leaf(simulation, name);
    let output = simulation.read(leaf);
    assert!(output.starts_with("INFO {"), "{output}");
    assert!(output.contains("\"connect_info\":true"), "{output}");
    assert!(output.contains("\r\nLS+ $LDS."), "{output}");
    leaf
}

/// Opens a leaf connection to a hub that has admitted this server.
fn dialled(simulation: &mut Simulation, remote: LeafRemote, info: &str) -> Client {
    let remote = LeafRemote {
        account: "$G".into(),
        ..remote
    };
    let dialled = Dialled {
        remote: Arc::new(remote),
        info: LeafInfo::parse(info.as_bytes()).unwrap(),
        credentials: LeafCredentials {
            user: "ada".into(),
            ..LeafCredentials::default()
        },
    };
    Client {
        shard: 0,
        id: simulation.open_leaf(Some(dialled)),
    }
}

const HUB: &str = r#"{"client_id":5,"server_name":"hub","headers":true,"info_on_connect":true}"#;

#[test]
fn messages_and_interest_cross_both_ways() {
    for shards in [1, 2, 3] {
        let mut simulation = Simulation::new(shards);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB before.* 1\r\n");
        let leaf = leaf(&mut simulation, "edge");
        let output = simulation.read(leaf);
        assert!(output.ends_with("LS+ before.*\r\n"), "{output}");
        simulation.send(client, "SUB later 2\r\nSUB later 3\r\n");
        assert_eq!(simulation.read(leaf), "LS+ later\r\n");
        simulation.send(client, "UNSUB 2\r\n");
        assert_eq!(simulation.read(leaf), "");
        simulation.send(client, "UNSUB 3\r\n");
        assert_eq!(simulation.read(leaf), "LS- later\r\n");
        // Messages come in.
        simulation.send(
            leaf,
            "LMSG before.x 2\r\nhi\r\nHMSG before.y r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        );
        assert_eq!(
            simulation.read(client),
            "MSG before.x 1 2\r\nhi\r\nHMSG before.y 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
        );
        // Messages go out once each, even if several filters match.
        simulation.send(leaf, "LS+ there.*\r\nLS+ there.>\r\nLS+ there.a\r\n");
        for _ in 0..3 {
            simulation.send(client, "PUB there.a r 2\r\nhi\r\n");
            assert_eq!(simulation.read(leaf), "LMSG there.a r 2\r\nhi\r\n");
        }
        simulation.send(client, "HPUB there.b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n");
        assert_eq!(
            simulation.read(leaf),
            "HMSG there.b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
        );
        // Messages never return to the connection that they came from.
        simulation.send(leaf, "LMSG there.a 2\r\nhi\r\n");
        assert_eq!(simulation.read(leaf), "");
        simulation.send(leaf, "LS- there.*\r\nLS- there.>\r\nLS- there.a\r\n");
        simulation.send(client, "PUB there.a 2\r\nhi\r\n");
        assert_eq!(simulation.read(leaf), "");
    }
}

#[test]
fn reply_interest_is_announced_before_the_request() {
    for shards in [1, 2] {
        let mut simulation = Simulation::new(shards);
        let leaf = quiet_leaf(&mut simulation, "edge");
        simulation.send(leaf, "LS+ ask\r\n");
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB in.1 1\r\nPUB ask in.1 1\r\n?\r\n");
        assert_eq!(
            simulation.read(leaf),
            "LS+ in.1\r\nLMSG ask in.1 1\r\n?\r\n"
        );
        simulation.send(leaf, "LMSG in.1 1\r\n!\r\n");
        assert_eq!(simulation.read(client), "MSG in.1 1 1\r\n!\r\n");
        // Without a responder, the requester receives a 503.
        simulation.send(leaf, "LS- ask\r\n");
        simulation.send(client, "PUB ask in.1 1\r\n?\r\n");
        assert!(simulation.read(client).contains("NATS/1.0 503"));
        // A subscription that ends in the same input is not announced.
        simulation.send(client, "SUB gone 9\r\nUNSUB 9\r\n");
        assert_eq!(simulation.read(leaf), "");
    }
}

/// Regression: the protocol trace showed no line, or the line of an earlier rewritten message.
#[test]
fn protocol_trace_shows_the_line_of_a_leaf_connection() {
    let mut simulation = Simulation::new(1);
    let leaf = quiet_leaf(&mut simulation, "edge");
    let client = simulation.client(0);
    simulation.send(leaf, "LS+ a\r\n");
    simulation.shards[0].broker.exchange.outputs.traces = true;
    simulation.send(client, "PUB a r 2\r\nhi\r\n");
    assert_eq!(simulation.read(leaf), "LMSG a r 2\r\nhi\r\n");
    let lines = simulation.shards[0].take_traces().into_iter();
    let lines: Vec<String> = lines
        .filter(|(id, _)| *id == leaf.id)
        .map(|(_, line)| line)
        .collect();
    assert_eq!(lines, ["->> [LMSG a r 2]"]);
}

#[test]
fn queue_groups_prefer_local_members_then_weight() {
    for shards in [1, 2] {
        let mut simulation = Simulation::new(shards);
        let (one, two) = (
            quiet_leaf(&mut simulation, "one"),
            quiet_leaf(&mut simulation, "two"),
        );
        simulation.read(one);
        let client = simulation.client(shards - 1);
        simulation.send(one, "LS+ work q 3\r\n");
        simulation.send(two, "LS+ work q 1\r\n");
        assert_eq!(simulation.read(one), "LS+ work q 1\r\n");
        assert_eq!(simulation.read(two), "LS+ work q 3\r\n");
        let mut counts = [0, 0];
        for _ in 0..400 {
            simulation.send(client, "PUB work 1\r\n.\r\n");
            for (count, leaf) in counts.iter_mut().zip([one, two]) {
                let got = simulation.read(leaf);
                if !got.is_empty() {
                    assert_eq!(got, "LMSG work | q 1\r\n.\r\n");
                    *count += 1;
                }
            }
        }
        assert_eq!(counts[0] + counts[1], 400);
        assert!(counts[0] > 250 && counts[1] > 50, "{counts:?}");
        simulation.send(client, "PUB work r 1\r\n.\r\n");
        let got = [simulation.read(one), simulation.read(two)].concat();
        assert_eq!(got, "LMSG work + r q 1\r\n.\r\n");
        // With a local member, no message crosses the connection.
        simulation.send(client, "SUB work q 1\r\n");
        assert_eq!(simulation.read(one), "LS+ work q 2\r\n");
        assert_eq!(simulation.read(two), "LS+ work q 4\r\n");
        for _ in 0..20 {
            simulation.send(client, "PUB work 1\r\n.\r\n");
            assert_eq!(simulation.read(client), "MSG work 1 1\r\n.\r\n");
        }
        assert_eq!(simulation.read(one) + &simulation.read(two), "");
        // A message from a leaf node goes only to the queue groups that it names.
        simulation.send(one, "LMSG work 1\r\n.\r\n");
        assert_eq!(simulation.read(client), "");
        simulation.send(one, "LMSG work | other q 1\r\n.\r\n");
        assert_eq!(simulation.read(client), "MSG work 1 1\r\n.\r\n");
        // Plain interest and groups cross in one message.
        simulation.send(one, "LS+ work\r\n");
        simulation.send(client, "UNSUB 1\r\nPUB work 1\r\n.\r\n");
        let (first, second) = (simulation.read(one), simulation.read(two));
        let (first, second) = (first.lines().nth(1), second.lines().nth(2));
        match second {
            Some(line) => {
                assert_eq!((first, line), (Some("LMSG work 1"), "LMSG work | q 1"));
            }
            None => assert_eq!(first, Some("LMSG work | q 1")),
        }
    }
}

/// Messages on one subject are coalesced. The output must be the same as for single messages.
#[test]
fn coalesced_messages_cross_one_by_one() {
    const HEADERS: &str = "NATS/1.0\r\n\r\n";
    let mut parts = Vec::new();
    for number in 0..200 {
        // An irregular order, with several messages of each subject in a row.
        let subject = ["far", "near", "both", "nowhere", "group"][number * number / 40 % 5];
        parts.push(match number * 7 % 23 {
            0 => format!(" {subject} r 3\r\n{number:03}\r\n"),
            1 => format!("H {subject} 12 15\r\n{HEADERS}{number:03}\r\n"),
            2 => format!(" {subject} 6000\r\n{number:06000}\r\n"),
            3 => "PING\r\n".to_owned(),
            _ => format!(" {subject} 3\r\n{number:03}\r\n"),
        });
    }
    let written_for = |plain: &str, headers: &str| -> Vec<String> {
        let verb = |part: &String| match part.as_bytes()[0] {
            b' ' => format!("{plain}{part}"),
            b'H' => format!("{headers}{}", &part[1..]),
            _ => part.clone(),
        };
        parts.iter().map(verb).collect()
    };
    for (shards, comes_from_leaf) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut readings = Vec::new();
        for is_at_once in [false, true] {
            let mut simulation = Simulation::new(shards);
            let leafs: Vec<_> = ["one", "two", "three"]
                .map(|name| leaf(&mut simulation, name))
                .into();
            let client = simulation.client(shards - 1);
            simulation.send(client, "SUB near 1\r\nSUB both 2\r\nSUB group q 3\r\n");
            simulation.send(leafs[0], "LS+ far\r\nLS+ both\r\nLS+ f*\r\n");
            simulation.send(leafs[1], "LS+ far\r\nLS+ group q 1\r\n");
            for reader in [leafs[0], leafs[1], leafs[2], client] {
                simulation.read(reader);
            }
            let (from, inputs) = match comes_from_leaf {
                true => (leafs[0], written_for("LMSG", "HMSG")),
                false => (simulation.client(0), written_for("PUB", "HPUB")),
            };
            match is_at_once {
                true => simulation.send(from, &inputs.concat()),
                false => inputs.iter().for_each(|input| simulation.send(from, input)),
            }
            let got =
                [leafs[0], leafs[1], leafs[2], client, from].map(|reader| simulation.read(reader));
            let counts = simulation.shards[0].leafs(false).into_iter();
            let counts =
                counts.map(|leaf| [leaf.in_msgs, leaf.in_bytes, leaf.out_msgs, leaf.out_bytes]);
            readings.push((got, counts.collect::<Vec<_>>()));
        }
        assert_eq!(readings[0], readings[1]);
        let leaf_that_gets = usize::from(comes_from_leaf);
        let (got, counts) = &readings[0];
        assert!(got[leaf_that_gets].matches("LMSG far 3").count() > 20);
        assert!(got[3].matches("MSG near 1 3").count() > 20);
        assert!(counts[leaf_that_gets][2] > 30, "{counts:?}");
    }
}

#[test]
fn interest_of_one_leaf_is_announced_to_others() {
    let mut simulation = Simulation::new(2);
    let (one, two) = (
        quiet_leaf(&mut simulation, "one"),
        quiet_leaf(&mut simulation, "two"),
    );
    simulation.read(one);
    simulation.send(one, "LS+ a\r\n");
    assert_eq!(
        (simulation.read(one), simulation.read(two)),
        (String::new(), "LS+ a\r\n".into())
    );
    simulation.send(two, "LS+ a\r\n");
    assert_eq!(simulation.read(one), "LS+ a\r\n");
    simulation.send(two, "LMSG a 1\r\n.\r\n");
    assert_eq!(
        (simulation.read(one), simulation.read(two)),
        ("LMSG a 1\r\n.\r\n".into(), String::new())
    );
    // Interest of a closed connection is withdrawn.
    simulation.shards[0].end(one.id, CloseReason::ClientClosed);
    simulation.shards[0].remove(one.id, CloseReason::ClientClosed);
    let received = simulation.read(two);
    assert_eq!(received, "LS- a\r\n");
    // The interest of one hub is not announced to another.
    let mut simulation = Simulation::new(1);
    let (one, two) = (
        dialled(&mut simulation, LeafRemote::default(), HUB),
        dialled(&mut simulation, LeafRemote::default(), HUB),
    );
    for hub in [one, two] {
        simulation.send(
            hub,
            "INFO {\"connect_info\":true,\"remote_account\":\"A\"}\r\n",
        );
        assert!(simulation.read(hub).starts_with("CONNECT {"));
    }
    simulation.read(one);
    simulation.send(one, "LS+ a\r\nLS+ $LDS.x\r\n");
    assert_eq!(simulation.read(two), "LS+ $LDS.x\r\n");
}

/// The servers of a cluster connect one by one and exchange messages directly. If the hub forwarded messages
/// between them, each message would arrive twice.
#[test]
fn hub_does_not_forward_within_a_cluster() {
    for shards in [1, 2] {
        let mut simulation = Simulation::new(shards);
        let one = leaf_of(&mut simulation, "one", "edge");
        let two = leaf_of(&mut simulation, "two", "edge");
        let other = leaf_of(&mut simulation, "other", "elsewhere");
        let client = simulation.client(shards - 1);
        simulation.send(one, "LS+ a\r\nLS+ g q 1\r\n");
        for (leaf, is_announced) in [(two, false), (other, true)] {
            let output = simulation.read(leaf);
            assert_eq!(output.contains("LS+ a\r\n"), is_announced, "{output}");
            assert_eq!(output.contains("LS+ g q 1\r\n"), is_announced, "{output}");
        }
        simulation.read(one);
        simulation.send(two, "LMSG a 1\r\n.\r\nLMSG g | q 1\r\n.\r\n");
        assert_eq!(simulation.read(one), "");
        for from in [other, client] {
            let input = match from == client {
                true => "PUB a 1\r\n.\r\n",
                false => "LMSG a 1\r\n.\r\n",
            };
            simulation.send(from, input);
            assert_eq!(simulation.read(one), "LMSG a 1\r\n.\r\n");
        }
    }
}

fn ending(simulation: &Simulation, leaf: Client) -> Option<CloseReason> {
    simulation.shards[leaf.shard].broker.exchange.sessions[leaf.id.index()].ending
}

#[test]
fn much_interest_does_not_close_a_leaf_connection() {
    let limits = Limits {
        pending_bytes_max: 10_000,
        ..Limits::default()
    };
    let mut simulation = Simulation::with(1, limits, Auth::Open);
    let client = simulation.client(0);
    for number in 0..1000 {
        simulation.send(client, &format!("SUB some.{number} {number}\r\n"));
    }
    let leaf = leaf(&mut simulation, "edge");
    simulation.send(client, "PUB other 1\r\n.\r\n");
    assert_eq!(ending(&simulation, leaf), None);
    assert_eq!(simulation.read(leaf).matches("LS+ some.").count(), 1000);
}

#[test]
fn slow_leaf_connection_stays_open_while_it_reads() {
    let at = Duration::from_secs;
    for is_strict in [false, true] {
        let limits = Limits {
            leafs: LinkLimits {
                closes_at_deadline: is_strict,
                ..LinkLimits::default()
            },
            ..Limits::default()
        };
        let mut simulation = Simulation::with(1, limits, Auth::Open);
        let leaf = quiet_leaf(&mut simulation, "edge");
        simulation.send(leaf, "PING\r\nPING\r\n");
        simulation.shards[0].written(leaf.id, at(1));
        simulation.shards[0].outbox(leaf.id).advance(1);
        simulation.shards[0].written(leaf.id, at(9));
        simulation.shards[0].handle_timeout(at(11));
        let reason = CloseReason::SlowConsumerWriteDeadline;
        assert_eq!(ending(&simulation, leaf), is_strict.then_some(reason));
        simulation.shards[0].handle_timeout(at(19));
        assert_eq!(ending(&simulation, leaf), Some(reason));
    }
}

/// Regression: a million subjects were announced to a server that is pinged every second. The server took 4 s
/// to read them, and was disconnected because the pings behind them were unanswered.
#[test]
fn reading_server_is_not_stale() {
    let at = Duration::from_secs;
    for takes in [true, false] {
        let limits = Limits {
            ping_interval: at(1),
            pings_out_max: 2,
            write_deadline: at(60),
            ..Limits::default()
        };
        let mut simulation = Simulation::with(1, limits, Auth::Open);
        let leaf = quiet_leaf(&mut simulation, "edge");
        let client = simulation.client(0);
        simulation.send(client, "SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n");
        for half_seconds in 4..24 {
            let now = Duration::from_millis(500 * half_seconds);
            let out = simulation.shards[0].outbox(leaf.id);
            out.advance(usize::from(takes));
            simulation.shards[0].written(leaf.id, now);
            simulation.shards[0].handle_timeout(now);
        }
        let reason = (!takes).then_some(CloseReason::StaleConnection);
        assert_eq!(ending(&simulation, leaf), reason);
    }
}

/// A trace contains the name of the leaf connection, and the message that crosses it contains the hop.
#[test]
fn trace_continues_on_the_other_side() {
    for (shards, hop) in [(1, "64"), (2, "1.64")] {
        let mut simulation = Simulation::new(shards);
        let leaf = quiet_leaf(&mut simulation, "edge");
        let client = simulation.client(shards - 1);
        simulation.send(leaf, "LS+ a\r\n");
        simulation.send(client, "SUB t 1\r\nSUB b 2\r\n");
        simulation.read(leaf);
        for only in ["", "Nats-Trace-Only: true\r\n"] {
            let headers = format!("NATS/1.0\r\nNats-Trace-Dest: t\r\n{only}\r\n");
            let bytes = headers.len();
            let sizes = format!("{bytes} {}", bytes + 2);
            simulation.send(client, &format!("HPUB a {sizes}\r\n{headers}hi\r\n"));
            let with_hop = headers.replacen("\r\n", &format!("\r\nNats-Trace-Hop: {hop}\r\n"), 1);
            let bytes = with_hop.len();
            assert_eq!(
                simulation.read(leaf),
                format!("HMSG a {bytes} {}\r\n{with_hop}hi\r\n", bytes + 2)
            );
            let output = simulation.read(client);
            let egress = format!("\"name\":\"edge\",\"hop\":\"{hop}\"");
            assert!(output.contains(&egress), "{output}");
            // A message from the other side is traced as well.
            simulation.send(leaf, &format!("HMSG b {sizes}\r\n{headers}hi\r\n"));
            let output = simulation.read(client);
            assert_eq!(output.contains("HMSG b 2 "), only.is_empty(), "{output}");
            assert!(output.contains("\"type\":\"in\""), "{output}");
            let ingress = "\"name\":\"edge\",\"acc\":\"$G\",\"subj\":\"b\"";
            assert!(output.contains(ingress), "{output}");
        }
    }
}

#[test]
fn loops_are_detected() {
    let mut simulation = Simulation::new(1);
    let leaf = leaf(&mut simulation, "edge");
    let output = simulation.read(leaf);
    let own = output
        .lines()
        .find_map(|line| line.strip_prefix("LS+ $LDS."));
    simulation.send(leaf, &format!("LS+ $LDS.{}\r\n", own.unwrap()));
    assert_eq!(simulation.read(leaf), "");
    simulation.shards[0].handle_timeout(Duration::from_millis(1100));
    let output = simulation.read(leaf);
    assert!(
        output.contains("-ERR 'Loop detected for leafnode account=\"$G\". Delaying attempt to reconnect for 30s'"),
        "{output}"
    );
    let ended = simulation.shards[0]
        .remove(leaf.id, CloseReason::ClientClosed)
        .unwrap();
    let leaf = ended.leaf.unwrap();
    assert_eq!(leaf.retry_after, Some(Duration::from_secs(30)));
}

#[test]
fn spoke_connects_and_applies_permissions() {
    let mut simulation = Simulation::new(1);
    let remote = LeafRemote {
        deny_exports: vec!["secret.>".into()],
        deny_imports: vec!["noise.>".into()],
        ..LeafRemote::default()
    };
    let hub = dialled(&mut simulation, remote, HUB);
    let output = simulation.read(hub);
    assert!(
        output.starts_with("CONNECT {") && output.ends_with("}\r\n"),
        "{output}"
    );
    for part in [
        "\"user\":\"ada\"",
        "\"protocol\":3",
        "\"deny_pub\":[\"noise.>\"]",
    ] {
        assert!(output.contains(part), "{output}");
    }
    let client = simulation.client(0);
    simulation.send(
        client,
        "SUB in.a 1\r\nSUB other 2\r\nSUB noise.x 3\r\nSUB in.> 4\r\n",
    );
    assert_eq!(simulation.read(hub), "");
    simulation.send(
        hub,
        "INFO {\"connect_info\":true,\"export\":{\"allow\":[\"out.>\",\"secret.>\"]},\"import\":{\"allow\":[\"in.>\"]}}\r\n",
    );
    let mut lines: Vec<String> = simulation.read(hub).lines().map(String::from).collect();
    lines.retain(|line| !line.contains("$LDS."));
    lines.sort();
    assert_eq!(lines, ["LS+ in.>", "LS+ in.a"]);
    simulation.send(hub, "LS+ >\r\n");
    simulation.send(
        client,
        "PUB out.a 1\r\n.\r\nPUB secret.a 1\r\n.\r\nPUB else 1\r\n.\r\n",
    );
    assert_eq!(simulation.read(hub), "LMSG out.a 1\r\n.\r\n");
    simulation.send(hub, "LMSG noise.x 1\r\n.\r\nLMSG in.a 1\r\n.\r\n");
    assert_eq!(
        simulation.read(client),
        "MSG in.a 4 1\r\n.\r\nMSG in.a 1 1\r\n.\r\n"
    );
    // The hub closes the connection with an error.
    simulation.send(hub, "-ERR 'Permissions Violation for Publish to \"x\"'\r\n");
    let ended = simulation.shards[0]
        .remove(hub.id, CloseReason::ClientClosed)
        .unwrap();
    assert_eq!(
        ended.leaf.unwrap().retry_after,
        Some(Duration::from_secs(30))
    );
}

/// Returns a hub that admits one user with permissions.
fn hub_of_one_user() -> Simulation {
    let mut config = AccessConfig::default();
    let mut account = Account::new("A");
    let mut user = User::new("ada", "secret");
    user.permissions = Some(Permissions {
        publish: Allowed::publish(Some(&["up.>"]), &[]).unwrap(),
        subscribe: Allowed::subscribe(Some(&["down.>"]), &[]).unwrap(),
        responses: None,
    });
    user.connection_kinds = vec![ConnectionKind::Leafnode];
    account.users.push(user);
    config.accounts.push(account);
    let auth = Auth::Directory(Access::new(config).unwrap().into());
    let mut simulation = Simulation::with(1, Limits::default(), auth);
    let listener = LeafListener {
        min_version: Some("2.10.0".into()),
        ..LeafListener::default()
    };
    Arc::make_mut(&mut simulation.shards[0].broker.exchange.config).leafs = Some(listener.into());
    simulation.shards[0].broker.exchange.info.cluster = Some("here".into());
    simulation
}

#[test]
fn refused_leaf_node_receives_the_reason() {
    let mut simulation = hub_of_one_user();
    let mut check = |input: &str, expected: &str| {
        let leaf = Client {
            shard: 0,
            id: simulation.open_leaf(None),
        };
        simulation.read(leaf);
        simulation.send(leaf, input);
        let answer = simulation.read(leaf);
        assert!(answer.contains(expected), "{input}: {answer}");
        (leaf, answer)
    };
    let connect =
        |fields: &str| format!("CONNECT {{\"version\":\"2.15.2\",\"name\":\"x\",{fields}}}\r\n");
    for (fields, expected) in [
        (
            "\"user\":\"ada\",\"pass\":\"wrong\"",
            "-ERR 'Authorization Violation'",
        ),
        (
            "\"lang\":\"go\"",
            "-ERR 'attempted to connect to leaf node port'",
        ),
        (
            "\"gateway\":\"g\"",
            "-ERR 'Rejecting connection from gateway \"g\" on the leafnode port'",
        ),
        (
            "\"cluster\":\"here\"",
            "-ERR 'remote leafnode has same cluster name'",
        ),
        (
            "\"cluster\":\"a b\"",
            "-ERR 'cluster name cannot contain spaces'",
        ),
    ] {
        check(&connect(fields), expected);
    }
    check("LS+ a\r\n", "-ERR 'Authorization Violation'");
    check("GET / HTTP/1.1\r\n", "-ERR 'Unknown Protocol Operation'");
    let old = "CONNECT {\"version\":\"2.9.0\"}\r\n";
    check(
        old,
        "-ERR 'connection rejected since minimum version required is \"2.10.0\"'",
    );
    let right = connect("\"user\":\"ada\",\"pass\":\"secret\"");
    let (leaf, answer) = check(&right, "\"remote_account\":\"A\"");
    assert!(
        answer.contains("\"export\":{\"allow\":[\"up.>\"]}"),
        "{answer}"
    );
    assert!(
        answer.contains("\"import\":{\"allow\":[\"down.>\"]}"),
        "{answer}"
    );
    let (again, _) = check(&right, "\"remote_account\":\"A\"");
    assert!(
        simulation
            .read(leaf)
            .contains("-ERR 'Duplicate Remote LeafNode Connection'")
    );
    simulation.send(again, "LMSG up.a 1\r\n.\r\nLMSG down.a 1\r\n.\r\n");
    let output = simulation.read(again);
    assert!(
        output.contains("-ERR 'Permissions Violation for Publish to \"down.a\"'"),
        "{output}"
    );
}

#[test]
fn stream_delivery_keeps_its_subject() {
    let mut simulation = Simulation::new(1);
    let leaf = quiet_leaf(&mut simulation, "edge");
    let client = simulation.client(0);
    simulation.send(client, "SUB deliver 1\r\n");
    simulation.read(leaf);
    simulation.send(leaf, "LMSG deliver $JS.ACK.s.c.1@orders.new 2\r\nhi\r\n");
    assert_eq!(
        simulation.read(client),
        "MSG orders.new 1 $JS.ACK.s.c.1 2\r\nhi\r\n"
    );
}

impl Simulation {
    fn open_leaf(&mut self, dialled: Option<Dialled>) -> SessionId {
        let peer = Peer {
            kind: ConnectionKind::Leafnode,
            ..Peer::default()
        };
        self.shards[0].broker.exchange.info.headers = true;
        let cid = self.shards[0].broker.exchange.sessions.len() as u64 + 100;
        self.shards[0].open_leaf(cid, peer, dialled, Agreed::default(), Duration::ZERO)
    }
}

#[test]
fn connections_to_other_servers_count_for_the_limit_of_leaf_nodes() {
    let mut config = AccessConfig::default();
    config.account_mut("$G").limits.leafnodes_max = Some(2);
    let access = Access::new(config).unwrap();
    let mut simulation = Simulation::with(1, Limits::default(), Auth::Directory(access.into()));
    let own = quiet_leaf(&mut simulation, "own");
    simulation.shards[0].set_remote_connections(AccountId::GLOBAL, 9, 1);
    let refusal = "-ERR 'maximum account active connections exceeded'\r\n";
    let refused = leaf(&mut simulation, "refused");
    assert_eq!(simulation.read(refused), refusal);
    let remote = dialled(&mut simulation, LeafRemote::default(), "{}");
    simulation.send(remote, "INFO {\"connect_info\":true}\r\n");
    assert!(simulation.read(remote).ends_with(refusal));
    simulation.shards[0].set_remote_connections(AccountId::GLOBAL, 9, 0);
    quiet_leaf(&mut simulation, "admitted");
    let cid = simulation.shards[0].cid(own.id).expect("it is open");
    assert!(simulation.shards[0].close_over_limit(cid));
    assert!(simulation.read(own).ends_with(refusal));
    assert!(!simulation.shards[0].close_over_limit(cid));
}

#[test]
fn second_path_to_a_server_is_a_loop() {
    let mut simulation = Simulation::new(1);
    let [one, two] = ["one", "two"].map(|name| quiet_leaf(&mut simulation, name));
    simulation.send(one, "LS+ $LDS.x\r\n");
    assert_eq!(simulation.read(two), "LS+ $LDS.x\r\n");
    // The same loop subject again over the same connection changes nothing.
    simulation.send(one, "LS+ $LDS.x\r\n");
    assert_eq!(simulation.read(one), "");
    simulation.send(two, "LS+ $LDS.x\r\nLS+ a\r\n");
    // The second connection is held: nothing crosses it, and another server may cut the cycle first.
    simulation.send(two, "LMSG b 2\r\nhi\r\n");
    simulation.send(one, "LS+ b\r\nLMSG a 2\r\nhi\r\n");
    assert_eq!(simulation.read(two), "LS+ b\r\n");
    assert_eq!(simulation.read(one), "LS+ a\r\n");
    simulation.shards[0].handle_timeout(Duration::from_millis(1100));
    let output = simulation.read(two);
    assert!(output.contains("-ERR 'Loop detected"), "{output}");
    let output = simulation.read(one);
    assert!(
        output.contains("LS- a\r\n") && !output.contains("-ERR"),
        "{output}"
    );
}

#[test]
fn cycle_that_is_cut_elsewhere_is_open() {
    let mut simulation = Simulation::new(1);
    let [one, two] = ["one", "two"].map(|name| quiet_leaf(&mut simulation, name));
    simulation.send(one, "LS+ $LDS.x\r\nLS+ a\r\n");
    simulation.read(two);
    simulation.send(two, "LS+ $LDS.x\r\nLS+ $LDS.y\r\n");
    assert_eq!(simulation.read(one), "");
    // After the first path is withdrawn, the second connection is the only one.
    simulation.send(one, "LS- $LDS.x\r\n");
    let output = simulation.read(one);
    assert!(
        output.contains("LS+ $LDS.x\r\n") && output.contains("LS+ $LDS.y\r\n"),
        "{output}"
    );
    simulation.send(two, "LMSG a 2\r\nhi\r\n");
    assert!(simulation.read(one).ends_with("LMSG a 2\r\nhi\r\n"));
    simulation.shards[0].handle_timeout(Duration::from_millis(1100));
    assert!(!simulation.read(two).contains("-ERR"));
}
