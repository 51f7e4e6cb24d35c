//! Diagnostics for SIGQUIT, which an operator sends to a server that misbehaves.
//!
//! nats-server prints its goroutines. Fanline prints its threads.

use std::fmt::Write as _;
use std::time::Duration;

use fanline_server::{Handle, VERSION, thread_table};

/// Returns the diagnostics. Waits for no other thread, so it works even if no thread responds.
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
