//! The input is a script for an account's JetStream, with streams in memory. Lines of `--` part its steps:
//!
//! - `t` and a byte `b`: 2^(b mod 50) nanoseconds pass;
//! - anything else is a message: its topic and, after a space, where an answer goes; the next line begins its
//!   headers if it is `NATS/1.0`, which end with an empty line; the rest is its payload. The topic `@` stands for
//!   the `deliver_subject` that was answered last, to which what is restored is sent.

use super::jetstream_account::{Account, Owned};

const STEPS_MAX: usize = 100;
const PART: &[u8] = b"\n--\n";

/// Whatever is asked, what is answered as JSON is JSON, what is subscribed to is given back once at most, and
/// nothing else happens.
pub fn check(data: &[u8]) {
    let mut account = Account::new(None);
    for step in steps(data).take(STEPS_MAX) {
        match step {
            [b't', b, ..] if step.len() <= 3 => account.wait(1 << (b % 50)),
            _ => {
                let owned = Owned::parse(step, &account.world.deliver_subject);
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
        let end = here.windows(PART.len()).position(|part| part == PART);
        rest = end.map(|end| &here[end + PART.len()..]);
        Some(&here[..end.unwrap_or(here.len())])
    })
}
