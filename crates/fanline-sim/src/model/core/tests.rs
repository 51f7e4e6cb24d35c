use super::*;

const PUBLISHER: ClientKey = ClientKey(1);
const SUBSCRIBER: ClientKey = ClientKey(2);

/// Returns a model with a visible subscription to `s.>` and two messages.
fn model(queue: Option<&str>) -> CoreModel {
    let mut model = CoreModel::default();
    model.subscribe((SUBSCRIBER, 1), 0, "s.>", queue, true);
    model.claim(SUBSCRIBER, &Claim::Visible(1), 5);
    model.publish(PUBLISHER, 0, "s.a", 10, 6);
    model.publish(PUBLISHER, 0, "s.b", 11, 7);
    model
}

fn delivered(message: u64, account: usize) -> Delivered<'static> {
    Delivered {
        key: (SUBSCRIBER, 1),
        subject: if message == 10 { "s.a" } else { "s.b" },
        message,
        account,
    }
}

fn invariant(outcome: Outcome) -> Option<Invariant> {
    outcome.err().map(|violation| violation.invariant)
}

#[test]
fn deliveries_in_order_are_right() {
    let mut model = model(None);
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    assert_eq!(model.deliver(&delivered(11, 0)), Ok(()));
    assert_eq!(model.check_quiet(|_| true), Ok(()));
}

#[test]
fn lost_and_repeated_messages_are_found() {
    let mut model = model(None);
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    let lost = invariant(model.check_quiet(|_| true));
    assert_eq!(lost, Some(Invariant::Visibility));
    let repeated = invariant(model.deliver(&delivered(10, 0)));
    assert_eq!(repeated, Some(Invariant::Visibility));
}

#[test]
fn swapped_messages_are_found() {
    let mut model = model(None);
    assert_eq!(model.deliver(&delivered(11, 0)), Ok(()));
    let swapped = invariant(model.deliver(&delivered(10, 0)));
    assert_eq!(swapped, Some(Invariant::Order));
}

#[test]
fn messages_of_other_accounts_are_found() {
    let found = invariant(model(None).deliver(&delivered(10, 1)));
    assert_eq!(found, Some(Invariant::Isolation));
}

#[test]
fn imported_messages_are_owed() {
    let mut model = model(None);
    model.subscribe((SUBSCRIBER, 2), 1, "ex.*", None, true);
    model.claim(SUBSCRIBER, &Claim::Visible(2), 8);
    model.publish(PUBLISHER, 0, "ex.a", 12, 9);
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    assert_eq!(model.deliver(&delivered(11, 0)), Ok(()));
    assert_eq!(model.check_quiet(|_| true), Ok(()));
    model.publish(PUBLISHER, 0, "ex.a", 13, 10);
    let imported = Delivered {
        key: (SUBSCRIBER, 2),
        subject: "ex.a",
        message: 13,
        account: 0,
    };
    let found = invariant(model.deliver(&imported));
    assert_eq!(found, Some(Invariant::Isolation));
    model.begin_reload(true);
    assert_eq!(model.deliver(&imported), Ok(()));
    model.end_reloads(11);
    model.publish(PUBLISHER, 0, "ex.a", 14, 12);
    let lost = invariant(model.check_quiet(|_| true));
    assert_eq!(lost, Some(Invariant::Visibility));
}

#[test]
fn messages_after_unsubscribe_are_found() {
    let mut model = model(None);
    model.unsubscribe((SUBSCRIBER, 1));
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    model.claim(SUBSCRIBER, &Claim::Gone(1), 8);
    let found = invariant(model.deliver(&delivered(11, 0)));
    assert_eq!(found, Some(Invariant::Unsubscribed));
}

#[test]
fn messages_above_the_maximum_are_found() {
    let mut model = model(None);
    model.claim(SUBSCRIBER, &Claim::Limited(1, 1), 8);
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    let found = invariant(model.deliver(&delivered(11, 0)));
    assert_eq!(found, Some(Invariant::Unsubscribed));
}

#[test]
fn groups_receive_once() {
    let mut model = model(Some("q"));
    model.subscribe((PUBLISHER, 4), 0, "s.*", Some("q"), true);
    assert_eq!(model.deliver(&delivered(10, 0)), Ok(()));
    let again = Delivered {
        key: (PUBLISHER, 4),
        ..delivered(10, 0)
    };
    assert_eq!(invariant(model.deliver(&again)), Some(Invariant::Queue));
    let lost = invariant(model.check_quiet(|_| true));
    assert_eq!(lost, Some(Invariant::Queue));
}
