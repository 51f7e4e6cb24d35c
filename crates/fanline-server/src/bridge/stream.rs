//! What a stream keeps, for observers in this process.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanline::policy::Policy;
use fanline::{OnPanic, Replay, ReplaySubject, Source};
use futures_core::Stream;
use tokio::sync::mpsc;

use super::Bridge;
use super::fault::{BridgeError, Fault};
use super::line::{Inner, Line};
use crate::client::Message;
use crate::client::jetstream::{
    Delivery, JetStream, JetStreamError, Ordered, OrderedOptions, Start, StreamState, Timestamp,
};
use crate::client::subject::check_filter;

/// Records that wait for whoever pulls them, beside those that are on their way to the bridge. More
/// stay in the log.
const RECORDS_AHEAD: usize = 256;
/// A subject that the API listens at.
const ANY_REQUEST: &str = "$JS.API.INFO";
/// How often it is looked whether anybody still wants them.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A stream of the server, as a bridge reads it: [`Bridge::stream`].
#[derive(Debug)]
#[must_use = "nothing is read before `replay` or `records`"]
pub struct BridgedStream {
    bridge: Result<Bridge, BridgeError>,
    name: String,
    filters: Vec<String>,
}

impl BridgedStream {
    pub(super) fn new(bridge: Result<Bridge, BridgeError>, name: &str) -> Self {
        BridgedStream {
            bridge,
            name: name.to_owned(),
            filters: Vec::new(),
        }
    }

    /// Only records whose subject matches; called again, this or that.
    pub fn filter(mut self, filter: &str) -> Self {
        self.filters.push(filter.to_owned());
        self
    }

    /// A replay subject before the log: observers get as many of the records that are kept as `replay`
    /// says, and then those that follow, in order and without a gap.
    ///
    /// What it retains is read from the log once, in the background, and shared by all observers: a
    /// snapshot taken at once may find it on the way. For a window of time the age of a record counts
    /// from when it was stored until it is read, and then anew. With a [`filter`](Self::filter) and a
    /// number, all records of those subjects are read for the last of them; nobody sees the others.
    ///
    /// Reading goes on until the last source and observer are gone, and for a second at most after
    /// that. When it cannot, as when the stream is deleted, the source completes and a [`Fault`] tells
    /// why.
    ///
    /// # Errors
    /// When there is no such stream, no JetStream, or no bridge.
    pub fn replay(self, replay: Replay<impl Policy>) -> Result<Source<Message>, BridgeError> {
        let (line, name, filters) = self.open()?;
        let (values_max, window) = (replay.values_max(), replay.window());
        let stream = name.clone();
        let asking = Arc::clone(&line.inner);
        let (ordered, last_old) = line.inner.call(async move {
            let jetstream = reach(&asking).await?;
            let state = jetstream.stream_info(&name).await?.state.clone();
            let start = match (values_max, window) {
                (Some(0), _) => Start::New,
                (_, Some(window)) => Start::Time(now_less(window)),
                (Some(count), None) if filters.is_empty() => last(&state, count),
                (_, None) => Start::All,
            };
            let ordered = jetstream.ordered(&name, options(filters, start)).await?;
            Ok((ordered, state.last_seq))
        })?;
        let subject = ReplaySubject::new(replay).on_observer_panic(OnPanic::Ignore);
        let source = subject.source();
        let old = Old {
            last_sequence: last_old,
            shown_max: values_max.map_or(u64::MAX, |n| u64::try_from(n).unwrap_or(u64::MAX)),
        };
        let read = read(Arc::clone(&line), ordered, stream, subject, old);
        line.inner.spawn(read);
        Ok(source)
    }

