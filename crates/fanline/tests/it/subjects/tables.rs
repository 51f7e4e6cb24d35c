//! The behavior of each flavor in tables of operations and the observer calls that they cause.

use super::rig::{ALL_FORMS, Counted, Flavor, Form};
use super::script::{Act, Op, Plan, run};

/// Checks the result of each step of a script, in all forms.
#[track_caller]
fn check(flavor: Flavor, script: &[(Op, &str)]) {
    for form in ALL_FORMS {
        check_form(form, flavor, script);
    }
}

#[track_caller]
fn check_form(form: Form, flavor: Flavor, script: &[(Op, &str)]) {
    let ops: Vec<Op> = script.iter().map(|(op, _)| op.clone()).collect();
    let expected: Vec<&str> = script.iter().map(|(_, text)| *text).collect();
    for steps in [
        run::<u32>(form, flavor, &ops),
        run::<Counted>(form, flavor, &ops),
    ] {
        let seen: Vec<String> = steps.iter().map(super::script::Step::text).collect();
        assert_eq!(seen, expected, "{form:?} {flavor:?} {ops:?}");
    }
}

fn plain() -> Op {
    Op::Subscribe(Plan::new())
}

fn at(call: usize, act: Act) -> Op {
    Op::Subscribe(vec![(call, act)])
}

use Flavor::{All, Async, Behavior, Many, ManyWithin, One, Publish, Within};
use Op::{Clock, Complete, Dispose, Fail, Next, Slice, Snapshot, Trim, Unsubscribe};

#[test]
fn late_subscribers_after_each_end() {
    // Columns: 1. the flavor; 2. the calls of B, which subscribes before the end; 3. the calls of C, which
    // subscribes after completion; 4. the calls of C, if it subscribes after failure; 5. the snapshot after
    // completion.
    let rows: [(Flavor, &str, &str, &str, &str); 8] = [
        (Publish, "", "C.", "C!", "[]"),
        (Behavior, "B3", "C.", "C!", "[]"),
        (Async, "", "C3 C.", "C!", "[3]"),
        (All, "B1 B2 B3", "C1 C2 C3 C.", "C1 C2 C3 C!", "[1, 2, 3]"),
        (One, "B3", "C3 C.", "C3 C!", "[3]"),
        (Many(0), "", "C.", "C!", "[]"),
        (Many(2), "B2 B3", "C2 C3 C.", "C2 C3 C!", "[2, 3]"),
        (
            Within(10, false),
            "B1 B2 B3",
            "C1 C2 C3 C.",
            "C1 C2 C3 C!",
            "[1, 2, 3]",
        ),
    ];
    for (flavor, live, completed, failed, snapshot) in rows {
        let (a, first, next) = match flavor {
            Behavior => ("A0", "A1", "A2 A3"),
            Async => ("", "", ""),
            _ => ("", "A1", "A2 A3"),
        };
        let (done, done_b) = match flavor {
            Async => ("A3 A. B3 B.", "A! B!"),
            _ => ("A. B.", "A! B!"),
        };
        let begin = |end, text| {
            vec![
                (plain(), a),
                (Next(1), first),
                (Slice(vec![2, 3]), next),
                (plain(), live),
                (end, text),
            ]
        };
        let mut script = begin(Complete, done);
        script.extend([(plain(), completed), (Snapshot, snapshot)]);
        // Ended subjects ignore calls.
        script.extend([
            (Next(9), ""),
            (Slice(vec![9]), ""),
            (Complete, ""),
            (Fail, ""),
        ]);
        check(flavor, &script);
        let again = failed.replace('C', "D");
        let mut script = begin(Fail, done_b);
        script.extend([
            (plain(), failed),
            (Next(9), ""),
            (Complete, ""),
            (plain(), &again),
        ]);
        check(flavor, &script);
        let mut script = begin(Dispose, "");
        script.extend([
            (plain(), ""),
            (Snapshot, "[]"),
            (Next(9), ""),
            (Complete, ""),
            (plain(), ""),
        ]);
        check(flavor, &script);
    }
}

#[test]
fn end_without_values() {
    for (flavor, initial) in [
        (Publish, ""),
        (Behavior, "A0"),
        (Async, ""),
        (All, ""),
        (One, ""),
        (Many(5), ""),
        (Within(10, false), ""),
        (ManyWithin(3, 10, true), ""),
    ] {
        for (end, a, b) in [
            (Complete, "A.", "B."),
            (Fail, "A!", "B!"),
            (Dispose, "", ""),
        ] {
            check(flavor, &[(plain(), initial), (end, a), (plain(), b)]);
        }
    }
}

