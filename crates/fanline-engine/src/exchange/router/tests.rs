use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::auth::Permissions;
use crate::exchange::route_settings::Lane;

#[derive(Clone, Debug)]
enum Step {
    Subscribe {
        session: u32,
        sid: u8,
        filter: String,
        queue: bool,
    },
    Unsubscribe {
        session: u32,
        sid: u8,
    },
    Remote {
        shard: u16,
        filter: String,
        present: bool,
    },
    /// With `once`, the caller expects that the subject is used once.
    Ask {
        subject: String,
        once: bool,
    },
}

fn path() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b", "*", "c"]);
    let end = prop::sample::select(vec!["", "", ".>"]);
    (prop::collection::vec(token, 1..4), end).prop_map(|(t, end)| t.join(".") + end)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u32..3, 0u8..6, path(), any::<bool>()).prop_map(|(session, sid, filter, queue)| {
            Step::Subscribe {
                session,
                sid,
                filter,
                queue,
            }
        }),
        (0u32..3, 0u8..6).prop_map(|(session, sid)| Step::Unsubscribe { session, sid }),
        (1u16..3, path(), any::<bool>()).prop_map(|(shard, filter, present)| Step::Remote {
            shard,
            filter,
            present
        }),
        (path(), any::<bool>()).prop_map(|(subject, once)| Step::Ask { subject, once }),
        (path(), any::<bool>()).prop_map(|(subject, once)| Step::Ask { subject, once }),
        (path(), 0u8..50, any::<bool>()).prop_map(|(path, name, once)| Step::Ask {
            subject: format!("{path}.{name}"),
            once
        }),
        (path(), 0u8..50, any::<bool>()).prop_map(|(path, name, once)| Step::Ask {
            subject: format!("{path}.{name}"),
            once
        }),
    ]
}

type Key = (u32, u8);

proptest! {
    /// After any sequence of subscription changes and lookups, the cache agrees with a plain list.
    #[test]
    fn agrees_with_a_list(steps in prop::collection::vec(step(), 1..120)) {
        let mut router = Router::new();
        let mut subs = Subscriptions::default();
        let mut model: Vec<(Key, String, bool)> = Vec::new();
        let mut remote: BTreeSet<(u16, String)> = BTreeSet::new();
        let mut memo = RouteMemo::default();
        for step in steps {
            match step {
                Step::Subscribe { session, sid, filter, queue } => {
                    let name: &[u8] = if queue { b"q" } else { b"" };
                    let parsed = Filter::parse(filter.as_bytes()).unwrap();
                    let added = router.subscribe(&mut subs, session, &[b'0' + sid], parsed, name).is_some();
                    let is_new = !model.iter().any(|(key, ..)| *key == (session, sid));
                    prop_assert_eq!(added, is_new);
                    if is_new { model.push(((session, sid), filter, queue)); }
                }
                Step::Unsubscribe { session, sid } => {
                    let found = subs.find(session, &[b'0' + sid]);
                    prop_assert_eq!(found.is_some(), model.iter().any(|(key, ..)| *key == (session, sid)));
                    if let Some(id) = found { router.unsubscribe(&mut subs, id, |_, _, _| {}); }
                    model.retain(|(key, ..)| *key != (session, sid));
                }
                Step::Remote { shard, filter, present } => {
                    let changes = router.set_remote(Remote::Shard(shard), filter.as_bytes(), b"", u32::from(present));
                    let changed = if present { remote.insert((shard, filter)) } else { remote.remove(&(shard, filter)) };
                    prop_assert_eq!(changes, changed);
                }
                Step::Ask { subject, once } => {
                    let route = match once {
                        true => router.route_once(subject.as_bytes(), &mut memo),
                        false => router.route(subject.as_bytes(), &mut memo),
                    };
                    prop_assert_eq!(route.subject(), subject.as_bytes());
                    let key = |id: SubId| { let sub = subs.get(id); (sub.session(), sub.sid()[0] - b'0') };
                    let mut plain: Vec<Key> = route.plain.iter().map(|id| key(*id)).collect();
                    let mut members: Vec<Key> = route.groups().flat_map(|(_, m)| m.iter())
                        .filter_map(|m| match m { Member::Local(id) => Some(key(*id)), Member::Remote { .. } => None })
                        .collect();
                    plain.sort_unstable();
                    members.sort_unstable();
                    let expected = |queue: bool| {
                        let mut keys: Vec<Key> = model.iter()
                            .filter(|(_, f, q)| *q == queue && Filter::parse(f.as_bytes()).unwrap().matches(subject.as_bytes()))
                            .map(|(key, ..)| *key).collect();
                        keys.sort_unstable();
                        keys
                    };
                    prop_assert_eq!(plain, expected(false));
                    prop_assert_eq!(members, expected(true));
                    let shards: BTreeSet<u16> = (route.plain_remote.iter())
                        .map(|remote| remote.shard(1))
                        .collect();
                    let expected: BTreeSet<u16> = remote.iter()
                        .filter(|(_, f)| Filter::parse(f.as_bytes()).unwrap().matches(subject.as_bytes()))
                        .map(|(shard, _)| *shard).collect();
                    prop_assert_eq!(shards, expected);
                    prop_assert!(route.groups().count() <= 1, "one name is one group");
                }
            }
        }
    }
}

