//! Cached permissions never allow more than the current permissions.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::tests::{Client, Simulation};
use crate::auth::Peer;
use crate::auth::{
    Access, AccessConfig, AllowResponses, Allowed, Auth, Credentials, Decision, Permissions,
    Rights, User, Vouched,
};
use crate::limits::Limits;
use crate::subject::Filter;

/// Lists of allowed and denied filters.
type Lists = (&'static [&'static str], &'static [&'static str]);

const LISTS: [Lists; 7] = [
    (&["a.b"], &[]),
    (&["a.>"], &["a.c"]),
    (&["*"], &[]),
    (&[">"], &["b", "a.*"]),
    (&["c.d", "a.b.c", "b"], &[]),
    (&["a.*", "b"], &["a.b"]),
    (&[">"], &[]),
];
const SUBJECTS: [&str; 6] = ["a.b", "a.c", "b.c", "b", "a.b.c", "c.d"];
const FILTERS: [&str; 4] = ["a.*", "b", ">", "a.b"];
const USERS: [&str; 3] = ["u0", "u1", "u2"];

fn permissions((allow, deny): Lists) -> Permissions {
    Permissions {
        publish: Allowed::publish(Some(allow), deny).unwrap(),
        ..Permissions::default()
    }
}

/// Returns an account with users that have these permissions, and a user `free` without restrictions.
fn access(users: &[(&str, Permissions)]) -> Arc<Access> {
    let mut config = AccessConfig::default();
    let with = |(name, permissions): &(&str, Permissions)| User {
        permissions: Some(permissions.clone()),
        ..User::new(*name, "pw")
    };
    let all = &mut config.account_mut("A").users;
    all.extend(users.iter().map(with));
    all.push(User::new("free", "pw"));
    Access::new(config).unwrap().into()
}

/// Returns one shard, and a client that receives every message of the account.
fn simulation(access: &Arc<Access>) -> (Simulation, Client) {
    let auth = Auth::Directory(Arc::clone(access));
    let mut simulation = Simulation::with(1, Limits::default(), auth);
    let watcher = connect(&mut simulation, "free");
    simulation.send(watcher, "SUB > 1\r\n");
    (simulation, watcher)
}

fn connect(simulation: &mut Simulation, user: &str) -> Client {
    let client = simulation.open(0);
    simulation.send(client, &connect_of(user));
    simulation.read(client);
    client
}

fn connect_of(user: &str) -> String {
    format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"user\":\"{user}\",\"pass\":\"pw\"}}\r\n"
    )
}

/// Publishes to these subjects in one input. Returns whether each message arrived. For each other message,
/// the publisher must receive an error.
fn publish(
    simulation: &mut Simulation,
    from: Client,
    watcher: Client,
    subjects: &[&str],
) -> Vec<bool> {
    let line = |nth: usize| format!("{}\r\n{nth}\r\n", nth.to_string().len());
    let lines =
        |verb: &str, sid: &str, nth: usize| format!("{verb} {} {sid}{}", subjects[nth], line(nth));
    let input: String = (0..subjects.len())
        .map(|nth| lines("PUB", "", nth))
        .collect();
    simulation.send(from, &input);
    let (received, errors) = (simulation.read(watcher), simulation.read(from));
    let arrived: Vec<bool> = (0..subjects.len())
        .map(|nth| received.contains(&lines("MSG", "1 ", nth)))
        .collect();
    let refused: String = (subjects.iter().zip(&arrived))
        .filter(|(_, has_arrived)| !**has_arrived)
        .map(|(subject, _)| {
            format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n")
        })
        .collect();
    assert_eq!(errors, refused);
    arrived
}

/// The naive model: evaluates the two lists.
fn allows((allow, deny): Lists, subject: &str) -> bool {
    let is_in = |list: &[&str]| {
        let mut filters = list.iter();
        filters.any(|f| {
            Filter::parse(f.as_bytes())
                .unwrap()
                .matches(subject.as_bytes())
        })
    };
    is_in(allow) && !is_in(deny)
}