#[test]
fn two_subscriptions_are_independent() {
    for flavor in [Publish, All, One] {
        check(
            flavor,
            &[
                (plain(), ""),
                (plain(), ""),
                (Next(1), "A1 B1"),
                (Unsubscribe(0), ""),
                (Unsubscribe(0), ""),
                (Next(2), "B2"),
                (Complete, "B."),
                (Unsubscribe(1), ""),
            ],
        );
    }
}

#[test]
fn unsubscribed_async_observer_gets_nothing() {
    check(
        Async,
        &[
            (plain(), ""),
            (Next(1), ""),
            (Unsubscribe(0), ""),
            (Complete, ""),
        ],
    );
}

#[test]
fn window_includes_its_boundary() {
    for flavor in [Within(10, false), ManyWithin(5, 10, false)] {
        for (age, in_memory) in [(9, "A1 "), (10, "A1 "), (11, "")] {
            let now = 100 + age;
            let replayed = format!("{in_memory}A2");
            // A subscription finds that the value is too old.
            check(
                flavor,
                &[
                    (Clock(100), ""),
                    (Next(1), ""),
                    (Clock(101), ""),
                    (Next(2), ""),
                    (Clock(now), ""),
                    (plain(), if now > 111 { "" } else { replayed.as_str() }),
                ],
            );
            // A new value finds that the first value is too old. Moving the clock back then restores nothing.
            let replayed = format!("{in_memory}A2 A3");
            check(
                flavor,
                &[
                    (Clock(100), ""),
                    (Next(1), ""),
                    (Clock(101), ""),
                    (Next(2), ""),
                    (Clock(now), ""),
                    (Next(3), ""),
                    (Clock(0), ""),
                    (plain(), &replayed),
                ],
            );
            // The end finds that the value is too old, and so does `trim`.
            let completed = format!("{in_memory}A2 A.");
            check(
                flavor,
                &[
                    (Clock(100), ""),
                    (Next(1), ""),
                    (Clock(101), ""),
                    (Next(2), ""),
                    (Clock(now), ""),
                    (Complete, ""),
                    (Clock(0), ""),
                    (plain(), &completed),
                ],
            );
            let retained = format!("{in_memory}A2");
            check(
                flavor,
                &[
                    (Clock(100), ""),
                    (Next(1), ""),
                    (Clock(101), ""),
                    (Next(2), ""),
                    (Clock(now), ""),
                    (Trim, ""),
                    (Clock(0), ""),
                    (plain(), &retained),
                ],
            );
        }
    }
}

#[test]
fn trimming_drops_values() {
    type Trims = fn() -> Op;
    let trims: [Trims; 5] = [|| Next(9), plain, || Trim, || Snapshot, || Complete];
    for trim in trims {
        for form in ALL_FORMS {
            let steps = run::<Counted>(
                form,
                Within(10, false),
                &[Next(1), Next(2), Clock(5), Next(3), Clock(12), trim()],
            );
            let in_memory = steps.last().and_then(|step| step.values_in_memory);
            let own = i64::from(trim() == Next(9));
            assert_eq!(in_memory, Some(1 + own), "{form:?} {:?}", trim());
        }
    }
}

#[test]
fn completed_window_expires_or_freezes() {
    let begin = [
        (Next(1), ""),
        (Clock(4), ""),
        (Next(2), ""),
        (Clock(10), ""),
        (Complete, ""),
    ];
    let mut script = begin.to_vec();
    script.extend([
        (plain(), "A1 A2 A."),
        (Clock(11), ""),
        (plain(), "B2 B."),
        (Clock(14), ""),
        (plain(), "C2 C."),
        (Clock(15), ""),
        (plain(), "D."),
        (Snapshot, "[]"),
    ]);
    check(Within(10, false), &script);
    let mut script = begin.to_vec();
    script.extend([
        (Clock(1000), ""),
        (plain(), "A1 A2 A."),
        (Snapshot, "[1, 2]"),
        (Trim, ""),
        (plain(), "B1 B2 B."),
    ]);
    check(Within(10, true), &script);
    let mut script = begin.to_vec();
    script.extend([(Clock(11), ""), (plain(), "A2 A.")]);
    check(ManyWithin(1, 10, false), &script);
}

