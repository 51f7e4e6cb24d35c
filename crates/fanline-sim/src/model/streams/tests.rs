use super::*;

fn stored(records: &[(u64, u64)]) -> Stored {
    let record = |(sequence, message): &(u64, u64)| (*sequence, ("j.a".to_owned(), *message));
    records.iter().map(record).collect()
}

/// Returns a stream with messages 10 and 11 at sequences 1 and 2.
fn model(kind: StreamKind) -> StreamModel {
    let mut model = StreamModel::new("S", kind, 0);
    model.created();
    for (message, sequence) in [(10, 1), (11, 2)] {
        model.publish(message, "j.a", message, false);
        assert_eq!(model.acknowledge(message, sequence, false), Ok(()));
    }
    model
}

#[test]
fn lost_messages_are_found_unless_explained() {
    let mut plain = model(StreamKind::Plain);
    assert_eq!(plain.check(Some(&stored(&[(1, 10), (2, 11)]))), Ok(()));
    assert!(plain.check(Some(&stored(&[(2, 11)]))).is_err());
    assert!(plain.check(None).is_err());
    plain.delete(1);
    assert_eq!(plain.check(Some(&stored(&[(2, 11)]))), Ok(()));
    plain.deleted(1);
    assert!(plain.check(Some(&stored(&[(1, 10), (2, 11)]))).is_err());
    let latest = model(StreamKind::Latest);
    assert_eq!(latest.check(Some(&stored(&[(2, 11)]))), Ok(()));
    assert!(latest.check(Some(&stored(&[(1, 10)]))).is_err());
}

#[test]
fn reads_return_what_was_acknowledged_before() {
    let mut plain = model(StreamKind::Plain);
    assert_eq!((plain.newest_of("j.a"), plain.newest_of("j.b")), (2, 0));
    assert_eq!(plain.read("j.a", 2, Some((2, 11))), Ok(()));
    assert!(plain.read("j.a", 2, Some((1, 10))).is_err());
    assert!(plain.read("j.a", 1, Some((2, 10))).is_err());
    assert!(plain.read("j.b", 0, Some((2, 11))).is_err());
    assert!(plain.read("j.a", 2, None).is_err());
    plain.delete(2);
    assert_eq!(plain.read("j.a", 2, Some((1, 10))), Ok(()));
}

#[test]
fn purges_explain_and_bind() {
    let mut plain = model(StreamKind::Plain);
    let purge = plain.purge();
    plain.purged(purge, 20);
    plain.publish(12, "j.a", 21, false);
    assert_eq!(plain.acknowledge(12, 3, false), Ok(()));
    assert_eq!(plain.check(Some(&stored(&[(3, 12)]))), Ok(()));
    assert!(plain.check(Some(&stored(&[(2, 11), (3, 12)]))).is_err());
    assert!(plain.check(Some(&stored(&[]))).is_err());
}

#[test]
fn shared_and_earlier_sequences_are_found() {
    let mut plain = model(StreamKind::Plain);
    plain.publish(12, "j.a", 12, false);
    assert!(plain.clone().acknowledge(12, 2, false).is_err());
    assert!(plain.clone().acknowledge(12, 1, false).is_err());
    assert!(plain.check(Some(&stored(&[(1, 10), (2, 12)]))).is_err());
    assert!(
        plain
            .check(Some(&stored(&[(1, 10), (2, 11), (3, 11)])))
            .is_err()
    );
}

#[test]
fn deliveries_after_a_confirmed_acknowledgement_are_found() {
    let mut plain = model(StreamKind::Plain);
    plain.consumer_created(ConsumerKind::Pull, 12);
    assert_eq!(plain.deliver(ConsumerKind::Pull, 1, "j.a", 10), Ok(()));
    plain.begin_ack(ConsumerKind::Pull, 1);
    plain.confirm_ack(ConsumerKind::Pull, 1);
    assert_eq!(plain.deliver(ConsumerKind::Pull, 1, "j.a", 10), Ok(()));
    plain.restart(30);
    assert!(plain.deliver(ConsumerKind::Pull, 1, "j.a", 10).is_err());
    assert!(plain.check_delivered(&stored(&[(1, 10), (2, 11)])).is_err());
}
