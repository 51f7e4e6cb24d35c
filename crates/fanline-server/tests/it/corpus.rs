//! Runs the fuzz checks of the server on all inputs of the corpora, and on inputs that once failed.

use std::fs;
use std::path::Path;

use crate::server_checks;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries = fs::read_dir(&folder).expect("the corpus is kept beside the crates");
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("the corpus can be listed").path();
        check(&fs::read(&path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 5, "only {count} inputs for {target}");
}

#[test]
fn config() {
    replay("config", server_checks::config::check);
}

#[test]
fn client() {
    replay("client", server_checks::client::check);
}

#[test]
fn certificate() {
    replay("certificate", server_checks::certificate::check);
}
