//! Inter-shard batches: messages and interest changes, in the order in which the shard decided them. A batch
//! costs one copy and one transfer, whatever it contains.

use std::any::Any;
use std::ops::Range;

use super::message::{Excluded, Message};
use super::remote::{LinkSet, Remote};
use crate::auth::AccountId;
use crate::codec::nats::args::write_args;
use crate::outbox::{Chunk, SHARED_BYTES_MIN};

/// Largest number of times that a message to a queue group is passed on, to another shard or another server, because
/// the group's members have just left.
pub(crate) const HOPS_MAX: u8 = 7;

/// Bits of [`Crossing::hops`] with the number of times that the message was passed on. One more than the maximum fits.
pub(crate) const HOPS: u8 = 0x0f;

/// Bit of [`Crossing::hops`]: the message is for queue groups, and may be passed on to other servers of the cluster.
pub(crate) const MAY_LEAVE: u8 = 0x10;

/// Bit of [`Crossing::hops`]: the message is traced.
pub(crate) const TRACED: u8 = 0x80;

/// Bit of [`Crossing::hops`]: the publisher is an MQTT client of the same account.
pub(crate) const FROM_DEVICE: u8 = 0x40;

/// Bit of [`Crossing::hops`]: the message is for JetStream itself, and came from another server of the cluster.
pub(crate) const FROM_ROUTE: u8 = 0x20;

/// Largest number of bytes that a message's sizes and line ends add to its reply subject, headers, and payload.
const ARGS_BYTES_MAX: usize = 48;

/// A notification between sessions and the JetStream thread. The batch does not know its contents.
pub(crate) trait Notification: Any + Send {
    /// Returns its approximate memory in bytes.
    fn bytes(&self) -> usize;
}

/// Connections and subscriptions of an account on one shard. The connections are those of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountUsage {
    pub(crate) connections: u32,
    pub(crate) leafnodes: u32,
    pub(crate) subscriptions: u32,
}

/// An inter-shard batch: messages and announcements from one shard to another.
#[derive(Default)]
pub struct Batch {
    records: Vec<Record>,
    bytes: Vec<u8>,
    shared: Vec<(Chunk, Range<usize>)>,
    shared_bytes: usize,
    notifications: Vec<Box<dyn Notification>>,
    /// The run that the last entry belongs to, if the next message may continue it.
    run: Option<Run>,
}

/// Successive messages with the same account, subject, and receivers. The first one is a
/// [`Record::Message`], the others are [`Record::Next`].
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// Index of the first message in `records`.
    first: usize,
    /// Offset of its subject in `bytes`, which its head follows.
    start: usize,
    subject: usize,
    head: usize,
}

impl Run {
    fn subject(self) -> Range<usize> {
        self.start..self.start + self.subject
    }

    fn head(self) -> Range<usize> {
        self.subject().end..self.subject().end + self.head
    }
}

/// A read position in a batch. The default is the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchCursor {
    records: usize,
    bytes: usize,
    shared: usize,
    notifications: usize,
    /// The run of the last message.
    run: Run,
}

impl BatchCursor {
    /// Returns where the next `len` bytes are, and moves past them.
    fn take(&mut self, len: usize) -> Range<usize> {
        self.bytes += len;
        self.bytes - len..self.bytes
    }
}

/// The kind of an entry, with the lengths of its parts in the batch's `bytes`, in this order.
enum Record {
    Message(MessageRecord),
    /// Another message of the [`Run`] of the message before it.
    Next(NextRecord),
    Interest {
        from: Remote,
        account: AccountId,
        filter: usize,
        queue: usize,
        weight: u32,
    },
    AccountUsage {
        from: u16,
        account: AccountId,
        usage: AccountUsage,
    },
    /// A notification, which is the next entry of `notifications`.
    Notification,
}

