//! Publishes sources in this process to subjects of the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use fanline::{Guard, Observer};
use fanline_engine::Filter;
use futures_core::Stream;
use tokio::sync::oneshot;

use super::codec::{Draft, Encode, PANICKED};
use super::connection::{Connection, Inner};
use super::fault::{BridgeError, Fault};
use super::receivers::ReceiverSet;
use crate::client::subject::{check_filter, check_subject};
use crate::client::{ClientError, Message, Outgoing, OutgoingMessage, ServerInfo};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The values of a slice or a stream are encoded into a buffer. When the buffer contains this number of
/// bytes, it is sent.
const BATCH_BYTES: usize = 32 * 1024;

/// What a source's emitter does while the server accepts less than the source emits, because a subscriber or
/// the machine is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The emitter waits, as for any other observer. The server delays publishers by a few milliseconds at a
    /// time, and drops a subscriber that does not catch up.
    #[default]
    Wait,
    /// The emitter continues. Values that do not fit are not sent to the server, only to observers in this
    /// process. [`Binding::dropped`] counts these values.
    Drop,
}

/// A source that is bound to a subject. Dropping the binding ends the publishing.
#[must_use = "dropping a binding unbinds; call `detach` to keep it for as long as its source"]
#[derive(Debug)]
pub struct Binding {
    guard: Guard,
    counts: Arc<Counts>,
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Counts {
    published: AtomicU64,
    dropped: AtomicU64,
    is_over: AtomicBool,
}

impl Binding {
    /// Returns the number of values sent to the server. A source that is bound to one subject sends no values
    /// while the subject has no subscribers.
    pub fn published(&self) -> u64 {
        // Relaxed, because the count is for reports only.
        self.counts.published.load(Ordering::Relaxed)
    }

    /// Returns the number of values that were skipped because of [`WhenFull::Drop`] or a [`Fault`].
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Returns whether no more values are published, because the source has ended or the bridge is closed.
    pub fn is_closed(&self) -> bool {
        let is_over = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_over(&self.counts.is_over) || is_over(&self.inner.is_over) || self.guard.is_closed()
    }

    /// Ends the binding, as dropping it does.
    pub fn unbind(self) {
        drop(self);
    }

    /// Keeps the binding until its source ends.
    pub fn detach(self) {
        self.guard.detach();
    }
}

/// An observer that publishes the values of a source.
pub(super) struct Publisher<C> {
    connection: Arc<Connection>,
    /// The binding's subject or filter, validated.
    bound_to: String,
    is_literal: bool,
    codec: C,
    when_full: WhenFull,
    draft: Draft,
    /// The subject of the last message, with its receivers. The next message nearly always has the same
    /// subject.
    memo: Memo,
    remote_interest: RemoteInterest,
    info: Arc<ServerInfo>,
    /// The number of INFO changes that the memo has seen.
    info_changes: u64,
    /// Encoded messages that are not sent yet. `messages` is their number.
    encoded: BytesMut,
    messages: u64,
    /// Whether receivers in this process match the last message.
    has_receivers: bool,
    /// Whether the last send found no room.
    was_full: bool,
    counts: Arc<Counts>,
}

/// Whether the server has subscribers for the binding's one subject.
struct RemoteInterest {
    /// The generation of subscriptions for which `answer` is valid.
    generation: u64,
    answer: Answer,
}

enum Answer {
    Unasked,
    Asked(oneshot::Receiver<bool>),
    Known(bool),
}

struct Memo {
    subject: Arc<str>,
    receivers: ReceiverSet,
    generation: u64,
}

impl<C> Publisher<C> {
    pub(super) fn new(
        connection: Arc<Connection>,
        bound_to: &str,
        codec: C,
        when_full: WhenFull,
    ) -> Result<Self, BridgeError> {
        check_filter(bound_to)?;
        let filter = Filter::parse(bound_to.as_bytes());
        let is_literal = filter.is_ok_and(|filter| filter.is_literal());
        let client = &connection.inner.client;
        if let Some(reason) = client.disconnect() {
            return Err(ClientError::Disconnected(reason).into());
        }
        // Read the count of INFO changes before the INFO. If the INFO changes between the two reads, the
        // count is too low, and the next value causes another read.
        let info_changes = client.server_info_changes();
        Ok(Publisher {
            info: client.server_info(),
            info_changes,
            bound_to: bound_to.to_owned(),
            is_literal,
            codec,
            when_full,
            draft: Draft::default(),
            remote_interest: RemoteInterest {
                generation: u64::MAX,
                answer: Answer::Unasked,
            },
            memo: Memo {
                subject: Arc::from(if is_literal { bound_to } else { "" }),
                receivers: Arc::from([]),
                generation: u64::MAX,
            },
            encoded: BytesMut::new(),
            messages: 0,
            has_receivers: false,
            was_full: false,
            counts: Arc::default(),
            connection,
        })
    }

