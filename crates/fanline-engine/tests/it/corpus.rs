//! Runs each fuzz target's check on its corpus: the initial inputs, and inputs that once failed.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use crate::checks;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries = fs::read_dir(&folder).expect("the corpus exists");
    let mut failed = Vec::new();
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("the corpus can be listed").path();
        let input = fs::read(&path).expect("the corpus can be read");
        if catch_unwind(|| check(&input)).is_err() {
            failed.push(path);
        }
        count += 1;
    }
    assert!(failed.is_empty(), "{failed:?}");
    assert!(count >= 5, "only {count} inputs for {target}");
}

#[test]
fn parser() {
    replay("parser", checks::parser::check);
}

#[test]
fn leaf() {
    replay("leaf", checks::leaf::check);
}

#[test]
fn route() {
    replay("route", checks::route::check);
}

#[test]
fn gateway() {
    replay("gateway", checks::gateway::check);
}

#[test]
fn session() {
    replay("session", checks::session::check);
}

#[test]
fn delivery() {
    replay("delivery", checks::delivery::check);
}

#[test]
fn filter() {
    replay("filter", checks::filter::check);
}

#[test]
fn connect() {
    replay("connect", checks::connect::check);
}

#[test]
fn jwt() {
    replay("jwt", checks::jwt::check);
}

#[test]
fn websocket() {
    replay("websocket", checks::websocket::check);
}

#[test]
fn proxy() {
    replay("proxy", checks::proxy::check);
}

#[test]
fn s2() {
    replay("s2", checks::s2::check);
}

#[test]
fn jetstream() {
    replay("jetstream", checks::jetstream::check);
}

#[test]
fn mqtt() {
    replay("mqtt", checks::mqtt::check);
}

#[test]
fn store() {
    replay("store", checks::store::check);
}

#[test]
fn kept() {
    replay("kept", checks::kept::check);
}

#[test]
fn restore() {
    replay("restore", checks::restore::check);
}

#[test]
fn mqtt_kept() {
    replay("mqtt_kept", checks::mqtt_kept::check);
}
