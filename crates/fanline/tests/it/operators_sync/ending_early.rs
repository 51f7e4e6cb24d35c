use super::*;

/// Checks that `chain` takes exactly `taken` values of an endless source.
#[track_caller]
fn check_taken<S>(taken: usize, chain: impl Fn(Script<usize>) -> S)
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    S::Error: Clone + Send + 'static,
{
    let values: Vec<_> = (0..20).collect();
    for way in [Way::Borrowed, Way::Owned, Way::Slices(1)] {
        let source = script(&values, End::Never, way);
        let sent = source.sent.clone();
        let received = record(chain(source), usize::MAX);
        assert!(matches!(received.last(), Some(Notification::Complete)));
        assert_eq!(*sent.lock().unwrap(), taken, "{way:?}");
    }
}

#[test]
fn chains_take_no_more_values_than_needed() {
    check_taken(0, |source| source.take(0));
    check_taken(3, |source| source.take(3));
    check_taken(3, |source| {
        source.take(3).map(|n| n + 1).filter(|n| *n > 0).tap(|_| {})
    });
    check_taken(3, |source| {
        source.map(|n| n + 1).scan(0, |sum, n| sum + n).take(3)
    });
    check_taken(6, |source| source.buffer_count(2).take(3));
    check_taken(4, |source| source.pairwise().take(3));
    check_taken(5, |source| source.skip(2).take(3));
    check_taken(5, |source| source.skip_last(2).take(3));
    check_taken(5, |source| source.skip_while(|n| *n < 2).distinct().take(3));
    check_taken(3, |source| {
        source.materialize().dematerialize().finalize(|| {}).take(3)
    });
    check_taken(2, |source| source.start_with([0]).end_with([0]).take(3));
    check_taken(0, |source| source.start_with([0, 0, 0]).take(3));
    check_taken(5, |source| source.take_while(|n| *n < 4));
    check_taken(1, |source| source.first());
    check_taken(8, |source| source.element_at(7));
    check_taken(2, |source| source.single());
    check_taken(8, |source| source.any(|n| *n == 7));
    check_taken(8, |source| source.all(|n| *n < 7));
    check_taken(8, |source| source.contains(7));
    check_taken(1, |source| source.is_empty());
}

/// Checks that a subject that emits 0, 1, 2, and so on loses its observer after `taken` values.
#[track_caller]
fn check_released<S>(taken: usize, chain: impl Fn(fanline::Source<usize>) -> S)
where
    S: Observable,
{
    let (mut tx, source) = fanline::subject::<usize>();
    let guard = chain(source.clone()).subscribe(|_| {});
    for value in 0..taken {
        assert!(tx.has_observers(), "before value {value}");
        tx.next(value);
    }
    assert!(!tx.has_observers(), "after value {taken}");
    assert!(guard.is_closed());

    // Slices: the chain ends in the middle of a slice.
    let guard = chain(source.clone()).subscribe(|_| {});
    tx.next_slice(&(0..20).collect::<Vec<_>>());
    assert!(!tx.has_observers(), "after a slice");
    assert!(guard.is_closed());

    // The observer unsubscribes before the end.
    let guard = chain(source).subscribe(|_| {});
    drop(guard);
    assert!(!tx.has_observers(), "after unsubscription");
}

#[test]
fn ended_chain_unsubscribes_from_subject_at_once() {
    check_released(0, |source| source.take(0));
    check_released(3, |source| source.take(3));
    check_released(3, |source| {
        source.map(|n| n + 1).filter(|n| *n > 0).take(3).tap(|_| {})
    });
    check_released(3, |source| {
        source.finalize(|| {}).distinct_until_changed().take(3)
    });
    check_released(6, |source| source.buffer_count(2).take(3).boxed());
    check_released(5, |source| source.take_while(|n| *n < 4).count());
    check_released(1, |source| source.first());
    check_released(8, |source| source.skip(7).first());
    check_released(8, |source| source.element_at(7));
    check_released(2, |source| source.single());
    check_released(8, |source| source.contains(7));
    check_released(1, |source| source.is_empty());
}