/// A server that joins a cluster receives all interest of its peers. It must not compare each filter with what it has
/// announced to them, because it announces its own interest only.
#[test]
fn interest_of_peers_is_no_news_for_routes() {
    let route = LinkSet::Routes(Lane::First);
    let all = [LinkSet::Leafs, route, LinkSet::Gateways];
    let check = |from: Remote, expected: [bool; 3]| {
        let mut router = Router::new();
        for set in all {
            router.watch(set, true);
        }
        assert!(router.set_remote(from, b"a.*", b"", 1));
        assert_eq!(all.map(|set| router.has_news(set)), expected, "{from:?}");
        for set in all {
            router.drop_news(set);
        }
        assert!(!router.set_remote(from, b"a.*", b"", 1));
        assert!(router.set_remote(from, b"a.*", b"q", 2));
        assert_eq!(all.map(|set| router.has_news(set)), expected, "{from:?}");
    };
    check(Remote::Shard(1), [true, true, true]);
    check(Remote::Links(LinkSet::Leafs), [true, true, true]);
    for set in [route, LinkSet::Gateways, LinkSet::Replies] {
        check(Remote::Links(set), [true, false, true]);
    }
}

/// A million changes per minute must not slow down subjects that they do not match.
#[test]
fn filter_change_invalidates_only_matching_routes() {
    let mut router = Router::new();
    let mut subs = Subscriptions::default();
    let filter = |f: &'static str| Filter::parse(f.as_bytes()).unwrap();
    router
        .subscribe(&mut subs, 0, b"1", filter("orders.*"), b"")
        .unwrap();
    for subject in ["orders.a", "orders.b", "other"] {
        for _ in 0..2 {
            router.route(subject.as_bytes(), &mut RouteMemo::default());
        }
    }
    assert_eq!(router.cache_counts().cached, 3);
    let before = router.cache_counts().misses;
    for i in 0..1000u32 {
        let inbox = format!("_INBOX.{i}.*");
        let (id, _) = router
            .subscribe(
                &mut subs,
                1,
                b"9",
                Filter::parse(inbox.as_bytes()).unwrap(),
                b"",
            )
            .unwrap();
        // Each reply subject is used once and evicts nothing.
        router.route(
            format!("_INBOX.{i}.x").as_bytes(),
            &mut RouteMemo::default(),
        );
        router.unsubscribe(&mut subs, id, |_, _, _| {});
        for subject in ["orders.a", "orders.b", "other"] {
            router.route(subject.as_bytes(), &mut RouteMemo::default());
        }
    }
    let counts = router.cache_counts();
    assert_eq!(
        counts.misses - before,
        1000,
        "only the inboxes were looked up"
    );
    assert_eq!(counts.cached, 3);
    router
        .subscribe(&mut subs, 1, b"9", filter("*.a"), b"")
        .unwrap();
    assert_eq!(router.cache_counts().cached, 2);
}

#[test]
fn cache_is_bounded() {
    let mut router = Router::new();
    for i in 0..40_000u32 {
        for _ in 0..2 {
            router.route(format!("t.{i}").as_bytes(), &mut RouteMemo::default());
        }
    }
    assert_eq!(router.cache_counts().cached, 32 * 1024);
}

/// Regression: the route of each of a million acknowledgements was built again, on the JetStream thread and
/// on a shard.
#[test]
fn siblings_share_a_route() {
    let mut router = Router::new();
    let mut subs = Subscriptions::default();
    let filter = |f: &'static str| Filter::parse(f.as_bytes()).unwrap();
    let mut number = 0;
    let mut misses = |router: &mut Router, inbox: &str| {
        let before = router.cache_counts().misses;
        for _ in 0..100 {
            number += 1;
            let subject = format!("_INBOX.{inbox}.{number}");
            let route = router.route(subject.as_bytes(), &mut RouteMemo::default());
            assert_eq!(route.msg_head(), format!("MSG {subject} ").as_bytes());
            assert_eq!(route.plain.len(), 1, "{subject}");
        }
        router.cache_counts().misses - before
    };
    for inbox in ["_INBOX.one.*", "_INBOX.two.*"] {
        router
            .subscribe(&mut subs, 1, inbox.as_bytes(), filter(inbox), b"")
            .unwrap();
    }
    for inbox in ["one", "two"] {
        assert_eq!(misses(&mut router, inbox), 2);
        assert_eq!(misses(&mut router, inbox), 0);
    }
    // A subscription to a literal sibling separates the subjects with its prefix. Subjects with the other
    // prefix are not affected.
    router
        .subscribe(&mut subs, 2, b"1", filter("_INBOX.one.none"), b"")
        .unwrap();
    assert_eq!(misses(&mut router, "two"), 2);
    assert_eq!(misses(&mut router, "one"), 100);
}

