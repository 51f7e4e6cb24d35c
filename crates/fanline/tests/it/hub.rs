//! Integration tests of the hubs.
//!
//! The first three tables list the cases of Pekko's `HubSpec`, and the tests here that cover them:
//!
//! | merge hub | tests |
//! | --- | --- |
//! | Elements of two producers arrive in order. | `merge::elements_keep_order_of_arrival` |
//! | The consumer leaves before the first producer joins. | `merge::producer_created_after_receiver_dropped_is_closed` |
//! | The shutdown of a producer's runtime is not a failure. | `checklist::producer_runtime_shutdown_is_no_merge_failure` |
//! | After `take(5)` the producers are closed. | `checklist::dropped_merge_receiver_closes_current_and_later_producers` |
//! | A hub for three elements has room for exactly three. | `checklist::merge_frees_as_much_room_as_was_received` |
//! | A bound on the total rejects elements, and admits them again in order. | `merge::total_is_never_exceeded_and_permits_are_fifo` |
//! | Long streams; a buffer of 1; slow producers and consumers. | `checklist::merge_handles_long_streams_of_any_speed` |
//! | Producers join one after the other. | `checklist::merge_handles_producers_one_after_the_other` |
//! | One producer fails. | `merge::failing_producer_does_not_affect_others` |
//! | A draining hub admits no new producer. It completes when no producer is left. | `merge::drain_ends_after_current_producers` |
//!
//! | broadcast hub | tests |
//! | --- | --- |
//! | Ten elements pass a buffer of eight; consumers attach together. | `broadcast_cases::stream_longer_than_capacity_reaches_all_consumers` |
//! | The hub starts when one or two consumers are present; a consumer that left before does not count. The source is hot. | `broadcast_cases::start_after_loses_no_element`, `attach_source_blocks_emitting_thread_when_full`, `broadcast::start_after_holds_send_until_enough_consumers` |
//! | A consumer leaves early or at once. | `broadcast_cases::consumer_leaving_early_does_not_block_others`, `consumer_leaving_at_once_does_not_block_others` |
//! | Consecutive consumers share a stream without a gap. | `broadcast_cases::consecutive_consumers_share_stream_without_gap` |
//! | With a buffer of 1, the slowest consumer sets the rate. | `broadcast_cases::slowest_consumer_sets_the_rate` |
//! | The producer is slow. | `broadcast_cases::consumers_wait_for_slow_producer` |
//! | Elements are discarded until a consumer joins. | `broadcast_cases::discard_stops_at_first_consumer_and_resumes_after_last` |
//! | An error overtakes elements; late consumers see the end. | `broadcast_cases::failure_reaches_waiting_reading_and_late_consumers`, `failure_overtakes_elements_in_every_receive_method`, `broadcast::completion_drains_and_reaches_late_consumers` |
//! | The hub's runtime is shut down. | `broadcast_cases::producer_runtime_shutdown_completes_hub` and the test after it |
//! | Consumers that join and leave cost the others no element. | `broadcast_cases::joining_and_leaving_costs_no_consumer_an_element` |
//! | 200 consumers receive 2,000 elements in order; 16 of 64 consumers leave. | `broadcast_cases::two_hundred_consumers_get_two_thousand_elements_in_order`, `broadcast::tasks_get_all_elements_in_order_during_joins_and_leaves` |
//!
//! | partition hub | tests |
//! | --- | --- |
//! | The partitioner chooses one consumer, all evenly, or all unevenly. | `checklist::partition_with_one_consumer_is_a_queue`, `partition_handles_even_and_uneven_choices` |
//! | Elements are distributed by modulo after two consumers have joined. | `partition::elements_pending_for_start_after_count_toward_capacity` |
//! | Round robin, the least loaded consumer, and sticky sessions. | `partition::round_robin_and_least_loaded_choose_as_documented`, `stateful_partitioner_keeps_sessions_together` |
//! | A full hub of four blocks the producer; with a capacity of 1 the slower consumer sets the rate. | `checklist::full_partition_hub_blocks_producer`, `slower_consumer_sets_rate_of_partition_with_capacity_one` |
//! | An error reaches all consumers; late consumers see the end. | `checklist::partition_failure_overtakes_elements_for_all_consumers`, `partition::late_consumers_see_completion_or_failure` |
//! | A negative index drops the element. | `partition::negative_index_drops_element` |
//! | The producer's runtime is shut down. | `checklist::producer_runtime_shutdown_completes_partition_hub` |
//!
//! | cases that `HubSpec` does not have | tests |
//! | --- | --- |
//! | A pending `send` is dropped. | `broadcast::dropped_send_sends_nothing`, `merge_partition_panics::dropped_pending_send_or_receiver_loses_no_element` |
//! | A consumer starts with the last elements, before the head. | `late_start`, `late_consumers_get_exactly_the_last_elements`, the loom model `loom_hub_join_before_head` |
//! | Relays serve consumers on several threads. | `relay`, the loom models `loom_hub_relay` and `loom_hub_relay_and_leave` |
//! | A permit, a timeout, or a wait for the end is used, refused, or dropped. | `waits`, the loom models `loom_*_closed` and `loom_merge_dropped_permit` |
//! | A consumer is dropped while it waits. | `broadcast::parked_receiver_can_be_dropped`, `broadcast_drops::parked_consumers_are_dropped_while_they_are_woken` |
//! | A clone, a drop, a waker, or a partitioner panics. | `panics`, `merge_partition_panics`, `broadcast_drops::panicking_wakers_cost_no_other_wake_up` |
//! | A waker drops its consumer. | `panics::waker_may_drop_consumers_and_subscribe`, `broadcast_drops::waker_may_drop_all_consumers` |
//! | A revoked consumer is idle after `Lagged`, or disconnected and not dropped. No consumer is revoked for the delay of another. | `broadcast::idle_consumer_after_lagged_does_not_block_producer`, `disconnected_receiver_does_not_count_as_consumer`, `consumer_is_not_slow_while_start_after_waits`, `late_consumer_gets_full_timeout`, `panics::consumer_can_lag_after_panicking_clone` |
//! | The end reaches all consumers, whatever wakers do and whichever consumer leaves. | `broadcast_drops::panicking_producer_waker_does_not_hide_end_of_broadcast_hub`, `merge_partition_panics`, the loom model `loom_hub_sweep_and_end` |
//! | Each element is dropped once, at the right time. | `broadcast_drops`, `merge_partition_panics::elements_are_dropped_once_at_the_expected_time` |
//! | Positions wrap around. | `positions_wrap_around` in the library, and all its loom models |
//! | Many late consumers join while the head moves. | `broadcast_cases::many_late_consumers_see_no_gap` |
//! | Element types are large or `!Unpin`. | `large_and_unpin_types_are_delivered`, twice |
//! | Random steps give the same result as queues with cursors. | `model`, `merge_model`, `partition_model` |
//! | Two threads use buffers of 1, 2, and 16. | `broadcast_cases::small_buffers_on_two_threads`, `merge_partition_stress` |

mod attach;
mod broadcast;
mod broadcast_cases;
mod broadcast_drops;
mod checklist;
mod late_start;
mod merge;
mod merge_model;
mod merge_partition_panics;
mod merge_partition_stress;
mod model;
mod panics;
mod partition;
mod partition_model;
mod relay;
mod waits;