    /// Returns a function that turns the guard of the source's subscription into a binding.
    pub(super) fn binding(&self) -> impl FnOnce(Guard) -> Binding + use<C> {
        let (counts, inner) = (Arc::clone(&self.counts), Arc::clone(&self.connection.inner));
        move |guard| Binding {
            guard,
            counts,
            inner,
        }
    }

    fn inner(&self) -> &Inner {
        &self.connection.inner
    }

    /// Encodes a value, and looks up receivers in this process.
    fn add<T>(&mut self, value: &T)
    where
        C: Encode<T>,
    {
        self.draft.clear();
        // A panic skips only this value, like an error.
        let (codec, draft) = (&mut self.codec, &mut self.draft);
        let written = catch_unwind(AssertUnwindSafe(|| codec.encode(value, draft)));
        if let Err(reason) = written.unwrap_or_else(|_| Err(PANICKED.into())) {
            return self.leave_out(Fault::Encode {
                subject: self.bound_to.clone(),
                reason: reason.to_string(),
            });
        }
        if !self.find_subject() {
            let (subject, bound_to) = (self.draft.subject.clone(), self.bound_to.clone());
            return self.leave_out(Fault::Subject { subject, bound_to });
        }
        let headers = &self.draft.headers;
        let message = Outgoing {
            subject: &self.memo.subject,
            reply: self.draft.reply.as_deref(),
            headers: (!headers.is_empty()).then_some(headers),
            payload: self.draft.content(),
        };
        let refused = self.inner().check(&message, &self.info).err();
        let reply_is_wrong = message
            .reply
            .is_some_and(|reply| check_subject(reply).is_err());
        if refused.is_some() || reply_is_wrong {
            let reason =
                refused.map_or_else(|| "the reply is no subject".into(), |e| e.to_string());
            let subject = self.memo.subject.to_string();
            return self.leave_out(Fault::Encode { subject, reason });
        }
        message.encode(&mut self.encoded);
        self.messages += 1;
        if self.connection.inner.is_direct {
            self.look_up_receivers();
        }
    }

    /// Updates `memo`, which contains the last subject and its receivers, to the draft's subject. Returns
    /// false if the subject is not permitted.
    fn find_subject(&mut self) -> bool {
        let subject = match self.is_literal {
            true => &self.bound_to,
            false => &self.draft.subject,
        };
        if *self.memo.subject == **subject {
            // The memo's subject is empty only before the first message. An empty subject is invalid.
            return !subject.is_empty();
        }
        let filter = Filter::parse(self.bound_to.as_bytes());
        let fits = filter.is_ok_and(|filter| filter.matches(subject.as_bytes()));
        if !fits || check_subject(subject).is_err() {
            return false;
        }
        self.memo.subject = Arc::from(subject.as_str());
        self.memo.generation = u64::MAX;
        true
    }

