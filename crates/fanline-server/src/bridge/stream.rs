//! Reads JetStream streams of the server, for observers in this process.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanline::policy::Policy;
use fanline::{OnPanic, Replay, ReplaySubject, Source};
use futures_core::Stream;
use tokio::sync::mpsc;

use super::Bridge;
use super::connection::{Connection, Inner};
use super::fault::{BridgeError, Fault};
use crate::client::Message;
use crate::client::jetstream::{
    Delivery, JetStream, JetStreamError, Ordered, OrderedOptions, Start, StreamState, Timestamp,
};
use crate::client::subject::check_filter;

/// Number of messages that are buffered for a consumer, in addition to messages in flight. Further messages
/// stay in the log.
const RECORDS_AHEAD: usize = 256;
/// A subject of the JetStream API, to query whether JetStream is available.
const ANY_REQUEST: &str = "$JS.API.INFO";
/// Interval of checks whether the source is still in use.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A stream of the server: [`Bridge::stream`].
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

    /// Selects only messages whose subject matches. Several filters are combined by OR.
    pub fn filter(mut self, filter: &str) -> Self {
        self.filters.push(filter.to_owned());
        self
    }

    /// Returns a source that replays the log. Observers receive as many stored messages as `replay`
    /// specifies, and then all later messages, in order and without a gap.
    ///
    /// Stored messages are read once, in the background, and shared by all observers. An early snapshot may
    /// therefore be incomplete. For a time window, messages that are older than the window are not read. A
    /// message that is read stays available for the whole length of the window, counted from the time of
    /// reading. With a [`filter`](Self::filter) and a number of messages, all messages of these subjects are
    /// read to find the last ones, but observers receive only the last ones.
    ///
    /// Reading ends at most a second after the last source and observer are dropped. If reading fails, for
    /// instance because the stream is deleted, the source completes and a [`Fault`] reports the reason.
    ///
    /// # Errors
    ///
    /// Fails if the stream, JetStream, or the bridge is not available.
    pub fn replay(self, replay: Replay<impl Policy>) -> Result<Source<Message>, BridgeError> {
        let (connection, name, filters) = self.open()?;
        let (values_max, window) = (replay.values_max(), replay.window());
        let stream = name.clone();
        let asking = Arc::clone(&connection.inner);
        let (ordered, last_old) = connection.inner.call(async move {
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
        let read = read(Arc::clone(&connection), ordered, stream, subject, old);
        connection.inner.spawn(read);
        Ok(source)
    }

    /// Returns stored messages from `start` on as an endless stream, for asynchronous code and for hubs.
    /// Unread messages stay in the log, so a slow consumer loses no messages and delays no other client.
    ///
    /// # Errors
    ///
    /// Fails like [`replay`](Self::replay).
    pub fn records(self, start: Start) -> Result<Records, BridgeError> {
        let (connection, name, filters) = self.open()?;
        let stream = name.clone();
        let asking = Arc::clone(&connection.inner);
        let ordered = connection.inner.call(async move {
            let jetstream = reach(&asking).await?;
            Ok(jetstream.ordered(&name, options(filters, start)).await?)
        })?;
        let (sender, records) = mpsc::channel(RECORDS_AHEAD);
        connection
            .inner
            .spawn(pull(Arc::clone(&connection), ordered, stream, sender));
        Ok(Records { records })
    }

    /// Returns the bridge, the name, and the filters.
    fn open(self) -> Result<(Arc<Connection>, String, Vec<String>), BridgeError> {
        let connection = self.bridge?.connection;
        for filter in &self.filters {
            check_filter(filter)?;
        }
        Ok((connection, self.name, self.filters))
    }
}

/// Returns JetStream, if the server has it. The server does not report missing responders to this connection,
/// so a request without JetStream would wait for its full timeout. Therefore this function first queries
/// whether the JetStream API has subscribers.
async fn reach(inner: &Inner) -> Result<JetStream, BridgeError> {
    if inner.is_direct {
        let is_served = inner.interest.ask(&Arc::from(ANY_REQUEST)).await;
        // If the server has stopped, the query fails, and so does the next request.
        if is_served == Ok(false) {
            return Err(JetStreamError::NotEnabled.into());
        }
    }
    Ok(JetStream::new(&inner.client))
}

/// The messages that were stored before a replay began.
struct Old {
    last_sequence: u64,
    /// The number of most recent messages to replay to observers.
    shown_max: u64,
}

impl Old {
    /// Returns whether a stored message is skipped, because enough stored messages follow it. Messages stored
    /// after the replay began are never skipped.
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

/// Returns a start from which at least the last `count` messages of the stream follow, if the stream has that
/// many.
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
    connection: Arc<Connection>,
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
                    report(&connection, stream, &error);
                    subject.complete();
                    return;
                }
            },
            _ = look.tick() => if !subject.is_reachable() {
                // The server removes the consumer anyway.
                let _ = ordered.close().await;
                return;
            },
        }
    }
}

async fn pull(
    connection: Arc<Connection>,
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
            Err(error) => return report(&connection, stream, &error),
        }
    }
    // The server removes the consumer anyway.
    let _ = ordered.close().await;
}

fn report(connection: &Connection, stream: String, error: &JetStreamError) {
    let reason = error.to_string();
    connection.inner.report(Fault::Stream { stream, reason });
}

/// Messages of a JetStream stream as a `Stream`. Dropping it ends the reading.
#[derive(Debug)]
pub struct Records {
    records: mpsc::Receiver<Delivery>,
}

impl Records {
    /// Waits for the next message. Returns `None` if the stream can no longer be read. Cancel safe.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.records.recv().await
    }

    /// Waits for the next message, and blocks this thread.
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