/// The kind of a message entry: the lengths of its parts in `bytes`, in this order, and its properties.
///
/// Few messages exclude their publisher or have a cluster, so these are in `bytes`: they make no other message larger.
struct MessageRecord {
    subject: usize,
    head: usize,
    args: usize,
    /// 0 if the body is the next entry of `shared`.
    body: usize,
    groups: usize,
    account: AccountId,
    reply_bytes: usize,
    header_bytes: usize,
    plain: bool,
    hops: u8,
    links: Option<LinkSet>,
    /// What follows the groups.
    tail: MessageTail,
}

/// What follows the groups of a message entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageTail {
    Nothing,
    /// The [`Excluded`] publisher.
    Excluded,
    /// The length of the cluster's name of [`Crossing::cluster`], and the name.
    Cluster,
}

/// A further message of a run. Only its arguments and its body are in `bytes`.
struct NextRecord {
    args: usize,
    body: usize,
    reply_bytes: usize,
    header_bytes: usize,
}

/// A message from another shard.
pub(crate) struct Crossing<'a> {
    pub(crate) account: AccountId,
    pub(crate) subject: &'a [u8],
    pub(crate) message: Message<'a>,
    /// Whether the message is for all plain subscriptions.
    pub(crate) plain: bool,
    /// Names of the queue groups that the message is for, each followed by a space. Names contain no spaces.
    pub(crate) groups: &'a [u8],
    /// The properties of a message that few messages have, as bits.
    pub(crate) hops: u8,
    /// If `Some`, the message is only for these links to other servers. The receiving shard serves the links,
    /// and its clients do not receive the message.
    pub(crate) links: Option<LinkSet>,
    /// The publisher, if no group may select it.
    pub(crate) excluded: Option<Excluded>,
    /// Cluster of the leaf node that the message comes from. Only links need it, and a message for groups that may be
    /// passed on to them; otherwise it is empty.
    pub(crate) cluster: &'a [u8],
}

impl<'a> Crossing<'a> {
    /// Returns a message for the plain subscriptions of another shard's clients.
    pub(crate) fn plain(
        account: AccountId,
        subject: &'a [u8],
        message: &Message<'a>,
        hops: u8,
    ) -> Self {
        let shared = message.shared.as_ref();
        Crossing {
            account,
            subject,
            message: Message {
                shared: shared.map(|(chunk, range)| (*chunk, range.clone())),
                ..*message
            },
            plain: true,
            groups: b"",
            hops,
            links: None,
            excluded: None,
            cluster: b"",
        }
    }

    /// Returns whether the message goes only to the plain subscriptions of clients, without a trace.
    #[inline]
    pub(crate) fn is_simple(&self) -> bool {
        self.plain && self.hops == 0 && self.links.is_none() && self.groups.is_empty()
    }
}

/// The part of a message that differs from the other messages of its run.
pub(crate) struct Tail<'a> {
    /// The bytes that follow the sid in each delivery.
    pub(crate) bytes: &'a [u8],
    pub(crate) header_bytes: usize,
    /// Size of headers and payload.
    pub(crate) payload_bytes: usize,
}

/// The receivers of a message on another shard.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Whether all plain subscriptions receive it.
    pub(crate) plain: bool,
    /// The groups of which one member receives it, as in [`Crossing::groups`].
    pub(crate) groups: &'a [u8],
    /// The links that receive it, instead of the shard's clients.
    pub(crate) links: Option<LinkSet>,
}

/// The parts of a message for [`Batch::push_unframed`].
pub(crate) struct Unframed<'a> {
    pub(crate) subject: &'a [u8],
    pub(crate) reply: &'a [u8],
    pub(crate) headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// An entry of a batch.
