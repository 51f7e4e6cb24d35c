//! Memory of connections and pending messages. Each test runs in a process of its own, so that only its
//! memory is measured. The memory of the test's clients is included, but small.

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use fanline_server::Limits;

use crate::raw::{RawClient, TestServer, WAIT_MAX, publish_frame};

const MIB: usize = 1024 * 1024;
const ALONE: &str = "FANLINE_TEST_ALONE";

#[test]
fn idle_connections_are_cheap() {
    const BYTES_PER_CONNECTION_MAX: usize = 10 * 1024;
    in_a_process_of_its_own("memory::idle_connections_are_cheap", || {
        let server = TestServer::start(2);
        let mut warm = server.client();
        talk(&mut warm);
        let count = connections_that_fit();
        let before = resident_bytes("VmRSS");
        let mut clients: Vec<RawClient> = Vec::with_capacity(count);
        for _ in 0..count {
            let mut client = server.client();
            talk(&mut client);
            // The client's buffer is released, because it is not the server's memory.
            client.forget_buffer();
            clients.push(client);
        }
        let grown = resident_bytes("VmRSS").saturating_sub(before);
        assert!(
            grown < count * BYTES_PER_CONNECTION_MAX,
            "{count} connections cost {grown} bytes"
        );
    });
}

/// Makes the server use all kinds of buffers for a connection.
fn talk(client: &mut RawClient) {
    client.subscribe("echo", "1");
    client.publish("echo", vec![b'x'; 32 * 1024]);
    assert_eq!(client.message().payload.len(), 32 * 1024);
    client.send("UNSUB 1\r\nPUB echo 100\r\nhalf of it");
    client.send("x".repeat(90) + "\r\n");
    client.settle();
}

/// Returns 2,000, or fewer if the limit of file descriptors does not permit so many. Each connection needs
/// two descriptors, because both ends are in this process.
fn connections_that_fit() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let descriptors = soft
        .and_then(|soft| soft.parse().ok())
        .unwrap_or(usize::MAX);
    2000.min((descriptors - 100) / 2)
}

/// Tests subscribers that do not read, and slow subscribers.
#[test]
fn a_large_payload_is_not_copied_for_each_subscriber() {
    const SUBSCRIBERS: usize = 50;
    const MESSAGES: usize = 24;
    in_a_process_of_its_own(
        "memory::a_large_payload_is_not_copied_for_each_subscriber",
        || {
            for shards in [1, 2] {
                let server = TestServer::with_limits(shards, patient(64 * MIB));
                let mut subscribers = server.clients(SUBSCRIBERS);
                for subscriber in &mut subscribers {
                    subscriber.subscribe("large", "1");
                }
                let mut publisher = server.client();
                let payload = vec![b'x'; MIB];
                let frame = publish_frame("large", &payload);
                reset_peak();
                let before = resident_bytes("VmRSS");
                for _ in 0..MESSAGES {
                    publisher.send(&frame);
                }
                publisher.settle();
                let line_bytes = "MSG large 1 1048576\r\n\r\n".len();
                let mut left = vec![MESSAGES * (MIB + line_bytes); SUBSCRIBERS];
                let mut room = vec![0; 200_000];
                while left.iter().any(|left| *left > 0) {
                    for (subscriber, left) in subscribers.iter_mut().zip(&mut left) {
                        if *left > 0 {
                            let most = room.len().min(*left);
                            let read = subscriber.stream.read(&mut room[..most]);
                            *left -= read.expect("there is more");
                        }
                    }
                }
                let grown = resident_bytes("VmHWM").saturating_sub(before);
                assert!(
                    grown < 4 * MESSAGES * MIB,
                    "{shards} shards: {} MiB",
                    grown / MIB
                );
            }
        },
    );
}

/// Regression: each pending message of 4 KiB kept its read buffer of 128 KiB in memory. The memory was thirty
/// times the limit of pending bytes.
#[test]
fn memory_of_pending_messages_is_bounded() {
    const PENDING_BYTES_MAX: usize = 8 * MIB;
    in_a_process_of_its_own("memory::memory_of_pending_messages_is_bounded", || {
        for shards in [1, 2] {
            let server = TestServer::with_limits(shards, patient(PENDING_BYTES_MAX));
            // There is one slow subscriber on each shard.
            let mut slow = server.clients(shards);
            for slow in &mut slow {
                slow.subscribe("slow", "1");
            }
            let mut publisher = server.client();
            let payload = vec![b'x'; 4096];
            let mut frames = publish_frame("slow", &payload);
            for _ in 0..31 {
                frames.extend(publish_frame("nobody", &payload));
            }
            reset_peak();
            let before = resident_bytes("VmRSS");
            for _ in 0..2 * PENDING_BYTES_MAX / payload.len() {
                publisher.send(&frames);
            }
            publisher.settle();
            let grown = resident_bytes("VmHWM").saturating_sub(before);
            let most = shards * PENDING_BYTES_MAX * 4 + 32 * MIB;
            assert!(grown < most, "{shards} shards: {} MiB", grown / MIB);
        }
    });
}

fn patient(pending_bytes_max: usize) -> Limits {
    Limits {
        pending_bytes_max,
        write_deadline: WAIT_MAX * 10,
        // The test measures memory. Delaying the publisher would only take time.
        no_fast_producer_stall: true,
        ..Limits::default()
    }
}

/// Runs this test in a new process, unless it already is one.
fn in_a_process_of_its_own(name: &str, test: impl FnOnce()) {
    if std::env::var(ALONE).as_deref() == Ok(name) {
        return test();
    }
    let program = std::env::current_exe().expect("the running program");
    let outcome = Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, name)
        .output()
        .expect("it starts");
    let received = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        received.contains("1 passed") && outcome.status.success(),
        "{received}\n{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
}

/// Returns `VmRSS`, the resident memory now, or `VmHWM`, its peak since [`reset_peak`].
fn resident_bytes(field: &str) -> usize {
    // Buffers are released shortly after the response is written.
    std::thread::sleep(Duration::from_millis(20));
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<usize>().ok())
        .expect("a size")
        * 1024
}

fn reset_peak() {
    // On Linux, writing 5 resets the peak to the current resident memory.
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}
