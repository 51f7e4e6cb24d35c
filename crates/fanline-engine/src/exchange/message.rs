//! Messages during delivery.

use std::io::Write;
use std::ops::Range;

use super::remote::RemoteSet;
use super::router::Route;
use super::session::Session;
use super::tracing::Traced;
use crate::auth::AccountId;
use crate::codec::nats::parse::Publish;
use crate::outbox::{Chunk, Outbox, SHARED_BYTES_MIN};

/// A message without its subject.
pub(crate) struct Message<'a> {
    /// `HMSG <subject> ` if subscribers receive another subject than the one that their filters match;
    /// otherwise empty.
    pub(crate) head: &'a [u8],
    /// Length of the reply subject in `args`; 0 if there is none.
    pub(crate) reply_bytes: usize,
    /// Length of the headers at the front of `body`; 0 if there are none.
    pub(crate) header_bytes: usize,
    /// `[reply ][header_bytes ]total_bytes\r\n`.
    pub(crate) args: &'a [u8],
    /// Headers and payload, then CRLF.
    pub(crate) body: &'a [u8],
    /// `args` and `body` as one slice; empty if the body is shared.
    pub(crate) tail: &'a [u8],
    /// The chunk and range of the body, if the body is too large to copy for each subscriber.
    pub(crate) shared: Option<(&'a Chunk, Range<usize>)>,
    /// What precedes the reply subject for the other servers of the cluster, because the message came from
    /// another cluster; otherwise empty.
    pub(crate) mark: &'a [u8],
}

impl<'a> Message<'a> {
    /// Creates a message from one buffer with arguments, headers, and payload.
    pub(crate) fn framed(
        frame: &'a [u8],
        args_bytes: usize,
        reply_bytes: usize,
        header_bytes: usize,
    ) -> Self {
        Message {
            head: &[],
            reply_bytes,
            header_bytes,
            args: &frame[..args_bytes],
            body: &frame[args_bytes..],
            tail: frame,
            shared: None,
            mark: &[],
        }
    }

    /// Creates a message from a publish. `from` is the offset of its verb in the chunk.
    #[inline]
    pub(crate) fn published(chunk: &'a Chunk, publish: &Publish<'_>, from: usize) -> Self {
        let body = from + publish.body.start..from + publish.body.end;
        let is_shared = body.len() >= SHARED_BYTES_MIN;
        Message {
            head: &[],
            reply_bytes: publish.reply.len(),
            header_bytes: publish.header_bytes,
            args: &chunk[from + publish.args.start..from + publish.args.end],
            body: &chunk[body.clone()],
            tail: &chunk[from + publish.args.start..body.end],
            shared: is_shared.then_some((chunk, body)),
            mark: &[],
        }
    }

    /// Returns the message with other arguments for a batch: the mark and the own ones. If `marked` is empty,
    /// returns the message itself.
    pub(super) fn with_marked<'b>(&'b self, marked: &'b [u8]) -> Message<'b> {
        let shared = self.shared.as_ref();
        let shared = shared.map(|(chunk, range)| (*chunk, range.clone()));
        match marked {
            [] => Message { shared, ..*self },
            _ => Message {
                reply_bytes: self.mark.len() + self.reply_bytes,
                args: marked,
                tail: &[],
                shared,
                ..*self
            },
        }
    }

    /// Returns the reply subject, which may be empty.
    pub(crate) fn reply(&self) -> &'a [u8] {
        &self.args[..self.reply_bytes]
    }

    /// Returns the headers, which may be empty.
    pub(crate) fn headers(&self) -> &'a [u8] {
        &self.body[..self.header_bytes]
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.body.len() - 2
    }

    /// Returns `HMSG <subject> ` with the subject that subscribers receive.
    #[inline]
    pub(crate) fn hmsg_head<'b>(&'b self, route: &'b Route) -> &'b [u8] {
        match self.head {
            [] => route.hmsg_head(),
            head => head,
        }
    }

    /// Returns `MSG <subject> ` with the subject that subscribers receive.
    #[inline]
    pub(crate) fn msg_head<'b>(&'b self, route: &'b Route) -> &'b [u8] {
        &self.hmsg_head(route)[1..]
    }

    /// Queues the message for a subscriber. If the message has headers, the subscriber must support them.
    #[inline]
    pub(crate) fn write(&self, out: &mut Outbox, head: &[u8], sid: &[u8]) {
        match &self.shared {
            None => out.append3(head, sid, self.tail),
            Some((chunk, range)) => {
                out.append3(head, sid, self.args);
                out.refer(chunk, range.clone());
            }
        }
    }

    /// Queues the message without its headers.
    pub(super) fn write_stripped(&self, out: &mut Outbox, head: &[u8], sid: &[u8]) {
        let reply_and_space = match self.reply_bytes {
            0 => &[],
            reply_bytes => &self.args[..=reply_bytes],
        };
        out.append3(head, sid, reply_and_space);
        let mut digits = [0; 24];
        let mut rest = &mut digits[..];
        // A length has at most twenty digits.
        let _ = write!(rest, "{}\r\n", self.payload_bytes() - self.header_bytes);
        let unused = rest.len();
        out.append(&digits[..digits.len() - unused]);
        match &self.shared {
            Some((chunk, range)) => out.refer(chunk, range.start + self.header_bytes..range.end),
            None => out.append(&self.body[self.header_bytes..]),
        }
    }

    /// Returns `args` in the form that subscribers without header support receive, for a protocol trace.
    pub(super) fn stripped_args(&self) -> Vec<u8> {
        let mut args = Vec::with_capacity(self.args.len());
        if self.reply_bytes > 0 {
            args.extend_from_slice(&self.args[..=self.reply_bytes]);
        }
        let _ = write!(args, "{}\r\n", self.payload_bytes() - self.header_bytes);
        args
    }
}

