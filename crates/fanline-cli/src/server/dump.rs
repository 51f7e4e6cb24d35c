//! What the process is doing, for the one who sends SIGQUIT because it does not do what it should.
//!
//! nats-server prints its goroutines then. Here it is the threads.

use std::fmt::Write as _;
use std::time::Duration;

use fanline_server::{Handle, VERSION, thread_table};

/// All that is known. Asks nobody, so that it is told even when no thread answers.
pub(crate) fn text(handle: &Handle, uptime: Duration) -> String {
    let mut text = String::from("SIGQUIT: quit\n");
    let process = std::process::id();
    let connections = handle.connections();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "fanline v{VERSION}, process {process}, up {:.1}s, {connections} connections on {}",
        uptime.as_secs_f64(),
        handle.addresses().clients,
    );
    text + &thread_table()
}
