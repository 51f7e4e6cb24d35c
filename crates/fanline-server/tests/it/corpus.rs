//! Configurations that a fuzz target starts from, or once failed on, go through its check.

use std::fs;
use std::path::Path;

use crate::server_checks::config::check;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config");
    let entries = fs::read_dir(&folder).expect("the corpus is kept beside the crates");
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("the corpus can be listed").path();
        check(&fs::read(&path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 5, "only {count} inputs");
}
