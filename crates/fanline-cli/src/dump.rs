//! What the process is doing, for the one who sends SIGQUIT because it does not do what it should.
//!
//! nats-server prints its goroutines then. Here it is the threads: what each is called, whether it
//! runs or where it waits, and how long it has run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fanline_server::{Handle, VERSION};

/// Where Linux tells of this process's threads. Elsewhere nothing is told of them.
const THREADS: &str = "/proc/self/task";

const HEADING: &str = "thread           state         ran  waits in\n";

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
    text.push_str(HEADING);
    let mut threads: Vec<String> = fs::read_dir(THREADS)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| thread(&entry.path()))
        .collect();
    threads.sort_unstable();
    for line in threads {
        text += &line;
    }
    text
}

/// The line of one thread; `None` when it is gone meanwhile.
fn thread(folder: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let name = read("comm")?;
    // The name may hold anything, so that what follows it is found from the end.
    let stat = read("stat")?;
    let state = stat.rsplit(')').next()?.trim_start().chars().next()?;
    let ran: u64 = read("schedstat")
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0);
    let ran = Duration::from_nanos(ran).as_secs_f64();
    let place = read("wchan").unwrap_or_default();
    let place = Some(place.trim()).filter(|place| !place.is_empty() && *place != "0");
    Some(format!(
        "{:<16} {state:<6} {ran:>9.3}s  {}\n",
        name.trim(),
        place.unwrap_or("-"),
    ))
}