    /// Returns whether the subject has no subscribers, so that values need not be encoded. The server changes
    /// the generation of subscriptions before it confirms a subscription. So a subscriber misses no value
    /// that is published after the confirmation.
    #[inline]
    fn has_no_subscribers(&mut self) -> bool {
        let inner = &self.connection.inner;
        if !self.is_literal || !inner.is_direct || inner.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let generation = inner.interest.generation();
        if self.remote_interest.generation == generation
            && let Answer::Known(is_wanted) = self.remote_interest.answer
        {
            return !is_wanted && !self.has_receivers_in_process();
        }
        self.query_interest(generation);
        false
    }

    /// Sends a query to the server, or reads its answer.
    #[cold]
    fn query_interest(&mut self, generation: u64) {
        if self.remote_interest.generation != generation {
            self.remote_interest.generation = generation;
            self.remote_interest.answer = Answer::Unasked;
        }
        self.remote_interest.answer = match &mut self.remote_interest.answer {
            Answer::Unasked => {
                Answer::Asked(self.connection.inner.interest.ask(&self.memo.subject))
            }
            Answer::Asked(answer) => match answer.try_recv() {
                Ok(is_wanted) => Answer::Known(is_wanted),
                Err(oneshot::error::TryRecvError::Empty) => return,
                // The server has stopped. The following publish reports this.
                Err(oneshot::error::TryRecvError::Closed) => Answer::Known(true),
            },
            Answer::Known(_) => return,
        };
    }

    fn has_receivers_in_process(&mut self) -> bool {
        self.look_up_receivers();
        std::mem::take(&mut self.has_receivers)
    }

    /// Looks up the receivers of the subject in this process.
    fn look_up_receivers(&mut self) {
        let generation = self.inner().receivers.generation();
        if self.memo.generation != generation {
            self.memo.receivers = self.inner().receivers.matching(&self.memo.subject);
            self.memo.generation = generation;
        }
        self.has_receivers = !self.memo.receivers.is_empty();
    }

    /// Calls the receivers of the last message in this process. The message was sent to the server before
    /// these calls. So if a receiver publishes another message now, every subscriber receives that message
    /// after this one.
    fn deliver_in_process(&mut self) {
        if !std::mem::take(&mut self.has_receivers) {
            return;
        }
        let message = in_process(&self.memo.subject, &mut self.draft);
        for receiver in self.memo.receivers.iter() {
            receiver.receive(&message);
        }
    }

    /// Sends the encoded messages.
    fn send_encoded(&mut self) {
        if self.encoded.is_empty() {
            return;
        }
        let waits = self.when_full == WhenFull::Wait;
        let outcome = self.connection.inner.send(&self.encoded, waits);
        self.note(outcome);
    }

    /// Records the result of a send.
    fn note(&mut self, outcome: Result<bool, ClientError>) {
        self.encoded.clear();
        let messages = std::mem::take(&mut self.messages);
        let is_full = matches!(outcome, Ok(false));
        match outcome {
            Ok(true) => drop(self.counts.published.fetch_add(messages, Ordering::Relaxed)),
            Ok(false) => drop(self.counts.dropped.fetch_add(messages, Ordering::Relaxed)),
            // The bridge reports the error.
            Err(_) => self.counts.is_over.store(true, Ordering::Relaxed),
        }
        if is_full && !self.was_full {
            let bound_to = self.bound_to.clone();
            self.inner().report(Fault::Full { bound_to });
        }
        self.was_full = is_full;
    }

    fn leave_out(&mut self, fault: Fault) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        self.inner().report(fault);
    }

    fn begin(&mut self) {
        // A reload may have changed permissions.
        let changes = self.inner().client.server_info_changes();
        if self.info_changes != changes {
            self.info_changes = changes;
            self.info = self.inner().client.server_info();
        }
    }