    /// Records to be pulled, from `start` on and without an end: a stream, for asynchronous code and for
    /// hubs. What is not taken stays in the log, so a slow consumer loses nothing and holds up nobody.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn records(self, start: Start) -> Result<Records, BridgeError> {
        let (line, name, filters) = self.open()?;
        let stream = name.clone();
        let asking = Arc::clone(&line.inner);
        let ordered = line.inner.call(async move {
            let jetstream = reach(&asking).await?;
            Ok(jetstream.ordered(&name, options(filters, start)).await?)
        })?;
        let (sender, records) = mpsc::channel(RECORDS_AHEAD);
        line.inner
            .spawn(pull(Arc::clone(&line), ordered, stream, sender));
        Ok(Records { records })
    }

    /// What it was made of, if that can be read.
    fn open(self) -> Result<(Arc<Line>, String, Vec<String>), BridgeError> {
        let line = self.bridge?.line;
        for filter in &self.filters {
            check_filter(filter)?;
        }
        Ok((line, self.name, self.filters))
    }
}

/// JetStream, if anybody serves it. This connection is not told where nobody answers; the server is asked
/// first, so that the answer does not take as long as a request may.
async fn reach(inner: &Inner) -> Result<JetStream, BridgeError> {
    if inner.is_direct {
        let is_served = inner.interest.ask(&Arc::from(ANY_REQUEST)).await;
        // No answer comes from a server that has stopped, and then neither does one to a request.
        if is_served == Ok(false) {
            return Err(JetStreamError::NotEnabled.into());
        }
    }
    Ok(JetStream::new(&inner.client))
}

/// The records that were there when a stream began to be replayed.
struct Old {
    last_sequence: u64,
    /// So many of them, the last ones, are shown.
    shown_max: u64,
}

impl Old {
    /// Whether there are enough to be shown behind a record. What was stored since is always shown.
    fn leaves_out(&self, record: &Delivery) -> bool {
        record.stream_sequence <= self.last_sequence && record.pending >= self.shown_max
    }
}

fn options(filters: Vec<String>, start: Start) -> OrderedOptions {
    OrderedOptions {
        filters,
        start,
        ..OrderedOptions::default()
    }
}

/// Where the last so many records begin, or before that where some were deleted.
fn last(state: &StreamState, count: usize) -> Start {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let from = state
        .last_seq
        .saturating_add(1)
        .saturating_sub(count.saturating_add(state.num_deleted));
    Start::Sequence(from.max(state.first_seq).max(1))
}

fn now_less(window: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let from = now.unwrap_or_default().saturating_sub(window);
    Timestamp::from_unix_nanos(i64::try_from(from.as_nanos()).unwrap_or(i64::MAX))
}

async fn read(
    line: Arc<Line>,
    mut ordered: Ordered,
    stream: String,
    subject: ReplaySubject<Message>,
    old: Old,
) {
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    loop {
        tokio::select! {
            record = ordered.next() => match record {
                Ok(delivery) if old.leaves_out(&delivery) => {}
                Ok(delivery) => subject.next(delivery.message),
                Err(error) => {
                    tell(&line, stream, &error);
                    subject.complete();
                    return;
                }
            },
            _ = look.tick() => if !subject.is_reachable() {
                // The server forgets it anyway.
                let _ = ordered.close().await;
                return;
            },
        }
    }
}

async fn pull(
    line: Arc<Line>,
    mut ordered: Ordered,
    stream: String,
    records: mpsc::Sender<Delivery>,
) {
    loop {
        let record = tokio::select! {
            record = ordered.next() => record,
            () = records.closed() => break,
        };
        match record {
            Ok(delivery) => {
                if records.send(delivery).await.is_err() {
                    break;
                }
            }
            Err(error) => return tell(&line, stream, &error),
        }
    }
    // The server forgets it anyway.
    let _ = ordered.close().await;
}

fn tell(line: &Line, stream: String, error: &JetStreamError) {
    let reason = error.to_string();
    line.inner.tell(Fault::Stream { stream, reason });
}

/// Records of a stream, to be pulled. Dropping it ends the reading.
#[derive(Debug)]
pub struct Records {
    records: mpsc::Receiver<Delivery>,
}

impl Records {
    /// The next record, or `None` when the stream cannot be read any more. Cancel safe.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.records.recv().await
    }

    /// The same, and holds up this thread instead of a task.
    pub fn blocking_next(&mut self) -> Option<Delivery> {
        super::blocking::wait(self.next())
    }
}

impl Stream for Records {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.records.poll_recv(context)
    }
}
