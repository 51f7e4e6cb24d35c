//! Property blocks (2.2.2), which are checked once and parsed on demand.

use super::bytes::{Reader, push_binary, push_variable};
use super::reason::{Reason, Wrong};

/// Identifier of the user property, the only property with two values.
const USER: u8 = 38;

/// Defines all properties in one table: identifier, name, type of the value, and functions that read and
/// write it.
macro_rules! properties {
    ($($id:literal $name:ident($type:ty) $read:path, $write:path;)+) => {
        /// One property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "named as in table 2-4")]
        pub enum Property<'a> {
            $($name($type),)+
            User(&'a str, &'a str),
        }

        impl<'a> Property<'a> {
            fn read(reader: &mut Reader<'a>) -> Result<(u8, Self), Wrong> {
                let unknown = || Wrong::malformed("a property is unknown");
                let id = u8::try_from(reader.variable()?).map_err(|_| unknown())?;
                let property = match id {
                    $($id => Property::$name($read(reader)?),)+
                    USER => Property::User(reader.text()?, reader.text()?),
                    _ => return Err(unknown()),
                };
                Ok((id, property))
            }

            /// Appends the property to a block.
            pub fn write(&self, out: &mut Vec<u8>) {
                match *self {
                    $(Property::$name(value) => {
                        out.push($id);
                        $write(out, value);
                    })+
                    Property::User(name, value) => {
                        out.push(USER);
                        push_text(out, name);
                        push_text(out, value);
                    }
                }
            }
        }
    };
}

properties! {
    1 PayloadFormat(bool) flag, push_flag;
    2 MessageExpiry(u32) Reader::u32, push_u32;
    3 ContentType(&'a str) Reader::text, push_text;
    8 ResponseTopic(&'a str) Reader::text, push_text;
    9 CorrelationData(&'a [u8]) Reader::binary, push_binary;
    11 SubscriptionId(u32) variable_not_zero, push_variable;
    17 SessionExpiry(u32) Reader::u32, push_u32;
    18 AssignedClientId(&'a str) Reader::text, push_text;
    19 ServerKeepAlive(u16) Reader::u16, push_u16;
    21 AuthenticationMethod(&'a str) Reader::text, push_text;
    22 AuthenticationData(&'a [u8]) Reader::binary, push_binary;
    23 RequestProblem(bool) flag, push_flag;
    24 WillDelay(u32) Reader::u32, push_u32;
    25 RequestResponse(bool) flag, push_flag;
    26 ResponseInformation(&'a str) Reader::text, push_text;
    28 ServerReference(&'a str) Reader::text, push_text;
    31 ReasonString(&'a str) Reader::text, push_text;
    33 ReceiveMaximum(u16) u16_not_zero, push_u16;
    34 TopicAliasMaximum(u16) Reader::u16, push_u16;
    35 TopicAlias(u16) topic_alias, push_u16;
    36 MaximumQos(bool) flag, push_flag;
    37 RetainAvailable(bool) flag, push_flag;
    39 MaximumPacketSize(u32) u32_not_zero, push_u32;
    40 WildcardsAvailable(bool) flag, push_flag;
    41 SubscriptionIdsAvailable(bool) flag, push_flag;
    42 SharedAvailable(bool) flag, push_flag;
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Wrong> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Wrong::protocol("a property must be 0 or 1")),
    }
}

fn not_zero<T: Default + PartialEq>(value: T) -> Result<T, Wrong> {
    match value == T::default() {
        true => Err(Wrong::protocol("a property must not be 0")),
        false => Ok(value),
    }
}

fn u16_not_zero(reader: &mut Reader<'_>) -> Result<u16, Wrong> {
    reader.u16().and_then(not_zero)
}

fn u32_not_zero(reader: &mut Reader<'_>) -> Result<u32, Wrong> {
    reader.u32().and_then(not_zero)
}

fn variable_not_zero(reader: &mut Reader<'_>) -> Result<u32, Wrong> {
    reader.variable().and_then(not_zero)
}

/// Reads a topic alias (MQTT-3.3.2-8).
fn topic_alias(reader: &mut Reader<'_>) -> Result<u16, Wrong> {
    let message = "a topic alias must not be 0";
    match reader.u16()? {
        0 => Err(Wrong::because(Reason::TOPIC_ALIAS_INVALID, message)),
        alias => Ok(alias),
    }
}

fn push_flag(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

fn push_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn push_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn push_text(out: &mut Vec<u8>, value: &str) {
    push_binary(out, value.as_bytes());
}

/// The properties that a packet may have (table 2-4), with a bit for each identifier.
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
    /// Properties that may be repeated: user properties in every packet, and subscription identifiers in
    /// PUBLISH (3.3.2.3.8).
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

/// A well-formed property block; empty in 3.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    /// Reads and checks a block that is preceded by its length.
    pub(super) fn read(reader: &mut Reader<'a>, allowed: Allowed) -> Result<Self, Wrong> {
        let bytes = reader.variable()?;
        let block = reader.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let mut rest = Reader::new(block);
        let mut seen = 0_u64;
        while !rest.is_empty() {
            let (id, _) = Property::read(&mut rest)?;
            // The largest known identifier is 42, so the shift cannot overflow.
            let bit = 1_u64 << id;
            // 2.2.2.2.
            if allowed.0 & bit == 0 {
                return Err(Wrong::malformed("a property is not allowed in this packet"));
            }
            if seen & bit & !allowed.repeated() != 0 {
                return Err(Wrong::protocol("a property must not be repeated"));
            }
            seen |= bit;
        }
        Ok(Properties(block))
    }

    /// Wraps a block that was written by [`Property::write`] or taken from a packet. Other bytes may be an
    /// invalid block: iteration then stops at the first invalid property.
    pub fn written(block: &'a [u8]) -> Self {
        Properties(block)
    }

    /// Returns the block without its length.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the properties in order.
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
