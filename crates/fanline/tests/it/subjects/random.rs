//! Random scripts, compared with the model.

use proptest::prelude::*;
use proptest::sample::select;

use super::rig::{ALL_FORMS, Counted, FLAVORS};
use super::script::{Act, Op, Plan, check_against_model};

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (100u32..200).prop_map(Act::Next),
        1 => Just(Act::Complete),
        1 => Just(Act::Fail),
        1 => Just(Act::Dispose),
        3 => Just(Act::Subscribe),
        4 => (0usize..6).prop_map(Act::Unsubscribe),
        1 => Just(Act::Snapshot),
        2 => Just(Act::Close),
        2 => Just(Act::Panic),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        1 => Just(Plan::new()),
        2 => prop::collection::vec((1usize..5, act()), 1..4),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u32..100).prop_map(Op::Next),
        2 => prop::collection::vec(0u32..100, 0..6).prop_map(Op::Slice),
        5 => plan().prop_map(Op::Subscribe),
        3 => (0usize..6).prop_map(Op::Unsubscribe),
        4 => (0u64..40).prop_map(Op::Clock),
        1 => Just(Op::Trim),
        1 => Just(Op::Snapshot),
        1 => prop_oneof![Just(Op::Complete), Just(Op::Fail), Just(Op::Dispose)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn subjects_match_model(
        form in select(&ALL_FORMS[..]),
        flavor in select(&FLAVORS[..]),
        script in prop::collection::vec(op(), 1..24),
    ) {
        check_against_model::<u32>(form, flavor, &script);
        check_against_model::<Counted>(form, flavor, &script);
    }
}