#[derive(Clone, Debug)]
enum Step {
    /// A session publishes to subjects, all in one input.
    Publish(usize, Vec<usize>),
    /// A client subscribes to a filter, or unsubscribes.
    Interest(usize),
    /// A reload changes the permissions of the users.
    Reload([usize; 3]),
    /// A session sends CONNECT again, as another user.
    Connect(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let publish = || {
        let subjects = prop::collection::vec(0..SUBJECTS.len(), 1..12);
        (0..6usize, subjects).prop_map(|(session, subjects)| Step::Publish(session, subjects))
    };
    prop_oneof![
        publish(),
        publish(),
        publish(),
        publish(),
        (0..FILTERS.len()).prop_map(Step::Interest),
        prop::array::uniform3(0..LISTS.len()).prop_map(Step::Reload),
        (0..6usize, 0..3usize).prop_map(|(session, user)| Step::Connect(session, user)),
    ]
}

proptest! {
    /// Users, their permissions, and interest change between messages. A message is delivered if and only if
    /// the lists allow it.
    #[test]
    fn deliveries_match_the_permissions(
        mut lists in prop::array::uniform3(0..LISTS.len()),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let access_of = |lists: [usize; 3]| {
            let users = [0, 1, 2].map(|user| (USERS[user], permissions(LISTS[lists[user]])));
            access(&users)
        };
        let (mut simulation, watcher) = simulation(&access_of(lists));
        // Two sessions of each user.
        let mut users: [usize; 6] = [0, 0, 1, 1, 2, 2];
        let sessions = users.map(|user| connect(&mut simulation, USERS[user]));
        let other = connect(&mut simulation, "free");
        let mut wanted = [false; FILTERS.len()];
        for step in steps {
            match step {
                Step::Publish(session, subjects) => {
                    let subjects: Vec<&str> = subjects.iter().map(|at| SUBJECTS[*at]).collect();
                    let list = LISTS[lists[users[session]]];
                    let allowed: Vec<bool> =
                        subjects.iter().map(|subject| allows(list, subject)).collect();
                    let arrived = publish(&mut simulation, sessions[session], watcher, &subjects);
                    prop_assert_eq!(arrived, allowed);
                    simulation.read(other);
                }
                Step::Interest(at) => {
                    wanted[at] = !wanted[at];
                    simulation.send(other, &match wanted[at] {
                        true => format!("SUB {} {at}\r\n", FILTERS[at]),
                        false => format!("UNSUB {at}\r\n"),
                    });
                }
                Step::Reload(now) => {
                    lists = now;
                    simulation.shards[0].replace_access(access_of(lists), Duration::ZERO);
                }
                Step::Connect(session, user) => {
                    users[session] = user;
                    simulation.send(sessions[session], &connect_of(USERS[user]));
                    simulation.read(sessions[session]);
                }
            }
        }
    }
}

/// A route that another user has cached permits nothing.
#[test]
fn cached_subject_is_permitted_by_user() {
    let access = access(&[("u0", permissions(LISTS[0])), ("u1", permissions(LISTS[6]))]);
    let (mut simulation, watcher) = simulation(&access);
    let [bound, wide, free] = ["u0", "u1", "free"].map(|user| connect(&mut simulation, user));
    for _ in 0..5 {
        for from in [wide, free] {
            assert_eq!(
                publish(&mut simulation, from, watcher, &["a.b", "a.c"]),
                [true; 2]
            );
        }
        let arrived = publish(&mut simulation, bound, watcher, &["a.b", "a.c", "a.b"]);
        assert_eq!(arrived, [true, false, true]);
    }
}

#[test]
fn response_is_permitted_once() {
    let mut may_answer = permissions(LISTS[0]);
    may_answer.responses = Some(AllowResponses {
        max: Some(1),
        expires: None,
    });
    may_answer.publish = Allowed::publish(Some(&["a.b", "a.c"]), &[]).unwrap();
    let (mut simulation, watcher) = simulation(&access(&[("u0", may_answer)]));
    let [bound, free] = ["u0", "free"].map(|user| connect(&mut simulation, user));
    simulation.send(bound, "SUB ask 9\r\n");
    for _ in 0..5 {
        assert_eq!(
            publish(&mut simulation, free, watcher, &["reply", "a.b"]),
            [true; 2]
        );
        simulation.send(free, "PUB ask reply 0\r\n\r\n");
        simulation.read(watcher);
        assert_eq!(simulation.read(bound), "MSG ask 9 reply 0\r\n\r\n");
        let arrived = publish(
            &mut simulation,
            bound,
            watcher,
            &["a.b", "reply", "reply", "a.c"],
        );
        assert_eq!(arrived, [true, true, false, true]);
    }
}

/// A client that the server itself vouches for may have fewer permissions than its user.
#[test]
fn two_sets_of_permissions_intersect() {
    let access = access(&[("u0", permissions(LISTS[1]))]);
    let (mut simulation, watcher) = simulation(&access);
    let user = connect(&mut simulation, "u0");
    let shown = Credentials {
        user: "u0",
        pass: "pw",
        ..Credentials::default()
    };
    let Decision::Admitted(grant) = access.admit(&shown, &Peer::default()) else {
        panic!("it is let in");
    };
    let within = Some(Arc::new(Rights::new(&permissions(LISTS[2]))));
    let peer = Peer {
        vouched: Some(Box::new(Vouched { grant, within })),
        ..Peer::default()
    };
    let id = simulation.shards[0].open(99, peer, false, Duration::ZERO);
    let guest = Client { shard: 0, id };
    simulation.send(guest, &connect_of("u0"));
    simulation.read(guest);
    for _ in 0..5 {
        let subjects = ["a.b", "b", "a.b.c"];
        assert_eq!(
            publish(&mut simulation, user, watcher, &subjects),
            [true, false, true]
        );
        assert_eq!(
            publish(&mut simulation, guest, watcher, &subjects),
            [false; 3]
        );
    }
}
