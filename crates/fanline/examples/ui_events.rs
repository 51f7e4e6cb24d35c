//! User interface events. Worker threads send events to the thread that owns the widgets.
//!
//! ```sh
//! cargo run -p fanline --example ui_events
//! ```
//!
//! A toolkit has its own loop on the main thread, and widgets that must not leave that thread. So the loop
//! drives a manual `EventLoop`. All observers on it run on that thread, and closures passed to
//! `subscribe_local` may hold an `Rc` to a widget.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use fanline::operators::Edge;
use fanline::scheduler::{EventLoop, LoopDriver, ThreadPool};
use fanline::{CombineExt, ObservableExt, Scheduler, Subject, TimeExt};

/// The contents of the window.
#[derive(Default)]
struct Window {
    results: String,
    percent: u32,
    redraws: u32,
}

/// The toolkit's loop: runs pending actions, then sleeps until it is woken or an action is due.
fn run_until(done: impl Fn() -> bool, ui: &EventLoop, driver: &mut LoopDriver) {
    while !done() {
        match driver.run_pending() {
            _ if done() => break,
            Some(due) => thread::park_timeout(due.since(ui.now())),
            None => thread::park(),
        }
    }
}

/// A slow function, which runs on the pool.
fn search(text: &str) -> String {
    format!("3 results for {text}")
}

fn main() {
    let main_thread = thread::current();
    // The thread that schedules an action calls this closure. If it calls `unpark` before the loop parks,
    // `park` returns at once, so no wake-up is lost.
    let (ui, mut driver) = EventLoop::manual(move || main_thread.unpark());
    let pool = ThreadPool::new(2);
    let window = Rc::new(RefCell::new(Window::default()));

    // The text field. A search starts on the pool after a pause in typing. The result of an outdated search
    // is not shown.
    let typed = Subject::<String>::new();
    let results = window.clone();
    let typing = typed
        .source()
        .debounce_on(Duration::from_millis(20), ui.clone())
        .switch_map(move |text: &String| {
            let text = text.clone();
            fanline::defer(move || fanline::of(search(&text))).subscribe_on(pool.clone())
        })
        .observe_on(ui.clone())
        .subscribe_local(move |found: &String| results.borrow_mut().results = found.clone());

    // The progress bar. The worker reports more often than the screen can show, so one report per 10 ms
    // passes, and always the last one.
    let progress = Subject::<u32>::new();
    let bar = window.clone();
    let loading = progress
        .source()
        .throttle_on(Duration::from_millis(10), Edge::Both, ui.clone())
        .observe_on(ui.clone())
        .subscribe_local(move |percent| {
            let mut window = bar.borrow_mut();
            window.percent = *percent;
            window.redraws += 1;
        });

    let worker = thread::spawn(move || {
        for step in 0..=100_000 {
            progress.next(step / 1_000);
        }
        progress.complete();
    });
    for text in ["f", "fa", "fan", "fanline"] {
        typed.next(text.to_owned());
    }

    let shown = window.clone();
    let done = move || {
        let window = shown.borrow();
        window.percent == 100 && window.results.ends_with("fanline")
    };
    run_until(done, &ui, &mut driver);
    worker.join().expect("the worker panicked");

    // Closing the window drops the closures, and their references to it.
    drop((typing, loading));
    assert!(!typed.has_observers());
    let window = window.borrow();
    assert_eq!(window.results, "3 results for fanline");
    assert!(
        window.redraws < 1_000,
        "fewer redraws than the 100,001 reports"
    );
    println!("{}, {} %", window.results, window.percent);
}
