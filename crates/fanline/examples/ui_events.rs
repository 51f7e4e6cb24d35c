//! Events of a user interface: worker threads bring theirs to the thread that owns the widgets.
//!
//! ```sh
//! cargo run -p fanline --example ui_events
//! ```
//!
//! A toolkit has a loop of its own on the main thread, and widgets that must not leave that thread. So
//! the loop drives a manual `EventLoop`: everything that is observed on it runs there, and closures
//! that are subscribed with `subscribe_local` may hold an `Rc` to a widget.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use fanline::operators::Edge;
use fanline::scheduler::{EventLoop, LoopDriver, ThreadPool};
use fanline::{ObservableExt, Scheduler, Subject};

/// What is on the screen.
#[derive(Default)]
struct Window {
    results: String,
    percent: u32,
    redraws: u32,
}

/// The toolkit's loop: runs what there is to do, then sleeps until it is woken or something is due.
fn run_until(done: impl Fn() -> bool, ui: &EventLoop, driver: &mut LoopDriver) {
    while !done() {
        match driver.run_pending() {
            _ if done() => break,
            Some(due) => thread::park_timeout(due.since(ui.now())),
            None => thread::park(),
        }
    }
}

/// Takes a while, so it runs on the pool.
fn search(text: &str) -> String {
    format!("3 results for {text}")
}

fn main() {
    let main_thread = thread::current();
    // Called by whoever has something for the loop. A wake that comes before the loop sleeps is not
    // lost: the thread then does not sleep.
    let (ui, mut driver) = EventLoop::manual(move || main_thread.unpark());
    let pool = ThreadPool::new(2);
    let window = Rc::new(RefCell::new(Window::default()));

    // The text field. Searching begins when nothing was typed for a moment, on the pool; a search that
    // is out of date when it is done is not shown.
    let typed = Subject::<String>::new();
    let results = window.clone();
    let typing = typed
        .source()
        .debounce(Duration::from_millis(20), ui.clone())
        .switch_map(move |text: &String| {
            let text = text.clone();
            fanline::defer(move || fanline::of(search(&text))).subscribe_on(pool.clone())
        })
        .observe_on(ui.clone())
        .subscribe_local(move |found: &String| results.borrow_mut().results = found.clone());

    // The progress bar. A worker reports far more often than anybody can see: one report in 10 ms is
    // let through, and the last one always is.
    let progress = Subject::<u32>::new();
    let bar = window.clone();
    let loading = progress
        .source()
        .throttle(Duration::from_millis(10), Edge::Both, ui.clone())
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
    worker.join().expect("the worker does not panic");

    // Closing the window: the closures go, and their hold on it.
    drop((typing, loading));
    assert!(!typed.has_observers());
    let window = window.borrow();
    assert_eq!(window.results, "3 results for fanline");
    assert!(
        window.redraws < 1_000,
        "not one for each of 100,001 reports"
    );
    println!("{}, {} %", window.results, window.percent);
}
