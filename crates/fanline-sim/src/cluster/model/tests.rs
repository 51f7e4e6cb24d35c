use super::*;

const ALICE: ClientKey = ClientKey(1);
const BOB: ClientKey = ClientKey(2);

fn home(node: usize) -> Home {
    Home { node, account: 0 }
}

/// Returns a model in which a client of server 1 has a subscription that server 0 knows, and a client of server 0 has
/// published a message to it.
fn published(queue: Option<&str>) -> ClusterModel {
    let mut model = ClusterModel::default();
    model.subscribe((BOB, 1), home(1), "a.*", queue, true);
    model.claim(BOB, &Claim::Visible(1), 1);
    model.check_quiet(2, |_| true).unwrap();
    model.publish(ALICE, home(0), "a.b", 7, 3);
    model
}

fn delivered(message: u64) -> Delivered<'static> {
    Delivered {
        key: (BOB, 1),
        subject: "a.b",
        message,
        account: 0,
    }
}

fn invariant(outcome: Outcome) -> Invariant {
    outcome.unwrap_err().invariant
}

#[test]
fn lost_message_needs_a_cut() {
    let mut model = published(None);
    assert_eq!(invariant(model.check_quiet(9, |_| true)), Invariant::Hops);
    model.cut((0, 1));
    model.check_quiet(9, |_| true).unwrap();
    let mut model = published(Some("q"));
    assert_eq!(invariant(model.check_quiet(9, |_| true)), Invariant::Queue);
    // The lost member may be at any server.
    model.cut((1, 2));
    model.check_quiet(9, |_| true).unwrap();
}

#[test]
fn interest_that_was_not_known_everywhere_receives_nothing_for_certain() {
    let mut model = ClusterModel::default();
    model.subscribe((BOB, 1), home(1), "a.*", None, true);
    model.claim(BOB, &Claim::Visible(1), 1);
    model.publish(ALICE, home(0), "a.b", 7, 3);
    model.check_quiet(9, |_| true).unwrap();
    model.publish(ALICE, home(1), "a.b", 8, 10);
    assert_eq!(
        invariant(model.check_quiet(11, |_| true)),
        Invariant::Visibility
    );
}

#[test]
fn message_crosses_once_from_its_own_server() {
    let mut model = published(None);
    model.cross(7, [0, 1], Some("A"), false).unwrap();
    let again = model.cross(7, [0, 1], Some("A"), false);
    assert_eq!(invariant(again), Invariant::Hops);
    let onward = model.cross(7, [1, 2], Some("A"), false);
    assert_eq!(invariant(onward), Invariant::Hops);
    let other = model.cross(7, [0, 2], Some("B"), false);
    assert_eq!(invariant(other), Invariant::Isolation);
}

#[test]
fn deliveries_are_single_and_in_order() {
    let mut model = published(None);
    model.publish(ALICE, home(0), "a.b", 8, 4);
    model.deliver(&delivered(8)).unwrap();
    assert_eq!(
        invariant(model.deliver(&delivered(8))),
        Invariant::Visibility
    );
    assert_eq!(invariant(model.deliver(&delivered(7))), Invariant::Order);
    model.unsubscribe((BOB, 1));
    model.claim(BOB, &Claim::Gone(1), 5);
    assert_eq!(
        invariant(model.deliver(&delivered(7))),
        Invariant::Unsubscribed
    );
}

#[test]
fn one_member_of_a_group_receives() {
    let mut model = published(Some("q"));
    model.subscribe((ALICE, 1), home(0), "a.>", Some("q"), true);
    model.deliver(&delivered(7)).unwrap();
    let other = Delivered {
        key: (ALICE, 1),
        ..delivered(7)
    };
    assert_eq!(invariant(model.deliver(&other)), Invariant::Queue);
}
