//! Packets of MQTT 3.1.1.

/// Returns a packet.
pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut left = body.len();
    loop {
        let seven = u8::try_from(left % 128).unwrap_or_default();
        left /= 128;
        packet.push(if left > 0 { seven | 128 } else { seven });
        if left == 0 {
            break;
        }
    }
    packet.extend_from_slice(body);
    packet
}

/// Appends a text with its length.
pub(crate) fn push_text(body: &mut Vec<u8>, text: &str) {
    body.extend(u16::try_from(text.len()).unwrap_or_default().to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}

/// Returns the number at an offset of a body.
pub(crate) fn number_at(body: &[u8], at: usize) -> Option<u16> {
    let bytes = body.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// A PUBLISH from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publish {
    pub(crate) topic: String,
    pub(crate) qos: u8,
    pub(crate) id: u16,
    pub(crate) payload: String,
}

impl Publish {
    /// Reads a PUBLISH from its first byte and its body.
    pub(crate) fn read(first: u8, body: &[u8]) -> Option<Self> {
        let length = usize::from(number_at(body, 0)?);
        let topic = body.get(2..2 + length)?;
        let qos = first >> 1 & 3;
        let mut from = 2 + length;
        let mut id = 0;
        if qos > 0 {
            id = number_at(body, from)?;
            from += 2;
        }
        Some(Publish {
            topic: String::from_utf8_lossy(topic).into_owned(),
            qos,
            id,
            payload: String::from_utf8_lossy(body.get(from..)?).into_owned(),
        })
    }
}

/// Splits a server's output into packets.
#[derive(Debug, Default)]
pub(crate) struct MqttReader {
    pending: Vec<u8>,
}

impl MqttReader {
    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next packet's first byte and body, if it is complete.
    pub(crate) fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut length = 0;
        let mut shift = 0;
        let mut at = 1;
        loop {
            let byte = *self.pending.get(at)?;
            at += 1;
            length |= usize::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                break;
            }
        }
        if self.pending.len() < at + length {
            return None;
        }
        let first = self.pending[0];
        let body = self.pending[at..at + length].to_vec();
        self.pending.drain(..at + length);
        Some((first, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_in_any_pieces() {
        let mut body = Vec::new();
        push_text(&mut body, "a/b");
        body.extend([0, 7]);
        body.extend([b'x'; 200]);
        let mut reader = MqttReader::default();
        let mut packets = Vec::new();
        for byte in packet(0x32, &body) {
            reader.push(&[byte]);
            packets.extend(reader.next());
        }
        let (first, body) = &packets[0];
        let publish = Publish::read(*first, body).unwrap();
        assert_eq!(
            (publish.topic.as_str(), publish.qos, publish.id),
            ("a/b", 1, 7)
        );
        assert_eq!(publish.payload.len(), 200);
    }
}
