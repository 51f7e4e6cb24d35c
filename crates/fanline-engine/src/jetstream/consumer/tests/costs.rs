//! Prints the costs of operations: `cargo test --release costs -- --ignored --nocapture`.

#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use super::Simulation;
use crate::jetstream::Retention;

fn print(what: &str, count: u32, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    println!("{what}: {:?} each", start.elapsed() / count);
}

#[test]
#[ignore = "it measures"]
fn costs() {
    const COUNT: u32 = 10_000;
    let mut simulation = Simulation::new(Retention::Limits);
    for _ in 0..COUNT {
        simulation.append(&["s.a=hello"]);
    }
    print("creating one of 10,000 filtered consumers", COUNT, || {
        for n in 0..COUNT {
            simulation.create(
                &format!("F{n}"),
                &format!(r#"{{"filter_subject":"other.{n}"}}"#),
            );
        }
    });
    print(
        "creating one of 10,000 consumers of everything",
        COUNT,
        || {
            for n in 0..COUNT {
                simulation.create(&format!("A{n}"), "{}");
            }
        },
    );
    print(
        "a record beside 20,000 consumers that are not concerned",
        COUNT,
        || {
            for sequence in 1..=u64::from(COUNT) {
                simulation.consumers.handle_append(sequence, b"s.a");
            }
        },
    );
}