    /// Publishes a stream's values as fast as the server accepts them. While the server accepts none, the
    /// stream and its producer wait.
    pub(super) async fn pump<S>(mut self, stream: S)
    where
        S: Stream,
        C: Encode<S::Item>,
    {
        let mut stream = pin!(stream);
        loop {
            let has_some = !self.encoded.is_empty();
            let next =
                std::future::poll_fn(|context| poll_step(stream.as_mut(), context, has_some));
            let is_last = match next.await {
                Step::Value(value) => {
                    self.add(&value);
                    if !self.has_receivers && self.encoded.len() < BATCH_BYTES {
                        continue;
                    }
                    false
                }
                Step::Pause => false,
                Step::End => true,
            };
            let sent = self.connection.inner.client.send(&self.encoded).await;
            self.note(sent.map(|()| true));
            self.deliver_in_process();
            if is_last || self.counts.is_over.load(Ordering::Relaxed) {
                break;
            }
            self.begin();
        }
    }
}

/// Marks the binding as ended when the source has ended, perhaps by a panic of the stream.
impl<C> Drop for Publisher<C> {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
    }
}

enum Step<T> {
    Value(T),
    /// No value is ready, so encoded messages are sent now.
    Pause,
    End,
}

fn poll_step<S: Stream>(
    stream: Pin<&mut S>,
    context: &mut Context<'_>,
    has_some: bool,
) -> Poll<Step<S::Item>> {
    match stream.poll_next(context) {
        Poll::Ready(Some(value)) => Poll::Ready(Step::Value(value)),
        Poll::Ready(None) => Poll::Ready(Step::End),
        Poll::Pending if has_some => Poll::Ready(Step::Pause),
        Poll::Pending => Poll::Pending,
    }
}

impl<T, E, C: Encode<T>> Observer<T, E> for Publisher<C> {
    fn next(&mut self, value: &T) {
        if self.has_no_subscribers() {
            return;
        }
        self.begin();
        self.add(value);
        self.send_encoded();
        self.deliver_in_process();
    }

    fn next_slice(&mut self, values: &[T]) {
        if self.has_no_subscribers() {
            return;
        }
        self.begin();
        for value in values {
            self.add(value);
            if self.has_receivers || self.encoded.len() >= BATCH_BYTES {
                self.send_encoded();
                self.deliver_in_process();
            }
        }
        self.send_encoded();
    }

    fn error(&mut self, _error: &E) {}

    fn complete(&mut self) {}

    fn is_closed(&self) -> bool {
        self.counts.is_over.load(Ordering::Relaxed)
    }
}

/// Returns a draft as a message for receivers in this process.
fn in_process(subject: &Arc<str>, draft: &mut Draft) -> Message {
    let subject_bytes = u32::try_from(subject.len()).unwrap_or(u32::MAX);
    let names = match &draft.reply {
        None => Arc::clone(subject),
        Some(reply) => Arc::from([subject, reply.as_str()].concat()),
    };
    let headers = (!draft.headers.is_empty()).then(|| draft.headers.clone());
    Message::in_process(names, subject_bytes, headers, draft.share_content())
}

/// Publishes one message.
pub(super) fn publish(
    connection: &Arc<Connection>,
    message: OutgoingMessage,
) -> Result<(), BridgeError> {
    let OutgoingMessage {
        subject,
        reply,
        headers,
        payload,
    } = message;
    check_subject(&subject)?;
    reply.as_deref().map_or(Ok(()), check_subject)?;
    let inner = &connection.inner;
    let outgoing = Outgoing {
        subject: &subject,
        reply: reply.as_deref(),
        headers: (!headers.is_empty()).then_some(&headers),
        payload: &payload,
    };
    inner.check(&outgoing, &inner.client.server_info())?;
    let mut encoded = BytesMut::new();
    outgoing.encode(&mut encoded);
    if !inner.send(&encoded, true)? {
        let bound_to = subject.clone();
        inner.report(Fault::Full { bound_to });
    }
    if inner.is_direct {
        let subject: Arc<str> = Arc::from(subject);
        let receivers = inner.receivers.matching(&subject);
        if !receivers.is_empty() {
            let mut draft = Draft::default();
            (draft.reply, draft.headers) = (reply, headers);
            draft.share(payload);
            let message = in_process(&subject, &mut draft);
            receivers.iter().for_each(|one| one.receive(&message));
        }
    }
    Ok(())
}
