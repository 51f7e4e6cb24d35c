//! Integration tests of the hubs.
//!
//! Cases of Pekko's `HubSpec`, and the tests that cover them:
//!
//! | merge | |
//! | --- | --- |
//! | two producers; the order of arrival | `merge::elements_keep_order_of_arrival` |
//! | the consumer left before the first producer joined | `merge::producer_created_after_receiver_dropped_is_closed` |
//! | a shutdown is not a failure | `checklist::producer_runtime_shutdown_is_no_merge_failure` |
//! | producers are closed after `take(5)` | `checklist::dropped_merge_receiver_closes_current_and_later_producers` |
//! | the exact room for three | `checklist::merge_frees_as_much_room_as_was_received` |
//! | a total bound: rejects, admits again, admitted producers continue | `merge::total_is_never_exceeded_and_permits_are_fifo` |
//! | long streams, a buffer of 1, slow ends | `checklist::merge_handles_long_streams_of_any_speed` |
//! | producers one after the other | `checklist::merge_handles_producers_one_after_the_other` |
//! | one producer fails | `merge::failing_producer_does_not_affect_others` |
//! | draining: completes, admits no new producer, at once without producers | `merge::drain_ends_after_current_producers` |
//!
//! | broadcast | |
//! | --- | --- |
//! | ten through eight; consumers attached together | `broadcast_cases::stream_longer_than_capacity_reaches_all_consumers` |
//! | start after one or two, one of which leaves before; a hot source | `broadcast_cases::start_after_loses_no_element`, `attach_source_blocks_emitting_thread_when_full`, `broadcast::start_after_holds_send_until_enough_consumers` |
//! | one leaves early, or at once | `broadcast_cases::consumer_leaving_early_does_not_block_others`, `consumer_leaving_at_once_does_not_block_others` |
//! | consecutive consumers without a gap | `broadcast_cases::consecutive_consumers_share_stream_without_gap` |
//! | different speeds, the slower sets the rate, a buffer of 1 | `broadcast_cases::slowest_consumer_sets_the_rate` |
//! | a slow producer | `broadcast_cases::consumers_wait_for_slow_producer` |
//! | discarding, then a real consumer | `broadcast_cases::discard_stops_at_first_consumer_and_resumes_after_last` |
//! | an error overtakes; ends for late consumers | `broadcast_cases::failure_reaches_waiting_reading_and_late_consumers`, `failure_overtakes_elements_in_every_receive_method`, `broadcast::completion_drains_and_reaches_late_consumers` |
//! | the hub's runtime is shut down | `broadcast_cases::producer_runtime_shutdown_completes_hub` and the next |
//! | leaving while joining loses nothing | `broadcast_cases::joining_and_leaving_costs_no_consumer_an_element` |
//! | 200 × 2,000 in order; 64, of which 16 leave | `broadcast_cases::two_hundred_consumers_get_two_thousand_elements_in_order`, `broadcast::tasks_get_all_elements_in_order_during_joins_and_leaves` |
//!
//! | partition | |
//! | --- | --- |
//! | one stream; even; uneven | `checklist::partition_with_one_consumer_is_a_queue`, `partition_handles_even_and_uneven_choices` |
//! | by modulo, waiting for two | `partition::elements_pending_for_start_after_count_toward_capacity` |
//! | round robin, least loaded, sticky sessions | `partition::round_robin_and_least_loaded_choose_as_documented`, `stateful_partitioner_keeps_sessions_together` |
//! | back-pressure with four; the slower sets the rate with one | `checklist::full_partition_hub_blocks_producer`, `slower_consumer_sets_rate_of_partition_with_capacity_one` |
//! | an error to all; completion and error for late consumers | `checklist::partition_failure_overtakes_elements_for_all_consumers`, `partition::late_consumers_see_completion_or_failure` |
//! | a negative index drops | `partition::negative_index_drops_element` |
//! | the runtime is shut down | `checklist::producer_runtime_shutdown_completes_partition_hub` |
//!
//! | beyond `HubSpec` | |
//! | --- | --- |
//! | a pending `send` is dropped | `broadcast::dropped_send_sends_nothing`, `merge_partition_panics::dropped_pending_send_or_receiver_loses_no_element` |
//! | a consumer is dropped while it waits | `broadcast::parked_receiver_can_be_dropped`, `broadcast_drops::parked_consumers_are_dropped_while_they_are_woken` |
//! | panics in clone, drop, waker, partitioner | `panics`, `merge_partition_panics`, `broadcast_drops::panicking_wakers_cost_no_other_wake_up` |
//! | a waker that drops its consumer | `panics::waker_may_drop_consumers_and_subscribe`, `broadcast_drops::waker_may_drop_all_consumers` |
//! | revoked consumers: idle after `Lagged`, disconnected but not dropped, not blamed for other delays | `broadcast::idle_consumer_after_lagged_does_not_block_producer`, `disconnected_receiver_does_not_count_as_consumer`, `consumer_is_not_slow_while_start_after_waits`, `late_consumer_gets_full_timeout`, `panics::consumer_can_lag_after_panicking_clone` |
//! | the end reaches all consumers, whatever wakers do and whichever consumer leaves | `broadcast_drops::panicking_producer_waker_does_not_hide_end_of_broadcast_hub`, `merge_partition_panics`, the loom model `loom_hub_sweep_and_end` |
//! | number and time of drops | `broadcast_drops`, `merge_partition_panics::elements_are_dropped_once_at_the_expected_time` |
//! | positions across the wrap | `positions_wrap_around` in the library, and all its loom models |
//! | many late consumers while the head moves | `broadcast_cases::many_late_consumers_see_no_gap` |
//! | large and `!Unpin` types | `large_and_unpin_types_are_delivered`, twice |
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
