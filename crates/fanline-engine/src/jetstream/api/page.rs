//! Pages of long lists.

use serde::{Deserialize, Serialize};

/// Maximum number of names on a page.
pub(super) const NAMES_MAX: usize = 1024;
/// Maximum number of streams or consumers on a page.
pub(super) const INFOS_MAX: usize = 256;

/// The requested page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageRequest {
    pub(super) offset: i64,
    /// Subject of the streams to list; empty for all streams.
    pub(super) subject: String,
}

/// Position of a page in the whole list.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Page {
    total: usize,
    offset: usize,
    limit: usize,
}

impl Page {
    /// Returns the page at an offset, which is limited to the length of the list.
    pub(super) fn new(total: usize, offset: i64, limit: usize) -> Page {
        let offset = usize::try_from(offset.max(0)).unwrap_or(usize::MAX);
        Page {
            total,
            offset: offset.min(total),
            limit,
        }
    }

    /// Returns the page at an offset, which may be after the end of the list.
    pub(super) fn at(total: usize, offset: i64, limit: usize) -> Page {
        let offset = usize::try_from(offset.max(0)).unwrap_or(usize::MAX);
        Page {
            total,
            offset,
            limit,
        }
    }

    /// Returns the entries on the page.
    pub(super) fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let rest = &all[self.offset.min(all.len())..];
        &rest[..rest.len().min(self.limit)]
    }
}
