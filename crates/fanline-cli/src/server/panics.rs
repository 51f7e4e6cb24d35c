//! Panic handling of the server process.

use std::panic::{self, PanicHookInfo};
use std::{process, thread};

use fanline_server::JetStreamAtWork;

use crate::server::log;

/// Makes a panic in the JetStream service abort the process, on whatever thread it happens. Otherwise the
/// server would still accept connections, but without JetStream. The abort does not lose acknowledged
/// messages, because they are on disk.
pub(crate) fn abort_on_jetstream_panic() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // The usual hook prints the backtrace if `RUST_BACKTRACE` requests one.
        usual(info);
        // Other panics do not abort the process. If a shard's state may be damaged, the server shuts down in
        // the usual way. Otherwise only the connection that caused the panic closes.
        if !JetStreamAtWork::is_here() {
            return;
        }
        log::fatal_without_wait(&message(info));
        process::abort();
    }));
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let at = info.location().map(ToString::to_string);
    let thread = thread::current();
    format!(
        "The server is broken and ends: thread '{}' panicked at {}: {}",
        thread.name().unwrap_or("unnamed"),
        at.as_deref().unwrap_or("an unknown location"),
        message.unwrap_or("without a message"),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;
    use crate::server::log::LogSettings;

    const SIGABRT: i32 = 6;

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "ends the process"]
    fn panicking_process() {
        log::install(&LogSettings::default()).unwrap();
        abort_on_jetstream_panic();
        let shard = thread::Builder::new().name("shard-0".into());
        let _ = shard.spawn(break_a_rule).unwrap().join();
        println!("a panic of a connection does not end the process");
        let shard = thread::Builder::new().name("shard-0".into());
        let _ = shard.spawn(break_a_rule_of_jetstream).unwrap().join();
    }

    fn break_a_rule() {
        panic!("a rule is broken");
    }

    fn break_a_rule_of_jetstream() {
        let _at_work = JetStreamAtWork::begin();
        break_a_rule();
    }

    /// Regression: a shard does part of JetStream's work, but only panics of the JetStream thread were
    /// detected.
    #[test]
    fn jetstream_panic_on_any_thread_ends_the_process() {
        let itself = std::env::current_exe().unwrap();
        let ended = Command::new(itself)
            .args([
                "--exact",
                "server::panics::tests::panicking_process",
                "--ignored",
                "--nocapture",
            ])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&ended.stdout);
        assert!(stdout.contains("does not end the process"), "{stdout}");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{stderr}");
        for part in [
            "[FTL]",
            "thread 'shard-0' panicked at",
            ": a rule is broken",
        ] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    }
}
