//! The tail of a log: who opens it late is shown the last lines, and then what is written.
//!
//! ```sh
//! cargo run -p fanline --example log_tail
//! ```
//!
//! Several threads write, so it is a shared subject: any thread may emit, and all viewers see the lines
//! in one order. Lines are passed on by reference; a viewer that wants to keep one clones an `Arc`.

use std::sync::{Arc, Mutex};
use std::thread;

use fanline::prelude::*;
use fanline::stream::{Bounded, Lagged};
use fanline::{Replay, ReplaySubject};

const TAIL_LINES: usize = 3;

type Line = Arc<str>;

/// What somebody has on the screen.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<Line>>>);

impl Screen {
    fn show(&self, line: &Line) {
        self.0
            .lock()
            .expect("nobody panics with it")
            .push(line.clone());
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().expect("nobody panics with it");
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

    // Late: the last three lines are there when `open` returns, and live ones follow.
    let (late, _guard) = open(&log);
    assert_eq!(late.lines(), ["disk found", "network up", "ERROR no clock"]);

    // A viewer that looks for something sees the tail filtered as well: operators do not care whether
    // a line is old or new.
    let errors = Screen::default();
    let shown = errors.clone();
    let _guard = log
        .source()
        .filter(|line: &Line| line.starts_with("ERROR"))
        .subscribe_with(observer(move |line| shown.show(line)));

    // Somebody far away who reads slowly: two lines wait for him, older ones give way, and he is told
    // how many he missed.
    let far_away = log
        .source()
        .into_stream(Bounded::drop_oldest(2).report_lag());

    // Two threads write at once. Nobody knows in which order their lines come, but it is one order.
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

    let received: Vec<Result<Line, Lagged>> = far_away.blocking_iter().collect();
    assert_eq!(received.len(), 3);
    // The tail of three and four live lines, of which two were kept.
    assert_eq!(received[0], Err(Lagged(5)));

    // After the end the tail stays, with the end behind it.
    let (post_mortem, _guard) = open(&log);
    assert_eq!(post_mortem.lines(), everything[5..]);
    println!(
        "viewers that came first, late and last agree on {} lines",
        everything.len()
    );
}
