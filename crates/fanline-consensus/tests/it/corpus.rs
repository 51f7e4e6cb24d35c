//! Runs the fuzz check of the write-ahead log on its corpus: the initial inputs, and inputs that once failed.

use std::fs;
use std::path::Path;

use crate::consensus_checks;

#[test]
fn wal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wal");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus exists") {
        let path = entry.expect("the corpus can be listed").path();
        println!("{}", path.display());
        consensus_checks::wal::check(&fs::read(&path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 5, "only {count} inputs");
}
