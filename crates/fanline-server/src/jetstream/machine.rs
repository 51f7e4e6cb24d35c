//! Memory and disk space of the machine, if the operating system reports them.

use std::fs;
use std::path::Path;

/// Returns the machine's memory in bytes.
pub(super) fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the free bytes on the disk of a folder.
pub(super) fn disk_bytes_free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// Formats a number of bytes, such as `17.65 GB`.
pub(super) fn shown(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = UNITS[0];
    // Counts in hundredths, because the result has two decimal places.
    let mut hundredths = u128::from(bytes) * 100 / 1024;
    for larger in &UNITS[1..] {
        if hundredths < 1024 * 100 {
            break;
        }
        (unit, hundredths) = (larger, hundredths / 1024);
    }
    format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1000, "1000 B"),
            (2000, "1.95 KB"),
            (18_956_095_488, "17.65 GB"),
            (1 << 50, "1.00 PB"),
        ] {
            assert_eq!(shown(bytes), expected);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn machine_reports_memory_and_disk() {
        assert!(memory_bytes().is_some_and(|bytes| bytes > 0));
        assert!(disk_bytes_free(Path::new("/")).is_some());
    }
}
