//! What the threads of this process do.

use std::fs;
use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::colocated;

/// Where Linux tells of this process's threads. Elsewhere nothing is told of them.
const THREADS: &str = "/proc/self/task";

const HEADING: &str = "thread           state         ran  waits in\n";

/// A table of the threads of this process: its name, whether it runs or where in the kernel it waits, and how
/// long it has run. It asks no thread, so that it also shows those that do not answer. Empty but for the heading
/// where the system does not tell.
pub fn thread_table() -> String {
    let mut threads: Vec<String> = fs::read_dir(THREADS)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| thread(&entry.path()))
        .collect();
    threads.sort_unstable();
    threads.insert(0, HEADING.into());
    threads.concat()
}

/// The line of one thread; `None` when it has ended meanwhile.
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

/// Runs a future to its end on a runtime for one thread.
pub(crate) fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_unpark(|| {
            colocated::give_way();
        })
        .build_local(tokio::runtime::LocalOptions::default())?;
    Ok(runtime.block_on(future))
}
