//! Properties (2.2.2): a block of them, checked once and read where somebody asks.

use super::bytes::{Reader, push_binary, push_variable};
use super::reason::{Reason, Wrong};

/// One property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in table 2-4")]
pub enum Property<'a> {
    PayloadFormat(bool),
    MessageExpiry(u32),
    ContentType(&'a str),
    ResponseTopic(&'a str),
    CorrelationData(&'a [u8]),
    SubscriptionId(u32),
    SessionExpiry(u32),
    AssignedClientId(&'a str),
    ServerKeepAlive(u16),
    AuthenticationMethod(&'a str),
    AuthenticationData(&'a [u8]),
    RequestProblem(bool),
    WillDelay(u32),
    RequestResponse(bool),
    ResponseInformation(&'a str),
    ServerReference(&'a str),
    ReasonString(&'a str),
    ReceiveMaximum(u16),
    TopicAliasMaximum(u16),
    TopicAlias(u16),
    MaximumQos(bool),
    RetainAvailable(bool),
    User(&'a str, &'a str),
    MaximumPacketSize(u32),
    WildcardsAvailable(bool),
    SubscriptionIdsAvailable(bool),
    SharedAvailable(bool),
}

impl<'a> Property<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<(u32, Self), Wrong> {
        let id = reader.variable()?;
        let property = match id {
            1 => Property::PayloadFormat(flag(reader)?),
            2 => Property::MessageExpiry(reader.u32()?),
            3 => Property::ContentType(reader.text()?),
            8 => Property::ResponseTopic(reader.text()?),
            9 => Property::CorrelationData(reader.binary()?),
            11 => Property::SubscriptionId(not_zero(reader.variable()?)?),
            17 => Property::SessionExpiry(reader.u32()?),
            18 => Property::AssignedClientId(reader.text()?),
            19 => Property::ServerKeepAlive(reader.u16()?),
            21 => Property::AuthenticationMethod(reader.text()?),
            22 => Property::AuthenticationData(reader.binary()?),
            23 => Property::RequestProblem(flag(reader)?),
            24 => Property::WillDelay(reader.u32()?),
            25 => Property::RequestResponse(flag(reader)?),
            26 => Property::ResponseInformation(reader.text()?),
            28 => Property::ServerReference(reader.text()?),
            31 => Property::ReasonString(reader.text()?),
            33 => Property::ReceiveMaximum(not_zero(reader.u16()?)?),
            34 => Property::TopicAliasMaximum(reader.u16()?),
            35 => match reader.u16()? {
                // MQTT-3.3.2-8.
                0 => {
                    let why = "a topic alias is 0";
                    return Err(Wrong::because(Reason::TOPIC_ALIAS_INVALID, why));
                }
                alias => Property::TopicAlias(alias),
            },
            36 => Property::MaximumQos(flag(reader)?),
            37 => Property::RetainAvailable(flag(reader)?),
            38 => Property::User(reader.text()?, reader.text()?),
            39 => Property::MaximumPacketSize(not_zero(reader.u32()?)?),
            40 => Property::WildcardsAvailable(flag(reader)?),
            41 => Property::SubscriptionIdsAvailable(flag(reader)?),
            42 => Property::SharedAvailable(flag(reader)?),
            _ => return Err(Wrong::malformed("a property is not known")),
        };
        Ok((id, property))
    }

    /// Appends it to a block.
    pub fn write(&self, out: &mut Vec<u8>) {
        let id = self.id();
        out.push(id);
        match *self {
            Property::PayloadFormat(value)
            | Property::RequestProblem(value)
            | Property::RequestResponse(value)
            | Property::MaximumQos(value)
            | Property::RetainAvailable(value)
            | Property::WildcardsAvailable(value)
            | Property::SubscriptionIdsAvailable(value)
            | Property::SharedAvailable(value) => out.push(u8::from(value)),
            Property::ServerKeepAlive(value)
            | Property::ReceiveMaximum(value)
            | Property::TopicAliasMaximum(value)
            | Property::TopicAlias(value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::MessageExpiry(value)
            | Property::SessionExpiry(value)
            | Property::WillDelay(value)
            | Property::MaximumPacketSize(value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::SubscriptionId(value) => push_variable(out, value),
            Property::CorrelationData(value) | Property::AuthenticationData(value) => {
                push_binary(out, value);
            }
            Property::ContentType(value)
            | Property::ResponseTopic(value)
            | Property::AssignedClientId(value)
            | Property::AuthenticationMethod(value)
            | Property::ResponseInformation(value)
            | Property::ServerReference(value)
            | Property::ReasonString(value) => push_binary(out, value.as_bytes()),
            Property::User(name, value) => {
                push_binary(out, name.as_bytes());
                push_binary(out, value.as_bytes());
            }
        }
    }

    /// Its identifier, which has one byte for all that there are.
    fn id(&self) -> u8 {
        match self {
            Property::PayloadFormat(_) => 1,
            Property::MessageExpiry(_) => 2,
            Property::ContentType(_) => 3,
            Property::ResponseTopic(_) => 8,
            Property::CorrelationData(_) => 9,
            Property::SubscriptionId(_) => 11,
            Property::SessionExpiry(_) => 17,
            Property::AssignedClientId(_) => 18,
            Property::ServerKeepAlive(_) => 19,
            Property::AuthenticationMethod(_) => 21,
            Property::AuthenticationData(_) => 22,
            Property::RequestProblem(_) => 23,
            Property::WillDelay(_) => 24,
            Property::RequestResponse(_) => 25,
            Property::ResponseInformation(_) => 26,
            Property::ServerReference(_) => 28,
            Property::ReasonString(_) => 31,
            Property::ReceiveMaximum(_) => 33,
            Property::TopicAliasMaximum(_) => 34,
            Property::TopicAlias(_) => 35,
            Property::MaximumQos(_) => 36,
            Property::RetainAvailable(_) => 37,
            Property::User(..) => 38,
            Property::MaximumPacketSize(_) => 39,
            Property::WildcardsAvailable(_) => 40,
            Property::SubscriptionIdsAvailable(_) => 41,
            Property::SharedAvailable(_) => 42,
        }
    }
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Wrong> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Wrong::protocol("a property is neither 0 nor 1")),
    }
}

fn not_zero<T: Default + PartialEq>(value: T) -> Result<T, Wrong> {
    match value == T::default() {
        true => Err(Wrong::protocol("a property is 0")),
        false => Ok(value),
    }
}

/// Which properties a packet may have (table 2-4), a bit for each identifier.
#[derive(Clone, Copy)]
pub(super) struct Allowed(u64);

impl Allowed {
    pub(super) const CONNECT: Allowed = Allowed::of(&[17, 21, 22, 23, 25, 33, 34, 38, 39]);
    pub(super) const WILL: Allowed = Allowed::of(&[1, 2, 3, 8, 9, 24, 38]);
    pub(super) const PUBLISH: Allowed = Allowed::of(&[1, 2, 3, 8, 9, 11, 35, 38]);
    pub(super) const ACK: Allowed = Allowed::of(&[31, 38]);
    pub(super) const SUBSCRIBE: Allowed = Allowed::of(&[11, 38]);
    pub(super) const UNSUBSCRIBE: Allowed = Allowed::of(&[38]);
    pub(super) const DISCONNECT: Allowed = Allowed::of(&[17, 28, 31, 38]);
    pub(super) const AUTH: Allowed = Allowed::of(&[21, 22, 31, 38]);
    /// Several of each: user properties anywhere, and what a message was found by (3.3.2.3.8).
    const REPEATED: u64 = 1 << 38;
    const REPEATED_IN_PUBLISH: u64 = Allowed::REPEATED | (1 << 11);

    const fn of(ids: &[u32]) -> Self {
        let mut bits = 0_u64;
        let mut at = 0;
        while at < ids.len() {
            bits |= 1_u64 << ids[at];
            at += 1;
        }
        Allowed(bits)
    }

    fn repeated(self) -> u64 {
        match self.0 == Allowed::PUBLISH.0 {
            true => Allowed::REPEATED_IN_PUBLISH,
            false => Allowed::REPEATED,
        }
    }
}

/// A block of properties that is known to be well formed; empty in 3.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    /// Takes a block with its length from the front, and checks it.
    pub(super) fn read(reader: &mut Reader<'a>, allowed: Allowed) -> Result<Self, Wrong> {
        let bytes = reader.variable()?;
        let block = reader.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let mut rest = Reader::new(block);
        let mut seen = 0_u64;
        while !rest.is_empty() {
            let (id, _) = Property::read(&mut rest)?;
            // The largest that is known is 42.
            let bit = 1_u64 << id;
            // 2.2.2.2.
            if allowed.0 & bit == 0 {
                return Err(Wrong::malformed("a property does not belong here"));
            }
            if seen & bit & !allowed.repeated() != 0 {
                return Err(Wrong::protocol("a property is there twice"));
            }
            seen |= bit;
        }
        Ok(Properties(block))
    }

    /// A block that was put together with [`Property::write`], or taken from a packet; of any other
    /// bytes, nothing is read behind the first that is no property.
    pub fn written(block: &'a [u8]) -> Self {
        Properties(block)
    }

    /// The block without its length.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each property, in order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let mut rest = Reader::new(self.0);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            Property::read(&mut rest).ok().map(|(_, property)| property)
        })
    }
}