pub(crate) enum BatchEntry<'a> {
    Message(Crossing<'a>),
    Interest {
        from: Remote,
        account: AccountId,
        filter: &'a [u8],
        queue: &'a [u8],
        weight: u32,
    },
    /// The usage of an account with limits on one shard: connections and subscriptions.
    AccountUsage {
        from: u16,
        account: AccountId,
        usage: AccountUsage,
    },
    /// A notification about a session.
    Notification(&'a dyn Notification),
}

impl Batch {
    /// Returns whether the batch has no entries.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the approximate memory of the batch in bytes, including the chunks that it references.
    pub fn bytes(&self) -> usize {
        let notifications_bytes: usize = self
            .notifications
            .iter()
            .map(|notification| notification.bytes())
            .sum();
        self.bytes.len()
            + self.shared_bytes
            + self.records.len() * size_of::<Record>()
            + notifications_bytes
    }

    /// Moves all entries of `other` to the end of this batch. If this batch is empty, the two swap buffers
    /// and nothing is copied.
    pub fn append(&mut self, other: &mut Batch) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        self.run = None;
        other.run = None;
        self.records.append(&mut other.records);
        self.bytes.append(&mut other.bytes);
        self.shared.append(&mut other.shared);
        self.shared_bytes += std::mem::take(&mut other.shared_bytes);
        self.notifications.append(&mut other.notifications);
    }

    /// Removes all entries, and retains enough capacity for a usual batch.
    pub fn clear(&mut self) {
        const KEPT_BYTES: usize = 1024 * 1024;
        self.run = None;
        self.records.clear();
        self.bytes.clear();
        self.shared.clear();
        self.shared_bytes = 0;
        self.notifications.clear();
        self.records.shrink_to(KEPT_BYTES / size_of::<Record>());
        self.bytes.shrink_to(KEPT_BYTES);
    }

    pub(crate) fn push_interest(
        &mut self,
        from: Remote,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
        weight: u32,
    ) {
        self.run = None;
        self.bytes.extend_from_slice(filter);
        self.bytes.extend_from_slice(queue);
        let (filter, queue) = (filter.len(), queue.len());
        self.records.push(Record::Interest {
            from,
            account,
            filter,
            queue,
            weight,
        });
    }

    pub(crate) fn push_usage(&mut self, from: u16, account: AccountId, usage: AccountUsage) {
        self.run = None;
        self.records.push(Record::AccountUsage {
            from,
            account,
            usage,
        });
    }

    pub(crate) fn push_notification(&mut self, notification: impl Notification) {
        self.run = None;
        self.records.push(Record::Notification);
        self.notifications.push(Box::new(notification));
    }

    pub(crate) fn push_message(&mut self, crossing: &Crossing<'_>) {
        let message = &crossing.message;
        let is_usual = crossing.excluded.is_none() && crossing.cluster.is_empty();
        let may_run = crossing.is_simple() && is_usual;
        self.run = may_run.then_some(Run {
            first: self.records.len(),
            start: self.bytes.len(),
            subject: crossing.subject.len(),
            head: message.head.len(),
        });
        self.bytes.extend_from_slice(crossing.subject);
        self.bytes.extend_from_slice(message.head);
        self.bytes.extend_from_slice(message.args);
        let mut body = message.body.len();
        if let Some((chunk, range)) = &message.shared {
            // A reference keeps the whole chunk alive. Consecutive references to one chunk count once.
            if !self
                .shared
                .last()
                .is_some_and(|(last, _)| Chunk::ptr_eq(last, chunk))
            {
                self.shared_bytes += chunk.len();
            }
            self.shared.push((Chunk::clone(chunk), range.clone()));
            body = 0;
        } else {
            self.bytes.extend_from_slice(message.body);
        }
        self.bytes.extend_from_slice(crossing.groups);
        let tail = match (crossing.excluded, crossing.cluster) {
            (Some(excluded), _) => {
                excluded.write(&mut self.bytes);
                MessageTail::Excluded
            }
            (None, []) => MessageTail::Nothing,
            (None, cluster) => {
                self.bytes.extend_from_slice(&cluster.len().to_le_bytes());
                self.bytes.extend_from_slice(cluster);
                MessageTail::Cluster
            }
        };
        self.records.push(Record::Message(MessageRecord {
            account: crossing.account,
            subject: crossing.subject.len(),
            head: message.head.len(),
            args: message.args.len(),
            body,
            groups: crossing.groups.len(),
            reply_bytes: message.reply_bytes,
            header_bytes: message.header_bytes,
            plain: crossing.plain,
            hops: crossing.hops,
            links: crossing.links,
            tail,
        }));
    }

    /// Adds a message for the plain subscriptions of clients, if the last entry is a message of the same
    /// account and subject for the same receivers. `tail` contains its arguments and its body. Returns whether
    /// it was added.
    #[inline]
    pub(crate) fn push_next(
        &mut self,
        account: AccountId,
        subject: &[u8],
        tail: &[u8],
        args_bytes: usize,
        (reply_bytes, header_bytes): (usize, usize),
    ) -> bool {
        let may_follow = (self.run)
            .is_some_and(|run| run.head == 0 && self.continues(run, account, subject, None));
        if may_follow {
            self.bytes.extend_from_slice(tail);
            self.records.push(Record::Next(NextRecord {
                args: args_bytes,
                body: tail.len() - args_bytes,
                reply_bytes,
                header_bytes,
            }));
        }
        may_follow
    }

    /// Returns whether a message for plain subscriptions has the account, subject, and receivers of a run.
    #[inline]
    fn continues(
        &self,
        run: Run,
        account: AccountId,
        subject: &[u8],
        links: Option<LinkSet>,
    ) -> bool {
        let is_like = |first: &MessageRecord| first.account == account && first.links == links;
        matches!(&self.records[run.first], Record::Message(first) if is_like(first))
            && &self.bytes[run.subject()] == subject
    }

    /// Returns whether a message that is not framed yet continues the current run.
    #[inline]
    fn continues_unframed(
        &self,
        account: AccountId,
        to: &[u8],
        subject: &[u8],
        target: Target<'_>,
    ) -> bool {
        self.run.is_some_and(|run| {
            let is_same_subject = match &self.bytes[run.head()] {
                [] => to == subject,
                [b'H', b'M', b'S', b'G', b' ', shown @ .., b' '] => shown == subject,
                _ => false,
            };
            is_same_subject && self.continues(run, account, to, target.links)
        })
    }

    /// Adds a message that is not framed yet. Its receivers are the subscribers of `to`, which see the
    /// subject of the message. Returns the number of added bytes.
    pub(crate) fn push_unframed(
        &mut self,
        account: AccountId,
        to: &[u8],
        message: &Unframed<'_>,
        target: Target<'_>,
    ) -> usize {
        let Unframed {
            subject,
            reply,
            headers,
            payload,
        } = *message;
        let may_run = target.plain && target.groups.is_empty();
        if may_run && self.continues_unframed(account, to, subject, target) {
            return self.push_next_framed(message);
        }
        let bytes = &mut self.bytes;
        let start = bytes.len();
        bytes.extend_from_slice(to);
        if to != subject {
            bytes.extend_from_slice(b"HMSG ");
            bytes.extend_from_slice(subject);
            bytes.push(b' ');
        }
        let args_start = bytes.len();
        write_args(bytes, reply, headers.len(), headers.len() + payload.len());
        let body_start = bytes.len();
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        let end = bytes.len();
        bytes.extend_from_slice(target.groups);
        self.run = may_run.then_some(Run {
            first: self.records.len(),
            start,
            subject: to.len(),
            head: args_start - start - to.len(),
        });
        self.records.push(Record::Message(MessageRecord {
            account,
            subject: to.len(),
            head: args_start - start - to.len(),
            args: body_start - args_start,
            body: end - body_start,
            groups: target.groups.len(),
            reply_bytes: reply.len(),
            header_bytes: headers.len(),
            plain: target.plain,
            hops: 0,
            links: target.links,
            tail: MessageTail::Nothing,
        }));
        end - start
    }

    /// Adds a message that is not framed yet, if the last entry is a message of a run. Both messages must have
    /// the same subjects and receivers. Returns the number of added bytes, or `None` if there is no such run.
    #[inline]
    pub(crate) fn push_next_unframed(&mut self, message: &Unframed<'_>) -> Option<usize> {
        self.run?;
        Some(self.push_next_framed(message))
    }

    /// Adds another message to the current run. Returns the number of added bytes.
    fn push_next_framed(&mut self, message: &Unframed<'_>) -> usize {
        let Unframed {
            reply,
            headers,
            payload,
            ..
        } = *message;
        let bytes = &mut self.bytes;
        let start = bytes.len();
        bytes.reserve(reply.len() + headers.len() + payload.len() + ARGS_BYTES_MAX);
        write_args(bytes, reply, headers.len(), headers.len() + payload.len());
        let body_start = bytes.len();
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        let end = bytes.len();
        self.records.push(Record::Next(NextRecord {
            args: body_start - start,
            body: end - body_start,
            reply_bytes: reply.len(),
            header_bytes: headers.len(),
        }));
        end - start
    }

    /// Returns the bytes after the sid of the next message, and moves past it, if it belongs to the run of the
    /// last one.
    #[inline]
    pub(crate) fn next_tail(&self, cursor: &mut BatchCursor) -> Option<Tail<'_>> {
        let Record::Next(next) = self.records.get(cursor.records)? else {
            return None;
        };
        cursor.records += 1;
        Some(Tail {
            bytes: &self.bytes[cursor.take(next.args + next.body)],
            header_bytes: next.header_bytes,
            payload_bytes: next.body - 2,
        })
    }

    /// Returns the subject and the other bytes of the next message, and moves past it, if it goes only to the
    /// plain subscriptions of clients in this account, under its own subject, and `is_wanted` returns true for
    /// the subject.
    #[inline]
    pub(crate) fn next_simple(
        &self,
        cursor: &mut BatchCursor,
        account: AccountId,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<(&[u8], Tail<'_>)> {
        let Record::Message(message) = self.records.get(cursor.records)? else {
            return None;
        };
        let (start, subject) = (cursor.bytes, message.subject);
        let end = start + subject + message.args + message.body;
        let is_simple = message.account == account
            && (message.plain && message.hops == 0 && message.groups == 0 && message.head == 0)
            && (message.links.is_none() && message.body > 0)
            && message.tail == MessageTail::Nothing
            && !self.has_next_after(cursor)
            && is_wanted(&self.bytes[start..start + subject]);
        if !is_simple {
            return None;
        }
        cursor.records += 1;
        cursor.bytes = end;
        let (subject, tail) = self.bytes[start..end].split_at(subject);
        let tail = Tail {
            bytes: tail,
            header_bytes: message.header_bytes,
            payload_bytes: message.body - 2,
        };
        Some((subject, tail))
    }

    /// Returns whether the message after the next entry belongs to a run that the next entry begins.
    #[inline]
    fn has_next_after(&self, cursor: &BatchCursor) -> bool {
        matches!(self.records.get(cursor.records + 1), Some(Record::Next(_)))
    }

    fn read_notification(&self, read: &mut usize) -> Option<BatchEntry<'_>> {
        *read += 1;
        let notification = self.notifications.get(*read - 1)?;
        Some(BatchEntry::Notification(&**notification))
    }

    /// Returns the next entry, and advances the position.
    pub(crate) fn read(&self, cursor: &mut BatchCursor) -> Option<BatchEntry<'_>> {
        let record = self.records.get(cursor.records)?;
        cursor.records += 1;
        match *record {
            Record::AccountUsage {
                from,
                account,
                usage,
            } => Some(BatchEntry::AccountUsage {
                from,
                account,
                usage,
            }),
            Record::Notification => self.read_notification(&mut cursor.notifications),
            Record::Interest {
                from,
                account,
                filter,
                queue,
                weight,
            } => Some(BatchEntry::Interest {
                from,
                account,
                filter: &self.bytes[cursor.take(filter)],
                queue: &self.bytes[cursor.take(queue)],
                weight,
            }),
            Record::Message(ref record) => {
                Some(BatchEntry::Message(self.read_message(record, cursor)))
            }
            Record::Next(ref next) => self.read_next(next, cursor).map(BatchEntry::Message),
        }
    }

    /// Returns whether the next entry is another message of the run of the last one.
    #[inline]
    pub(crate) fn has_next(&self, cursor: &BatchCursor) -> bool {
        matches!(self.records.get(cursor.records), Some(Record::Next(_)))
    }

    /// Returns the next entry and advances the position, if the entry is another message of the run of the
    /// last one.
    #[inline]
    pub(crate) fn next_of_run(&self, cursor: &mut BatchCursor) -> Option<Crossing<'_>> {
        let Record::Next(next) = self.records.get(cursor.records)? else {
            return None;
        };
        cursor.records += 1;
        self.read_next(next, cursor)
    }

    #[inline]
    fn read_next(&self, next: &NextRecord, cursor: &mut BatchCursor) -> Option<Crossing<'_>> {
        let run = cursor.run;
        let Record::Message(first) = self.records.get(run.first)? else {
            return None;
        };
        let frame = &self.bytes[cursor.take(next.args + next.body)];
        let head = &self.bytes[run.head()];
        Some(Crossing {
            account: first.account,
            subject: &self.bytes[run.subject()],
            message: Message {
                head,
                ..Message::framed(frame, next.args, next.reply_bytes, next.header_bytes)
            },
            plain: true,
            groups: b"",
            hops: 0,
            links: first.links,
            excluded: None,
            cluster: b"",
        })
    }

    fn read_message(&self, record: &MessageRecord, cursor: &mut BatchCursor) -> Crossing<'_> {
        cursor.run = Run {
            first: cursor.records - 1,
            start: cursor.bytes,
            subject: record.subject,
            head: record.head,
        };
        let subject = cursor.take(record.subject);
        let head = cursor.take(record.head);
        let args = cursor.take(record.args);
        let copied = cursor.take(record.body);
        let groups = cursor.take(record.groups);
        let (mut excluded, mut cluster) = (None, &b""[..]);
        match record.tail {
            MessageTail::Nothing => {}
            MessageTail::Excluded => {
                excluded = Excluded::read(&self.bytes[cursor.take(Excluded::BYTES)]);
            }
            MessageTail::Cluster => {
                let len = &self.bytes[cursor.take(size_of::<usize>())];
                let len = len.try_into().map_or(0, usize::from_le_bytes);
                cluster = &self.bytes[cursor.take(len)];
            }
        }
        // A body ends with CRLF, so it is never empty.
        let shared = if record.body == 0 {
            self.shared.get(cursor.shared)
        } else {
            None
        };
        cursor.shared += usize::from(shared.is_some());
        let body = match shared {
            Some((chunk, range)) => &chunk[range.clone()],
            None => &self.bytes[copied.clone()],
        };
        let message = Message {
            head: &self.bytes[head],
            reply_bytes: record.reply_bytes,
            header_bytes: record.header_bytes,
            args: &self.bytes[args.clone()],
            body,
            tail: &self.bytes[args.start..copied.end],
            shared: shared.map(|(chunk, range)| (chunk, range.clone())),
            mark: &[],
        };
        Crossing {
            account: record.account,
            subject: &self.bytes[subject],
            message,
            plain: record.plain,
            groups: &self.bytes[groups],
            hops: record.hops,
            links: record.links,
            excluded,
            cluster,
        }
    }
}

