//! Inter-shard batches: messages and interest changes, in the order in which the shard decided them. A batch
//! costs one copy and one transfer, whatever it contains.

use std::any::Any;
use std::ops::Range;

use super::message::Message;
use super::remote::{LinkSet, Remote};
use crate::auth::AccountId;
use crate::codec::nats::args::write_args;
use crate::outbox::{Chunk, SHARED_BYTES_MIN};

/// Largest number of times that a message to a queue group is forwarded because the group's members on the
/// receiving shard have just left.
pub(crate) const HOPS_MAX: u8 = 4;

/// Bit of [`Crossing::hops`]: the message is traced.
pub(crate) const TRACED: u8 = 0x80;

/// Bit of [`Crossing::hops`]: the publisher is an MQTT client of the same account.
pub(crate) const FROM_DEVICE: u8 = 0x40;

/// A notification between sessions and the JetStream thread. The batch does not know its contents.
pub(crate) trait Notification: Any + Send {
    /// Returns its approximate memory in bytes.
    fn bytes(&self) -> usize;
}

/// Connections and subscriptions of an account on one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountUsage {
    pub(crate) connections: u32,
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
}

/// A read position in a batch. The default is the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchCursor {
    records: usize,
    bytes: usize,
    shared: usize,
    notifications: usize,
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
/// Few messages exclude their publisher, so a publisher is in `bytes`: it makes no other message larger.
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
    /// Whether the [`Excluded`] publisher follows the groups.
    has_excluded: bool,
}

/// A publisher that does not receive its own messages (`echo` is off).
///
/// A message for a queue group may come back to the publisher's shard. The publisher may have disconnected by
/// then, and its index may belong to another session, which has another `cid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    pub(crate) session: u32,
    pub(crate) cid: u64,
}

impl Excluded {
    /// Length of an encoded publisher.
    const BYTES: usize = size_of::<u32>() + size_of::<u64>();

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.session.to_le_bytes());
        bytes.extend_from_slice(&self.cid.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (session, cid) = bytes.split_first_chunk()?;
        Some(Excluded {
            session: u32::from_le_bytes(*session),
            cid: u64::from_le_bytes(cid.try_into().ok()?),
        })
    }
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
    pub(crate) hops: u8,
    /// If `Some`, the message is only for these links to other servers. The receiving shard serves the links,
    /// and its clients do not receive the message.
    pub(crate) links: Option<LinkSet>,
    /// The publisher, if no group may select it.
    pub(crate) excluded: Option<Excluded>,
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
        self.records.append(&mut other.records);
        self.bytes.append(&mut other.bytes);
        self.shared.append(&mut other.shared);
        self.shared_bytes += std::mem::take(&mut other.shared_bytes);
        self.notifications.append(&mut other.notifications);
    }

    /// Removes all entries, and retains enough capacity for a usual batch.
    pub fn clear(&mut self) {
        const KEPT_BYTES: usize = 1024 * 1024;
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
        self.records.push(Record::AccountUsage {
            from,
            account,
            usage,
        });
    }

    pub(crate) fn push_notification(&mut self, notification: impl Notification) {
        self.records.push(Record::Notification);
        self.notifications.push(Box::new(notification));
    }

    pub(crate) fn push_message(&mut self, crossing: &Crossing<'_>) {
        let message = &crossing.message;
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
        if let Some(excluded) = crossing.excluded {
            excluded.write(&mut self.bytes);
        }
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
            has_excluded: crossing.excluded.is_some(),
        }));
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
            has_excluded: false,
        }));
        end - start
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
        }
    }

    fn read_message(&self, record: &MessageRecord, cursor: &mut BatchCursor) -> Crossing<'_> {
        let subject = cursor.take(record.subject);
        let head = cursor.take(record.head);
        let args = cursor.take(record.args);
        let copied = cursor.take(record.body);
        let groups = cursor.take(record.groups);
        let excluded = match record.has_excluded {
            true => Excluded::read(&self.bytes[cursor.take(Excluded::BYTES)]),
            false => None,
        };
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
}