/// The properties of a message's publisher that affect delivery.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) session: Option<u32>,
    /// Whether the publisher itself receives the message.
    pub(crate) echo: bool,
    /// Names of the only groups that may receive the message, separated by spaces; `None` allows all.
    pub(crate) groups: Option<&'a [u8]>,
    pub(crate) via: Via,
    /// Cluster of the leaf node that the message comes from, directly or by another server of this server's cluster. The
    /// other leaf nodes of that cluster receive the message within it. Empty for any other message.
    pub(crate) cluster: &'a [u8],
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
    pub(super) const BYTES: usize = size_of::<u32>() + size_of::<u64>();

    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.session.to_le_bytes());
        bytes.extend_from_slice(&self.cid.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (session, cid) = bytes.split_first_chunk()?;
        Some(Excluded {
            session: u32::from_le_bytes(*session),
            cid: u64::from_le_bytes(cid.try_into().ok()?),
        })
    }
}

/// The kind of a message's publisher, as far as it limits where the message may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Via {
    /// A client, the server itself, or a leaf node for which this server is the hub.
    #[default]
    Own,
    /// Another server of the cluster. The other servers received the message from there.
    Route,
    /// A hub, for which this server is a leaf node. It is connected to all servers of the cluster.
    Hub,
    /// A stream import. Each server of the cluster imports its messages itself.
    Import,
    /// Another cluster. All other clusters received the message from there.
    Gateway,
}

impl Via {
    /// Returns whether another server has chosen the queue groups that receive the message.
    pub(crate) const fn has_chosen_groups(self) -> bool {
        matches!(self, Via::Route | Via::Gateway)
    }

    /// Returns the remotes that do not receive the message.
    #[inline]
    pub(super) const fn excluded(self) -> RemoteSet {
        match self {
            Via::Own => RemoteSet::NONE,
            Via::Route | Via::Hub | Via::Import => RemoteSet::ROUTES.with(RemoteSet::GATEWAYS),
            Via::Gateway => RemoteSet::GATEWAYS.with(RemoteSet::REPLIES),
        }
    }
}

impl Origin<'_> {
    /// The origin of messages from another shard, or from the server itself.
    pub(crate) const ELSEWHERE: Origin<'static> = Origin {
        session: None,
        echo: true,
        groups: None,
        via: Via::Own,
        cluster: b"",
    };

    /// Returns the cluster of the leaf node that the message comes from, for a link that understands it.
    pub(super) fn cluster_if(&self, takes_clusters: bool) -> &'_ [u8] {
        match takes_clusters {
            true => self.cluster,
            false => b"",
        }
    }

    /// Returns whether a group may receive the message.
    #[inline]
    pub(super) fn is_for(self, group: &[u8]) -> bool {
        let is_it = |names: &[u8]| names.split(|b| *b == b' ').any(|name| name == group);
        self.groups.is_none_or(is_it)
    }

    /// Returns whether a session may receive the message. The session must not be ending, and must not be the
    /// publisher unless `echo` is set.
    #[inline]
    pub(super) fn reaches<K>(self, id: u32, session: &Session<K>) -> bool {
        session.ending.is_none() && (self.echo || self.session != Some(id))
    }
}

/// A message that is being delivered in one account.
pub(crate) struct Dispatch<'m> {
    pub(crate) account: AccountId,
    pub(crate) subject: &'m [u8],
    pub(crate) message: &'m Message<'m>,
    pub(crate) origin: Origin<'m>,
    pub(crate) context: Context<'m>,
}

/// Further inputs of a delivery. The default applies to most messages.
#[derive(Default)]
pub(crate) struct Context<'m> {
    /// Whether an MQTT client of this account published the message. Only then do its headers contain QoS and
    /// RETAIN; in other messages, headers of these names have no meaning.
    pub(crate) is_from_device: bool,
    /// Number of imports that the message has followed.
    pub(crate) depth: u8,
    /// Queue groups that have already received the message, for example in the account that published it.
    pub(crate) served: Option<&'m mut Vec<Vec<u8>>>,
    /// The trace that the message requests.
    pub(crate) trace: Option<&'m mut Traced>,
    /// The bits of [`Crossing::hops`](super::batch::Crossing::hops) with which the message is passed on to another
    /// shard or another server, if no member of a queue group is left here; 0 if it is not.
    pub(crate) hops: u8,
    /// Whether another server has passed the message on: only queue groups receive it.
    pub(crate) is_passed_on: bool,
    /// The publisher on another shard, if no group may select it.
    pub(crate) excluded: Option<Excluded>,
}

impl<'m> Dispatch<'m> {
    /// Creates a message from the server itself.
    pub(crate) fn own(account: AccountId, subject: &'m [u8], message: &'m Message<'m>) -> Self {
        Dispatch {
            account,
            subject,
            message,
            origin: Origin::ELSEWHERE,
            context: Context::default(),
        }
    }
}
