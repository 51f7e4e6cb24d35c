//! The tail of a log. A late viewer sees the last lines first, and then every new line.
//!
//! ```sh
//! cargo run -p fanline --example log_tail
//! ```
//!
//! Several threads write, so this uses a shared subject: any thread may emit, and all viewers see the lines
//! in one order. Lines are passed by reference; a viewer that stores one clones an `Arc`.

use std::sync::{Arc, Mutex};
use std::thread;

use fanline::prelude::*;
use fanline::stream::{Bounded, Lagged};
use fanline::{Replay, ReplaySubject};

const TAIL_LINES: usize = 3;

type Line = Arc<str>;

/// The lines that a viewer shows.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<Line>>>);

impl Screen {
    fn show(&self, line: &Line) {
        self.0
            .lock()
            .expect("no thread panics with the lock")
            .push(line.clone());
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().expect("no thread panics with the lock");
        lines.iter().map(ToString::to_string).collect()
    }
}

fn open(log: &ReplaySubject<Line>) -> (Screen, Guard) {
    let screen = Screen::default();
    let (shown, closed) = (screen.clone(), screen.clone());
    let guard = log.subscribe_with(
        observer(move |line| shown.show(line))
            .on_complete(move || closed.show(&"-- end --".into())),
    );
    (screen, guard)
}

fn main() {
    let log = ReplaySubject::<Line>::new(Replay::many(TAIL_LINES));
    let write = |line: &str| log.next(line.into());

    let (from_the_start, _guard) = open(&log);
    for line in ["boot", "disk found", "network up", "ERROR no clock"] {
        write(line);
    }

    // A late viewer. It has the last three lines when `open` returns, and live lines follow.
    let (late, _guard) = open(&log);
    assert_eq!(late.lines(), ["disk found", "network up", "ERROR no clock"]);

    // A viewer with a filter also gets the last lines filtered, because operators treat old and new lines the
    // same.
    let errors = Screen::default();
    let shown = errors.clone();
    let _guard = log
        .source()
        .filter(|line: &Line| line.starts_with("ERROR"))
        .subscribe_with(observer(move |line| shown.show(line)));

    // A slow remote viewer: its queue holds two lines, drops older ones, and reports how many were lost.
    let remote = log
        .source()
        .into_stream(Bounded::drop_oldest(2).report_lag());

    // Two threads write at once. The order of their lines is not determined, but it is the same for all
    // viewers.
    thread::scope(|scope| {
        for name in ["web", "db"] {
            let log = log.clone();
            scope.spawn(move || {
                for n in 0..2 {
                    log.next(format!("ERROR {name} {n}").into());
                }
            });
        }
    });
    log.complete();

    let everything = from_the_start.lines();
    assert_eq!(everything.len(), 4 + 4 + 1);
    assert_eq!(late.lines(), everything[1..]);
    assert_eq!(errors.lines().len(), 5);

    let received: Vec<Result<Line, Lagged>> = remote.blocking_iter().collect();
    assert_eq!(received.len(), 3);
    // The queue got seven lines: the last three stored ones, and four live ones. It still held two, so it had
    // dropped five.
    assert_eq!(received[0], Err(Lagged(5)));

    // After the end, a new viewer still gets the last lines, followed by the end.
    let (post_mortem, _guard) = open(&log);
    assert_eq!(post_mortem.lines(), everything[5..]);
    println!(
        "the first, the late, and the last viewer agree on {} lines",
        everything.len()
    );
}
