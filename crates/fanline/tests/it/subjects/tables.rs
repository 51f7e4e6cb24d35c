//! What each flavour does, as tables: an operation, and what the observers see of it.

use super::rig::{Counted, FORMS, Flavour, Form};
use super::script::{Act, Op, Plan, run};

/// A script with what comes of each step, in both forms unless it says otherwise.
#[track_caller]
fn check(flavour: Flavour, script: &[(Op, &str)]) {
    for form in FORMS {
        check_form(form, flavour, script);
    }
}

#[track_caller]
fn check_form(form: Form, flavour: Flavour, script: &[(Op, &str)]) {
    let ops: Vec<Op> = script.iter().map(|(op, _)| op.clone()).collect();
    let expected: Vec<&str> = script.iter().map(|(_, text)| *text).collect();
    for steps in [
        run::<u32>(form, flavour, &ops),
        run::<Counted>(form, flavour, &ops),
    ] {
        let seen: Vec<String> = steps.iter().map(super::script::Step::text).collect();
        assert_eq!(seen, expected, "{form:?} {flavour:?} {ops:?}");
    }
}

fn plain() -> Op {
    Op::Subscribe(Plan::new())
}

fn at(call: usize, act: Act) -> Op {
    Op::Subscribe(vec![(call, act)])
}

use Flavour::{All, Async, Behavior, Many, ManyWithin, One, Publish, Within};
use Op::{Clock, Complete, Dispose, Fail, Next, Slice, Snapshot, Trim, Unsubscribe};

#[test]
fn late_after_the_end() {
    // Flavour; live: B before the end; C after completion, after failure; snapshot after completion.
    let rows: [(Flavour, &str, &str, &str, &str); 8] = [
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
    for (flavour, live, completed, failed, snapshot) in rows {
        let (a, first, next) = match flavour {
            Behavior => ("A0", "A1", "A2 A3"),
            Async => ("", "", ""),
            _ => ("", "A1", "A2 A3"),
        };
        let (done, done_b) = match flavour {
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
        check(flavour, &script);
        let again = failed.replace('C', "D");
        let mut script = begin(Fail, done_b);
        script.extend([
            (plain(), failed),
            (Next(9), ""),
            (Complete, ""),
            (plain(), &again),
        ]);
        check(flavour, &script);
        let mut script = begin(Dispose, "");
        script.extend([
            (plain(), ""),
            (Snapshot, "[]"),
            (Next(9), ""),
            (Complete, ""),
            (plain(), ""),
        ]);
        check(flavour, &script);
    }
}

#[test]
fn nothing_was_emitted() {
    for (flavour, initial) in [
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
            check(flavour, &[(plain(), initial), (end, a), (plain(), b)]);
        }
    }
}

#[test]
fn subscribed_twice_is_two_subscriptions() {
    for flavour in [Publish, All, One] {
        check(
            flavour,
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
fn unsubscribed_before_the_end_hears_nothing() {
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
fn the_boundary_of_a_window() {
    for flavour in [Within(10, false), ManyWithin(5, 10, false)] {
        for (age, kept) in [(9, "A1 "), (10, "A1 "), (11, "")] {
            let now = 100 + age;
            let replayed = format!("{kept}A2");
            // Found too old by a subscription.
            check(
                flavour,
                &[
                    (Clock(100), ""),
                    (Next(1), ""),
                    (Clock(101), ""),
                    (Next(2), ""),
                    (Clock(now), ""),
                    (plain(), if now > 111 { "" } else { replayed.as_str() }),
                ],
            );
            // By a value; the clock then goes back, which brings nothing back.
            let replayed = format!("{kept}A2 A3");
            check(
                flavour,
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
            // By the end, and by being asked to.
            let completed = format!("{kept}A2 A.");
            check(
                flavour,
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
            let retained = format!("{kept}A2");
            check(
                flavour,
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
fn trimming_frees() {
    type Trims = fn() -> Op;
    let trims: [Trims; 5] = [|| Next(9), plain, || Trim, || Snapshot, || Complete];
    for trim in trims {
        for form in FORMS {
            let steps = run::<Counted>(
                form,
                Within(10, false),
                &[Next(1), Next(2), Clock(5), Next(3), Clock(12), trim()],
            );
            let kept = steps.last().and_then(|step| step.kept_values);
            let own = i64::from(trim() == Next(9));
            assert_eq!(kept, Some(1 + own), "{form:?} {:?}", trim());
        }
    }
}

#[test]
fn a_completed_window_dies_out_or_stands_still() {
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
fn a_window_of_nothing_and_a_number_of_nothing() {
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
    for flavour in [Many(0), ManyWithin(0, 10, false)] {
        check(
            flavour,
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

/// A look at the clock that was later than the value's own reading: the value is not older than it.
#[test]
fn a_clock_that_goes_back_makes_no_value_older() {
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

#[test]
fn emission_from_inside_is_breadth_first() {
    for flavour in [Publish, Many(0), Within(10, false), All] {
        check_form(
            Form::Shared,
            flavour,
            &[
                (at(1, Act::Next(2)), ""),
                (at(2, Act::Next(3)), ""),
                (Next(1), "A1 B1 A2 B2 A3 B3"),
            ],
        );
        check_form(
            Form::Shared,
            flavour,
            &[
                (at(1, Act::Complete), ""),
                (plain(), ""),
                (Next(1), "A1 B1 A. B."),
                (Next(2), ""),
            ],
        );
        check_form(
            Form::Shared,
            flavour,
            &[
                (at(1, Act::Fail), ""),
                (plain(), ""),
                (Slice(vec![1, 2]), "A1 A2 B1 B2 A! B!"),
            ],
        );
        check_form(
            Form::Shared,
            flavour,
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
fn subscription_from_inside() {
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
    // During its own replay, and at the end.
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

#[test]
fn leaving_from_inside() {
    // Oneself, an earlier one, a later one.
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
    // A later one, at the end.
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
    // Closed: in its replay, at a value, in a slice.
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
fn panics_cost_nobody_else_anything() {
    for flavour in [
        Publish,
        All,
        One,
        Many(5),
        Within(10, false),
        ManyWithin(3, 10, false),
    ] {
        check(
            flavour,
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
            flavour,
            &[
                (at(1, Act::Panic), ""),
                (at(2, Act::Panic), ""),
                (plain(), ""),
                (Slice(vec![1, 2]), "A1 B1 B2 C1 C2 panic"),
                (Next(3), "C3"),
            ],
        );
        check(
            flavour,
            &[
                (at(1, Act::Panic), ""),
                (plain(), ""),
                (Complete, "A. B. panic"),
                (Complete, ""),
            ],
        );
        check(
            flavour,
            &[
                (plain(), ""),
                (at(1, Act::Panic), ""),
                (Fail, "A! B! panic"),
                (Fail, ""),
            ],
        );
    }
    for flavour in [
        All,
        One,
        Many(5),
        Within(10, false),
        ManyWithin(3, 10, false),
        Behavior,
    ] {
        check(
            flavour,
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
