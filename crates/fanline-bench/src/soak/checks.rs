//! The conditions that must hold at the end of a run.

use std::time::Duration;

use super::churn::Churn;
use super::core_load::Core;
use super::crowd::LIVE;
use super::director::{Record, SOCKETS_SLACK, Sample};
use super::mqtt_load;
use super::plan::Plan;
use super::slow::Slow;
use super::stage::{Load, get};
use super::stream_load::{Publisher, Reader, Worker};
use super::trend::Trend;
use crate::report::metric::thousands;

/// Growth of memory, in bytes, that is ignored in the part of the run without restarts. The memory of an
/// allocator varies by about as much.
const GROWTH_BYTES_MAX: f64 = 8.0 * 1024.0 * 1024.0;
/// Growth of memory that is ignored there, as a share of all memory.
const GROWTH_SHARE_MAX: f64 = 0.05;
/// Growth of the number of open files that is ignored. For example, a stream opens a segment, or a timer
/// exists for a while.
const FILES_SLACK: f64 = 16.0;

/// A condition that must hold.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) is_passed: bool,
    /// The observed result, as text.
    pub(super) observed: String,
}

/// Returns all checks.
pub(super) fn all(record: &Record, plan: &Plan) -> Vec<Check> {
    let counts = &record.stage.counts;
    let number = |count| thousands(get(count));
    let repeated = number(&counts.redelivered);
    let of_load = |load, count, observed| Check {
        name: load,
        is_passed: get(count) > 0 && !failed(record, &[load]),
        observed,
    };
    vec![
        stood(record),
        Check {
            name: "core messages: none lost, none out of order",
            is_passed: get(&counts.core) > 0 && !failed(record, &[Core::NAME]),
            observed: format!("{} deliveries", number(&counts.core)),
        },
        stream_records(record, &repeated),
        Check {
            name: "MQTT, QoS 1: no acknowledged message is lost, none out of order",
            is_passed: get(&counts.mqtt) > 0 && !failed(record, &[mqtt_load::NAME]),
            observed: format!(
                "{} messages, {} arrived twice",
                number(&counts.mqtt),
                number(&counts.mqtt_repeated)
            ),
        },
        Check {
            name: "live connections: all answer, also after each restart",
            is_passed: get(&counts.roll_calls) > 0 && !failed(record, &[LIVE]),
            observed: format!(
                "{} connections, {} roll calls",
                thousands(plan.connections as u64),
                number(&counts.roll_calls)
            ),
        },
        of_load(
            Churn::NAME,
            &counts.came_and_went,
            format!(
                "{} connected and disconnected",
                number(&counts.came_and_went)
            ),
        ),
        of_load(
            Slow::NAME,
            &counts.dropped_as_slow,
            format!("{} were dropped", number(&counts.dropped_as_slow)),
        ),
        memory(record, plan),
        files(record, plan),
        sockets(record),
    ]
}

fn failed(record: &Record, loads: &[&str]) -> bool {
    record
        .faults
        .iter()
        .any(|fault| loads.contains(&fault.load))
}

fn stood(record: &Record) -> Check {
    let kills = record
        .restarts
        .iter()
        .filter(|restart| restart.is_kill)
        .count();
    let stops = record.restarts.len() - kills;
    let longest = record.restarts.iter().map(|restart| restart.downtime).max();
    Check {
        name: "the server ends only on request",
        is_passed: record.ended_at.is_none() && !failed(record, &["all loads"]) && kills > 0,
        observed: match record.ended_at {
            Some(at) => format!("it ended by itself after {} s", at.as_secs()),
            None => format!(
                "killed {kills} times, stopped {stops} times, down for at most {:.1} s",
                longest.unwrap_or_default().as_secs_f64()
            ),
        },
    }
}

fn stream_records(record: &Record, repeated: &str) -> Check {
    let loads = [Publisher::NAME, Reader::NAME, Worker::NAME];
    let [acknowledged, read, worked] = record.stream_records;
    Check {
        name: "a stream: no acknowledged record is lost, each once and in order",
        is_passed: acknowledged > 0
            && read >= acknowledged
            && worked >= acknowledged
            && !failed(record, &loads),
        observed: format!(
            "{} records acknowledged, {} read in order, {} processed, {repeated} redeliveries",
            thousands(acknowledged),
            thousands(read),
            thousands(worked)
        ),
    }
}

/// Returns the trend of `value` over seconds, in the part of the run without restarts.
fn steady(record: &Record, plan: &Plan, value: impl Fn(&Sample) -> f64) -> Option<Trend> {
    let from = |sample: &&Sample| sample.at >= plan.steady_from;
    let points = record.samples.iter().filter(from);
    let points = points.map(|sample| (sample.at.as_secs_f64(), value(sample)));
    Trend::of(&points.collect::<Vec<_>>())
}

const NOT_CHECKED: &str = "the run ended before this check";

fn memory(record: &Record, plan: &Plan) -> Check {
    const MIB: f64 = 1024.0 * 1024.0;
    let trend = steady(record, plan, |sample| sample.resident as f64);
    let is_flat =
        |trend: Trend| trend.growth() <= GROWTH_BYTES_MAX.max(trend.mean * GROWTH_SHARE_MAX);
    Check {
        name: "memory is flat",
        is_passed: trend.is_some_and(is_flat),
        observed: trend.map_or_else(
            || NOT_CHECKED.to_owned(),
            |trend| {
                format!(
                    "{:.1} MiB, {:+.2} MiB a minute over the last {}",
                    trend.mean / MIB,
                    trend.slope * 60.0 / MIB,
                    words(Duration::from_secs_f64(trend.span.max(0.0)))
                )
            },
        ),
    }
}

fn files(record: &Record, plan: &Plan) -> Check {
    let trend = steady(record, plan, |sample| sample.descriptors.others as f64);
    Check {
        name: "open files do not grow",
        is_passed: trend.is_some_and(|trend| trend.growth() <= FILES_SLACK),
        observed: trend.map_or_else(
            || NOT_CHECKED.to_owned(),
            |trend| {
                format!(
                    "{:.0} open, {:+.1} over the same time",
                    trend.mean,
                    trend.growth()
                )
            },
        ),
    }
}

fn sockets(record: &Record) -> Check {
    let before = record.before.sockets;
    let after = record.after.map(|after| after.sockets);
    Check {
        name: "no socket stays open after all clients have disconnected",
        is_passed: after.is_some_and(|after| after <= before + SOCKETS_SLACK),
        observed: after.map_or_else(
            || NOT_CHECKED.to_owned(),
            |after| format!("{before} before the first client, {after} after the last"),
        ),
    }
}

/// Formats a duration as text.
pub(super) fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} minutes", seconds / 60),
        seconds => format!("{:.1} hours", seconds as f64 / 3600.0),
    }
}
