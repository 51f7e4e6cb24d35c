//! What nats-server tells of Go's runtime, as far as a process without one has it.

use hyper::StatusCode;
use serde::Serialize;

use super::answer::Answer;
use super::process::{self, Memory};
use crate::threads::thread_table;

/// The variables that Go's runtime publishes.
#[derive(Serialize)]
pub(super) struct Variables {
    cmdline: Vec<String>,
    memstats: MemoryStatistics,
}

/// Bytes of memory under the names of Go's `runtime.MemStats`, as Linux counts them.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MemoryStatistics {
    /// Memory without a file behind it that has been touched: the heap and the stacks of threads.
    alloc: u64,
    heap_alloc: u64,
    heap_inuse: u64,
    /// The same, and what has not been touched.
    heap_sys: u64,
    /// The stack of the main thread.
    stack_inuse: u64,
    stack_sys: u64,
    /// The address space.
    sys: u64,
    /// There is no garbage collector.
    #[serde(rename = "NumGC")]
    num_gc: u64,
    #[serde(rename = "EnableGC")]
    enable_gc: bool,
}

pub(super) fn variables() -> Variables {
    let memory = process::memory();
    Variables {
        // Arguments may be passwords.
        cmdline: std::env::args().take(1).collect(),
        memstats: MemoryStatistics::of(&memory),
    }
}

impl MemoryStatistics {
    fn of(memory: &Memory) -> Self {
        MemoryStatistics {
            alloc: memory.anonymous_bytes,
            heap_alloc: memory.anonymous_bytes,
            heap_inuse: memory.anonymous_bytes,
            heap_sys: memory.data_bytes,
            stack_inuse: memory.stack_bytes,
            stack_sys: memory.stack_bytes,
            sys: memory.virtual_bytes,
            num_gc: 0,
            enable_gc: false,
        }
    }
}

/// Threads in place of goroutines. What they have called, a debugger shows.
pub(super) fn stacksz() -> Answer {
    Answer {
        status: StatusCode::OK,
        content_type: "text/plain; charset=utf-8",
        body: thread_table(),
    }
}