const _: () = assert!(
    SHARED_BYTES_MIN > 2,
    "a body length of 0 means a shared body"
);

const _: () = assert!(
    size_of::<Record>() <= 64,
    "an entry of a batch fits into a cache line"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unframed_messages_are_read_like_framed_ones() {
        let check = |to: &[u8], headers: &[u8], head: &[u8], args: &[u8]| {
            let message = Unframed {
                subject: b"orders.7",
                reply: b"ack.1",
                headers,
                payload: b"tea",
            };
            let target = Target {
                plain: true,
                groups: b"workers ",
                links: None,
            };
            let mut batch = Batch::default();
            let bytes = batch.push_unframed(AccountId::GLOBAL, to, &message, target);
            assert_eq!(bytes, batch.bytes.len() - target.groups.len());
            let mut cursor = BatchCursor::default();
            let Some(BatchEntry::Message(read)) = batch.read(&mut cursor) else {
                panic!("no message");
            };
            assert_eq!((read.subject, read.groups), (to, target.groups));
            let (message, body) = (&read.message, [headers, b"tea\r\n"].concat());
            assert_eq!((message.head, message.args), (head, args));
            assert_eq!(message.body, body);
            assert_eq!(message.tail, [args, &body].concat());
            assert_eq!(
                (message.reply_bytes, message.header_bytes),
                (5, headers.len())
            );
            assert!(batch.read(&mut cursor).is_none());
        };
        check(b"orders.7", b"", b"", b"ack.1 3\r\n");
        check(b"inbox.1", b"", b"HMSG orders.7 ", b"ack.1 3\r\n");
        check(
            b"inbox.1",
            b"NATS/1.0\r\n\r\n",
            b"HMSG orders.7 ",
            b"ack.1 12 15\r\n",
        );
    }

    /// Returns all messages of a batch as text, each with `+` if it belongs to the run of the message before it.
    fn texts(batch: &Batch) -> Vec<String> {
        let mut cursor = BatchCursor::default();
        let mut texts = Vec::new();
        loop {
            let is_next = batch.has_next(&cursor);
            match batch.read(&mut cursor) {
                Some(BatchEntry::Message(read)) => {
                    let parts = [read.subject, b" ", read.message.head, read.message.tail];
                    let mark = if is_next { "+" } else { "" };
                    let text = String::from_utf8(parts.concat()).unwrap();
                    texts.push(format!("{mark}{} {text}", read.account.0));
                    assert_eq!(read.message.args, b"r 2\r\n");
                }
                Some(_) => texts.push("other".into()),
                None => return texts,
            }
        }
    }

    fn push(batch: &mut Batch, account: u32, to: &[u8], subject: &[u8], links: Option<LinkSet>) {
        let message = Unframed {
            subject,
            reply: b"r",
            headers: b"",
            payload: b"hi",
        };
        let target = Target {
            plain: true,
            groups: b"",
            links,
        };
        batch.push_unframed(AccountId(account), to, &message, target);
    }

    fn push_next(batch: &mut Batch, subject: &[u8]) -> bool {
        batch.push_next(AccountId(1), subject, b"r 2\r\nhi\r\n", 5, (1, 0))
    }

    #[test]
    fn run_ends_where_its_properties_change() {
        let mut batch = Batch::default();
        assert!(!push_next(&mut batch, b"a"));
        push(&mut batch, 1, b"a", b"a", None);
        assert!(push_next(&mut batch, b"a"));
        push(&mut batch, 1, b"a", b"a", None);
        assert!(!push_next(&mut batch, b"b"));
        push(&mut batch, 2, b"a", b"a", None);
        assert!(!push_next(&mut batch, b"a"));
        push(&mut batch, 2, b"a", b"shown", None);
        push(&mut batch, 2, b"a", b"shown", None);
        push(&mut batch, 2, b"a", b"shows", None);
        push(&mut batch, 2, b"a", b"shows", Some(LinkSet::Leafs));
        push(&mut batch, 2, b"a", b"shows", Some(LinkSet::Leafs));
        batch.push_interest(Remote::Shard(1), AccountId(2), b"x", b"", 1);
        push(&mut batch, 2, b"a", b"shows", Some(LinkSet::Leafs));
        let (plain, shown) = ("1 a r 2\r\nhi\r\n", "2 a HMSG shown r 2\r\nhi\r\n");
        let shows = "2 a HMSG shows r 2\r\nhi\r\n";
        let expected = [
            plain.to_owned(),
            format!("+{plain}"),
            format!("+{plain}"),
            "2 a r 2\r\nhi\r\n".to_owned(),
            shown.to_owned(),
            format!("+{shown}"),
            shows.to_owned(),
            shows.to_owned(),
            format!("+{shows}"),
            "other".to_owned(),
            shows.to_owned(),
        ];
        assert_eq!(texts(&batch), expected);
    }

    #[test]
    fn next_message_joins_the_current_run_only() {
        let message = Unframed {
            subject: b"shown",
            reply: b"r",
            headers: b"",
            payload: b"hi",
        };
        let mut batch = Batch::default();
        assert_eq!(batch.push_next_unframed(&message), None);
        push(&mut batch, 1, b"a", b"shown", None);
        assert_eq!(
            batch.push_next_unframed(&message),
            Some(b"r 2\r\nhi\r\n".len())
        );
        let mut cursor = BatchCursor::default();
        batch.read(&mut cursor);
        let tail = batch.next_tail(&mut cursor).unwrap();
        assert_eq!((tail.bytes, tail.payload_bytes), (&b"r 2\r\nhi\r\n"[..], 2));
        assert!(batch.next_tail(&mut cursor).is_none() && batch.read(&mut cursor).is_none());
        batch.push_interest(Remote::Shard(1), AccountId(1), b"x", b"", 1);
        assert_eq!(batch.push_next_unframed(&message), None);
        let text = "1 a HMSG shown r 2\r\nhi\r\n";
        assert_eq!(
            texts(&batch),
            [text.to_owned(), format!("+{text}"), "other".to_owned()]
        );
    }

    #[test]
    fn simple_messages_are_those_for_plain_subscriptions() {
        let mut batch = Batch::default();
        push(&mut batch, 1, b"a", b"a", None);
        push(&mut batch, 1, b"b", b"b", None);
        assert!(push_next(&mut batch, b"b"));
        push(&mut batch, 1, b"c", b"shown", None);
        push(&mut batch, 1, b"d", b"d", Some(LinkSet::Leafs));
        push(&mut batch, 2, b"e", b"e", None);
        push(&mut batch, 1, b"no", b"no", None);
        let mut cursor = BatchCursor::default();
        let mut simple = Vec::new();
        while cursor.records < batch.records.len() {
            let is_wanted = |subject: &[u8]| subject != b"no";
            match batch.next_simple(&mut cursor, AccountId(1), is_wanted) {
                Some((subject, tail)) => simple.push((subject, tail.bytes)),
                None => {
                    batch.read(&mut cursor);
                }
            }
        }
        assert_eq!(simple, [(&b"a"[..], &b"r 2\r\nhi\r\n"[..])]);
        assert_eq!(texts(&batch).len(), 7);
    }

    #[test]
    fn appended_batch_begins_a_new_run() {
        let (mut one, mut other) = (Batch::default(), Batch::default());
        for batch in [&mut one, &mut other] {
            push(batch, 1, b"a", b"a", None);
            assert!(push_next(batch, b"a"));
        }
        one.append(&mut other);
        assert!(!push_next(&mut one, b"a"));
        assert!(!push_next(&mut other, b"a"));
        let plain = "1 a r 2\r\nhi\r\n";
        let next = format!("+{plain}");
        assert_eq!(texts(&one), [plain, &next, plain, &next]);
        // An empty batch takes over the other one, with its run.
        let mut empty = Batch::default();
        empty.append(&mut one);
        empty.clear();
        assert!(!push_next(&mut empty, b"a"));
    }
}
