//! Runs the fuzz checks of the crate on their corpora: the initial inputs, and inputs that once failed.

use std::fs;
use std::path::Path;

use crate::consensus_checks;

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut count = 0;
    for entry in fs::read_dir(corpus.join(target)).expect("the corpus exists") {
        let path = entry.expect("the corpus can be listed").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 5, "only {count} inputs");
}

#[test]
fn wal() {
    replay("wal", consensus_checks::wal::check);
}

#[test]
fn entries() {
    replay("entries", consensus_checks::entries::check);
}
