//! The input is a script for the JetStream service of one account, with streams in memory. Lines of `--`
//! separate its steps:
//!
//! - `t` and a byte `b`: 2^(b mod 50) nanoseconds pass.
//! - Anything else is a message. It starts with the subject and, after a space, the reply subject. If the
//!   next line is `NATS/1.0`, headers follow up to an empty line. The rest is the payload. The subject `@`
//!   stands for the `deliver_subject` of the last response, which receives the chunks of a restore.

use super::jetstream_account::{Account, Owned};

const STEPS_MAX: usize = 100;
const SEPARATOR: &[u8] = b"\n--\n";

/// Checks that every JSON response is valid JSON, and that no subject is unsubscribed more often than it was
/// subscribed.
pub fn check(data: &[u8]) {
    let mut account = Account::new(None);
    for step in steps(data).take(STEPS_MAX) {
        match step {
            [b't', b, ..] if step.len() <= 3 => account.wait(1 << (b % 50)),
            _ => {
                let owned = Owned::parse(step, &account.port.deliver_subject);
                account.handle(&owned);
            }
        }
    }
    account.close();
}

fn steps(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let here = rest?;
        let end = here
            .windows(SEPARATOR.len())
            .position(|part| part == SEPARATOR);
        rest = end.map(|end| &here[end + SEPARATOR.len()..]);
        Some(&here[..end.unwrap_or(here.len())])
    })
}