fn rights() -> Arc<Rights> {
    Rights::new(&Permissions::default()).into()
}

/// Returns whether a subject is cached as permitted, starting with a fresh memo.
fn knows(router: &mut Router, subject: &str, rights: &Arc<Rights>) -> bool {
    let mut memo = RouteMemo::default();
    let id = Some(RightsId::of(rights));
    let is_known = router.knows_permitted(subject.as_bytes(), id, &mut memo);
    assert_eq!(
        router.holds(memo, subject.as_bytes()),
        is_known,
        "{subject}"
    );
    is_known
}

/// Records a publish to a permitted subject in the router.
fn permit(router: &mut Router, subject: &str, rights: &Arc<Rights>) {
    let mut memo = RouteMemo::default();
    router.route(subject.as_bytes(), &mut memo);
    router.record_permitted(subject.as_bytes(), memo, rights);
}

#[test]
fn permission_is_cached_as_long_as_its_route() {
    let mut router = Router::new();
    let mut subs = Subscriptions::default();
    let (own, others) = (rights(), rights());
    assert!(!knows(&mut router, "a.b", &own));
    permit(&mut router, "a.b", &own);
    assert!(!knows(&mut router, "a.b", &own), "it came once");
    for subject in ["a.b", "a.b", "b"] {
        permit(&mut router, subject, &own);
        permit(&mut router, subject, &own);
    }
    assert!(knows(&mut router, "a.b", &own) && knows(&mut router, "b", &own));
    assert!(!knows(&mut router, "a.b", &others));
    assert!(!knows(&mut router, "a.c", &own));
    let mut none = RouteMemo::default();
    assert!(!router.knows_permitted(b"a.b", None, &mut none));
    // After a change of interest in the subject, its permission is checked again.
    let filter = Filter::parse(b"a.*").unwrap();
    router.subscribe(&mut subs, 1, b"1", filter, b"").unwrap();
    assert!(!knows(&mut router, "a.b", &own) && knows(&mut router, "b", &own));
    permit(&mut router, "a.b", &own);
    assert!(knows(&mut router, "a.b", &own));
}

#[test]
fn denied_subjects_evict_no_routes() {
    let mut router = Router::new();
    let own = rights();
    for number in 0..1000 {
        for _ in 0..3 {
            assert!(!knows(&mut router, &format!("t.{number}"), &own));
        }
    }
    assert_eq!(router.cache_counts().cached, 0);
}

/// A memo from before a change must not be used for the current route.
#[test]
fn stale_memo_permits_nothing() {
    let mut router = Router::new();
    let mut subs = Subscriptions::default();
    let own = rights();
    let mut memo = RouteMemo::default();
    for _ in 0..2 {
        router.route(b"a", &mut memo);
    }
    let filter = Filter::parse(b"a").unwrap();
    router.subscribe(&mut subs, 1, b"1", filter, b"").unwrap();
    for _ in 0..2 {
        router.route(b"b", &mut RouteMemo::default());
    }
    for subject in ["a", "b"] {
        router.record_permitted(subject.as_bytes(), memo, &own);
        assert!(!knows(&mut router, subject, &own), "{subject}");
    }
}

#[test]
fn permissions_of_several_users_are_cached() {
    let mut router = Router::new();
    let users: Vec<_> = (0..5).map(|_| rights()).collect();
    for _ in 0..2 {
        permit(&mut router, "a", &users[0]);
    }
    for user in &users[1..4] {
        permit(&mut router, "a", user);
    }
    assert!(users[..4].iter().all(|user| knows(&mut router, "a", user)));
    permit(&mut router, "a", &users[4]);
    assert!(users[1..].iter().all(|user| knows(&mut router, "a", user)));
    assert!(
        !knows(&mut router, "a", &users[0]),
        "the oldest entry is evicted"
    );
}

/// New rights may be allocated at the address of dropped ones.
#[test]
fn dropped_rights_are_not_confused_with_new_ones() {
    let mut router = Router::new();
    for number in 0..100 {
        let before = rights();
        let subject = format!("t.{number}");
        for _ in 0..2 {
            permit(&mut router, &subject, &before);
        }
        assert!(knows(&mut router, &subject, &before));
        drop(before);
        let after: Vec<_> = (0..20).map(|_| rights()).collect();
        assert!(!after.iter().any(|own| knows(&mut router, &subject, own)));
    }
}