#[test]
fn window_of_zero_and_count_of_zero() {
    check(
        Within(0, false),
        &[
            (Clock(7), ""),
            (Next(1), ""),
            (Next(2), ""),
            (plain(), "A1 A2"),
            (Clock(8), ""),
            (plain(), ""),
            (Next(3), "A3 B3"),
            (plain(), "C3"),
        ],
    );
    for flavor in [Many(0), ManyWithin(0, 10, false)] {
        check(
            flavor,
            &[
                (plain(), ""),
                (Next(1), "A1"),
                (Slice(vec![2, 3]), "A2 A3"),
                (plain(), ""),
                (Complete, "A. B."),
                (plain(), "C."),
            ],
        );
    }
}

/// One reading of the clock was late, and the reading for a later value was earlier. That value must not age
/// faster because of the late reading.
#[test]
fn clock_going_back_does_not_age_values() {
    check(
        Within(10, false),
        &[
            (Clock(100), ""),
            (Trim, ""),
            (Clock(0), ""),
            (Next(1), ""),
            (plain(), "A1"),
            (Clock(110), ""),
            (plain(), "B1"),
            (Clock(111), ""),
            (plain(), ""),
        ],
    );
    check(
        Within(100, false),
        &[
            (Next(1), ""),
            (Clock(100), ""),
            (plain(), "A1"),
            (Clock(0), ""),
            (Next(2), "A2"),
            (Clock(101), ""),
            (plain(), "B2"),
        ],
    );
}

/// Checks the forms whose observers can emit.
#[track_caller]
fn check_reentrant(flavor: Flavor, script: &[(Op, &str)]) {
    check_form(Form::Shared, flavor, script);
    check_form(Form::Local, flavor, script);
}

#[test]
fn nested_emission_is_breadth_first() {
    for flavor in [Publish, Many(0), Within(10, false), All] {
        check_reentrant(
            flavor,
            &[
                (at(1, Act::Next(2)), ""),
                (at(2, Act::Next(3)), ""),
                (Next(1), "A1 B1 A2 B2 A3 B3"),
            ],
        );
        check_reentrant(
            flavor,
            &[
                (at(1, Act::Complete), ""),
                (plain(), ""),
                (Next(1), "A1 B1 A. B."),
                (Next(2), ""),
            ],
        );
        check_reentrant(
            flavor,
            &[
                (at(1, Act::Fail), ""),
                (plain(), ""),
                (Slice(vec![1, 2]), "A1 A2 B1 B2 A! B!"),
            ],
        );
        check_reentrant(
            flavor,
            &[
                (plain(), ""),
                (at(1, Act::Dispose), ""),
                (plain(), ""),
                (Next(1), "A1 B1"),
                (plain(), ""),
            ],
        );
    }
}

#[test]
fn nested_subscription_gets_retained_values() {
    check(
        Publish,
        &[
            (at(1, Act::Subscribe), ""),
            (Next(1), "A1"),
            (Next(2), "A2 B2"),
        ],
    );
    check(
        All,
        &[
            (Next(1), ""),
            (at(2, Act::Subscribe), "A1"),
            (plain(), "B1"),
            (Next(2), "A2 C1 C2 B2"),
            (Next(3), "A3 B3 C3"),
        ],
    );
    check(
        Behavior,
        &[
            (at(2, Act::Subscribe), "A0"),
            (Next(1), "A1 B1"),
            (Next(2), "A2 B2"),
        ],
    );
    // Observers subscribe during their own replay, and while the end is delivered.
    check(
        One,
        &[
            (Next(1), ""),
            (at(1, Act::Subscribe), "A1 B1"),
            (Next(2), "B2 A2"),
        ],
    );
    check(
        One,
        &[
            (Next(1), ""),
            (at(2, Act::Subscribe), "A1"),
            (Complete, "A. B1 B."),
        ],
    );
    check(
        Async,
        &[
            (Next(1), ""),
            (at(1, Act::Subscribe), ""),
            (Complete, "A1 B1 B. A."),
        ],
    );
}

