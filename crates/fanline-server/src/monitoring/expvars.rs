//! `EXPVARZ` and `/stacksz`: variables of Go's runtime that have an equivalent here.

use hyper::StatusCode;
use serde::Serialize;

use super::answer::Answer;
use super::process::{self, Memory};
use crate::threads::thread_table;

/// Variables of Go's runtime.
#[derive(Serialize)]
pub(super) struct Variables {
    cmdline: Vec<String>,
    memstats: MemoryStatistics,
}

/// Bytes of memory under the names of Go's `runtime.MemStats`, as counted by Linux.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MemoryStatistics {
    /// Resident memory that is not mapped from a file: the heap and the stacks of threads.
    alloc: u64,
    heap_alloc: u64,
    heap_inuse: u64,
    /// Private writable memory, resident or not.
    heap_sys: u64,
    /// The stack of the main thread.
    stack_inuse: u64,
    stack_sys: u64,
    /// The address space.
    sys: u64,
    /// Always 0, because there is no garbage collector.
    #[serde(rename = "NumGC")]
    num_gc: u64,
    #[serde(rename = "EnableGC")]
    enable_gc: bool,
}

pub(super) fn variables() -> Variables {
    let memory = process::memory();
    Variables {
        // Arguments may contain passwords.
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

/// Returns a table of threads in place of goroutines. It has no call stacks, which need a debugger.
pub(super) fn stacksz() -> Answer {
    Answer {
        status: StatusCode::OK,
        content_type: "text/plain; charset=utf-8",
        body: thread_table(),
    }
}
