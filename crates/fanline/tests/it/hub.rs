//! Hubs, seen from outside.
//!
//! The cases of Pekko's `HubSpec`, by what it asks, and where they are:
//!
//! | merge | |
//! | --- | --- |
//! | two producers; the order of arrival | `merge::elements_come_in_the_order_of_arrival` |
//! | the consumer left before the first producer came | `merge::a_consumer_that_left_first_is_known_to_the_first_producer` |
//! | a shutdown is no failure | `checklist::merge_says_nothing_of_a_producer_whose_runtime_is_shut_down` |
//! | producers are told after `take(5)` | `checklist::merge_tells_producers_here_and_to_come_when_the_consumer_has_enough` |
//! | the exact room for three | `checklist::merge_gives_back_as_much_room_as_was_taken` |
//! | a bound for all: rejects, admits again, those admitted go on | `merge::the_total_is_never_exceeded_and_places_are_given_in_turn` |
//! | long streams, a buffer of 1, slow ends | `checklist::merge_takes_long_streams_of_any_speed` |
//! | producers apart in time | `checklist::merge_takes_producers_that_are_apart_in_time` |
//! | one producer fails | `merge::a_failing_producer_harms_nobody` |
//! | draining: completes, takes nobody new, at once with nobody | `merge::draining_ends_when_those_that_are_there_have` |
//!
//! | broadcast | |
//! | --- | --- |
//! | ten through eight; consumers attached together | `broadcast_cases::a_stream_longer_than_the_hub_reaches_everybody` |
//! | start after one or two, one of whom leaves before; a hot source | `broadcast_cases::nothing_is_lost_before_the_consumers_it_starts_after`, `a_source_that_does_not_wait_is_held_up`, `broadcast::nothing_is_taken_before_enough_consumers_are_there` |
//! | one cancels early, or at once | `broadcast_cases::one_that_leaves_early_has_a_prefix_and_holds_nobody`, `one_that_leaves_at_once_holds_nobody` |
//! | consumers in turn without a gap | `broadcast_cases::consumers_one_after_the_other_share_a_stream_without_gap` |
//! | different speeds, the slower sets the rate, a buffer of 1 | `broadcast_cases::speeds_may_differ_and_the_slowest_sets_the_rate` |
//! | a slow producer | `broadcast_cases::a_slow_producer_is_waited_for` |
//! | discarding, then a real consumer | `broadcast_cases::discarding_ends_with_the_first_real_consumer_and_begins_again_after_the_last` |
//! | error overtakes; ends for late arrivals, remembered | `broadcast_cases::failure_reaches_who_waits_who_reads_and_who_comes`, `failure_overtakes_in_every_way_of_receiving`, `broadcast::completion_drains_and_is_remembered` |
//! | the hub's runtime is shut down | `broadcast_cases::consumers_are_told_when_the_runtime_of_the_producer_is_shut_down` and the next |
//! | leaving while joining loses nothing | `broadcast_cases::coming_and_going_costs_nobody_an_element` |
//! | 200 × 2,000 in order; 64, of whom 16 leave | `broadcast_cases::two_hundred_consumers_get_two_thousand_in_order`, `broadcast::tasks_get_everything_in_order_while_others_come_and_go` |
//!
//! | partition | |
//! | --- | --- |
//! | one stream; even; uneven | `checklist::partition_is_a_queue_where_there_is_one_consumer`, `partition_may_be_even_or_uneven` |
//! | by modulo, waiting for two | `partition::elements_wait_for_enough_consumers_and_count` |
//! | round robin, least loaded, sticky sessions | `partition::ready_made_partitioners`, `sessions_stick` |
//! | back-pressure with four; the slower sets the rate with one | `checklist::partition_holds_the_producer_with_four_elements`, `partition_goes_as_fast_as_the_slower_one_where_there_is_room_for_one` |
//! | error to all; late completion and error, remembered | `checklist::partition_fails_for_all_and_at_once`, `partition::the_ends_are_remembered` |
//! | negative drops | `partition::a_negative_index_drops` |
//! | the runtime is shut down | `checklist::partition_tells_consumers_when_the_runtime_of_the_producer_is_shut_down` |
//!
//! | beyond it | |
//! | --- | --- |
//! | a pending `send` is dropped | `broadcast::a_dropped_send_sends_nothing`, `merge_partition_panics::a_pending_send_that_is_dropped_takes_nothing_with_it` |
//! | a consumer is dropped while it waits | `broadcast::a_parked_receiver_can_be_dropped`, `broadcast_drops::parked_consumers_are_dropped_while_they_are_woken` |
//! | panics in clone, drop, waker, partitioner | `panics`, `merge_partition_panics`, `broadcast_drops::of_many_wakers_each_may_panic` |
//! | a waker that drops its consumer | `panics::a_waker_may_drop_consumers_and_subscribe`, `broadcast_drops::a_waker_may_drop_every_consumer` |
//! | cut off: told and then idle, disconnected and still there, not for what others held up | `broadcast::who_was_told_that_it_lagged_holds_nobody`, `whoever_was_disconnected_does_not_listen`, `who_waits_for_others_is_not_slow`, `a_newcomer_is_not_slow_since_others_were`, `panics::who_lets_go_after_a_panic_can_be_cut_off` |
//! | the end reaches everybody, whatever wakers do and whoever leaves | `broadcast_drops::a_waker_of_the_producer_that_panics_costs_nobody_the_end`, `merge_partition_panics`, the loom model `loom_hub_sweep_and_end` |
//! | drops counted, and when | `broadcast_drops`, `merge_partition_panics::each_element_is_dropped_once_and_when` |
//! | positions across the wrap | `positions_wrap_around` in the library, and all its loom models |
//! | a storm of newcomers while the head moves | `broadcast_cases::a_storm_of_newcomers_sees_no_gap` |
//! | large and `!Unpin` types | `large_and_pinned_types_go_through`, twice |
//! | random steps against queues with cursors | `model`, `merge_model`, `partition_model` |
//! | two threads, buffers 1, 2, 16 | `broadcast_cases::small_buffers_on_two_threads`, `merge_partition_stress` |

mod attach;
mod broadcast;
mod broadcast_cases;
mod broadcast_drops;
mod checklist;
mod merge;
mod merge_model;
mod merge_partition_panics;
mod merge_partition_stress;
mod model;
mod panics;
mod partition;
mod partition_model;