/// A subject for one thread emits these values after the replay; a shared subject emits them at once.
#[test]
fn emission_during_replay() {
    let script = [
        (Slice(vec![1, 2]), ""),
        (plain(), "A1 A2"),
        (at(1, Act::Next(3)), ""),
    ];
    for (form, last) in [(Form::Shared, "B1 A3 B2 B3"), (Form::Local, "B1 B2 A3 B3")] {
        let mut script = script.clone();
        script[2].1 = last;
        check_form(form, All, &script);
    }
    for (end, text) in [
        (Act::Complete, "B1 B2 A. B."),
        (Act::Fail, "B1 B2 A! B!"),
        (Act::Dispose, "B1 B2"),
    ] {
        let mut script = script.clone();
        script[2] = (at(1, end), text);
        check_form(Form::Local, All, &script);
    }
}

#[test]
fn nested_unsubscription_takes_effect_at_once() {
    // An observer unsubscribes itself, an earlier observer, or a later observer.
    check(
        Publish,
        &[
            (at(1, Act::Unsubscribe(0)), ""),
            (plain(), ""),
            (Next(1), "A1 B1"),
            (Next(2), "B2"),
        ],
    );
    check(
        Publish,
        &[
            (plain(), ""),
            (at(1, Act::Unsubscribe(0)), ""),
            (Next(1), "A1 B1"),
            (Next(2), "B2"),
        ],
    );
    check(
        Publish,
        &[
            (at(1, Act::Unsubscribe(1)), ""),
            (plain(), ""),
            (plain(), ""),
            (Next(1), "A1 C1"),
        ],
    );
    // While the end is delivered, an observer unsubscribes a later observer.
    check(
        Publish,
        &[
            (at(1, Act::Unsubscribe(1)), ""),
            (plain(), ""),
            (Complete, "A."),
        ],
    );
    check(
        All,
        &[
            (at(1, Act::Unsubscribe(1)), ""),
            (plain(), ""),
            (Fail, "A!"),
        ],
    );
    // An observer closes: during its replay, at a value, and in a slice.
    check(
        All,
        &[
            (Slice(vec![1, 2, 3]), ""),
            (at(2, Act::Close), "A1 A2"),
            (Next(4), ""),
        ],
    );
    check(
        Publish,
        &[
            (at(1, Act::Close), ""),
            (plain(), ""),
            (Slice(vec![1, 2]), "A1 B1 B2"),
            (Complete, "B."),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn panics_cost_no_other_observer_a_call() {
    for flavor in [
        Publish,
        All,
        One,
        Many(5),
        Within(10, false),
        ManyWithin(3, 10, false),
    ] {
        check(
            flavor,
            &[
                (plain(), ""),
                (at(1, Act::Panic), ""),
                (plain(), ""),
                (Next(1), "A1 B1 C1 panic"),
                (Next(2), "A2 C2"),
                (Complete, "A. C."),
            ],
        );
        check(
            flavor,
            &[
                (at(1, Act::Panic), ""),
                (at(2, Act::Panic), ""),
                (plain(), ""),
                (Slice(vec![1, 2]), "A1 B1 B2 C1 C2 panic"),
                (Next(3), "C3"),
            ],
        );
        check(
            flavor,
            &[
                (at(1, Act::Panic), ""),
                (plain(), ""),
                (Complete, "A. B. panic"),
                (Complete, ""),
            ],
        );
        check(
            flavor,
            &[
                (plain(), ""),
                (at(1, Act::Panic), ""),
                (Fail, "A! B! panic"),
                (Fail, ""),
            ],
        );
    }
    for flavor in [
        All,
        One,
        Many(5),
        Within(10, false),
        ManyWithin(3, 10, false),
        Behavior,
    ] {
        check(
            flavor,
            &[
                (Next(1), ""),
                (at(1, Act::Panic), "A1 panic"),
                (plain(), "B1"),
                (Next(2), "B2"),
                (Complete, "B."),
            ],
        );
    }
    check(
        Behavior,
        &[
            (at(2, Act::Panic), "A0"),
            (plain(), "B0"),
            (Next(1), "A1 B1 panic"),
            (Next(2), "B2"),
        ],
    );
    check(
        Async,
        &[
            (at(1, Act::Panic), ""),
            (plain(), ""),
            (Next(1), ""),
            (Complete, "A1 B1 B. panic"),
            (at(1, Act::Panic), "C1 panic"),
            (plain(), "D1 D."),
        ],
    );
    check(
        Async,
        &[
            (at(1, Act::Panic), ""),
            (plain(), ""),
            (Fail, "A! B! panic"),
        ],
    );
}
