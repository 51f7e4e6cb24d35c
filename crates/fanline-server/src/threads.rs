//! Threads: their tokio runtime, and a table of their states.

use std::fs;
use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::colocated;

/// Folder in which Linux describes this process's threads.
const THREADS: &str = "/proc/self/task";

const HEADING: &str = "thread           state         ran  waits in\n";

/// Returns a table of this process's threads: name, state, processor time, and the kernel function in which a
/// thread waits. The table is read from `/proc`, so it also shows threads that hang. Without `/proc`, the
/// table has only its heading.
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

/// Returns the line of one thread; `None` if it has ended.
fn thread(folder: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let name = read("comm")?;
    // The name may contain any characters, so the fields are searched from the end.
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

/// Runs a future to its end on a tokio runtime of the current thread.
pub(crate) fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_unpark(|| {
            colocated::yield_if_needed();
        })
        .build_local(tokio::runtime::LocalOptions::default())?;
    Ok(runtime.block_on(future))
}
