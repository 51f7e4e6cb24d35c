//! What becomes of a server in which something is broken: it ends, and says so.

use std::panic::{self, PanicHookInfo};
use std::{process, thread};

use fanline_server::JetStreamAtWork;

use crate::server::log;

/// Makes a panic in the JetStream service end the process at once, on whichever thread it works: without JetStream the
/// server would still accept connections, and serve half. What was acknowledged is on the disk.
pub(crate) fn end_the_process() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // With the way there, if `RUST_BACKTRACE` asks for it.
        usual(info);
        // One that may have damaged a shard stops the server in order; any other costs its connection.
        if !JetStreamAtWork::is_here() {
            return;
        }
        log::last_words(&told(info));
        process::abort();
    }));
}

fn told(info: &PanicHookInfo<'_>) -> String {
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
        at.as_deref().unwrap_or("an unknown place"),
        message.unwrap_or("without a word"),
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
    fn breaks() {
        log::install(&LogSettings::default()).unwrap();
        end_the_process();
        let shard = thread::Builder::new().name("shard-0".into());
        let _ = shard.spawn(break_a_rule).unwrap().join();
        println!("a panic of a connection ends nothing");
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

    /// A shard does a little of JetStream's work, and only the thread named `keeper` was looked for.
    #[test]
    fn jetstream_panic_on_any_thread_ends_the_process() {
        let itself = std::env::current_exe().unwrap();
        let ended = Command::new(itself)
            .args([
                "--exact",
                "server::panics::tests::breaks",
                "--ignored",
                "--nocapture",
            ])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(said.contains("ends nothing"), "{said}");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{told}");
        for part in [
            "[FTL]",
            "thread 'shard-0' panicked at",
            ": a rule is broken",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
