//! Long answers come in pages.

use serde::{Deserialize, Serialize};

/// Most names of one page.
pub(super) const NAMES_MAX: usize = 1024;
/// Most streams or consumers of one page.
pub(super) const INFOS_MAX: usize = 256;

/// Which page is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageRequest {
    pub(super) offset: i64,
    /// Only streams that hold it.
    pub(super) subject: String,
}

/// Which page an answer is.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Page {
    total: usize,
    offset: usize,
    limit: usize,
}

impl Page {
    /// A page of so many.
    pub(super) fn new(total: usize, offset: i64, limit: usize) -> Page {
        let offset = usize::try_from(offset.max(0)).unwrap_or(usize::MAX);
        Page {
            total,
            offset: offset.min(total),
            limit,
        }
    }

    /// The same with the offset as it was asked for, even beyond the end.
    pub(super) fn at(total: usize, offset: i64, limit: usize) -> Page {
        let offset = usize::try_from(offset.max(0)).unwrap_or(usize::MAX);
        Page {
            total,
            offset,
            limit,
        }
    }

    /// What of all belongs to it.
    pub(super) fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let rest = &all[self.offset.min(all.len())..];
        &rest[..rest.len().min(self.limit)]
    }
}
