//! Compression of connections to other servers, and its levels.

use std::time::Duration;

use crate::codec::s2::Level;

/// The compression that one side requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkCompression {
    /// No compression.
    Off,
    /// The compression that the other side requests.
    Accept,
    /// Compression by round-trip time, with up to three thresholds. Output is not compressed for a round-trip
    /// time up to the first threshold. The level is fast up to the second threshold, better up to the third,
    /// and best above.
    Auto(Vec<Duration>),
    /// Always this level.
    Always(Level),
}

/// Default thresholds of [`LinkCompression::Auto`].
const RTT_THRESHOLDS: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(100),
];

impl Default for LinkCompression {
    fn default() -> Self {
        LinkCompression::Auto(RTT_THRESHOLDS.to_vec())
    }
}

impl LinkCompression {
    /// Parses a name, such as `s2_fast` or `fast`.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Some(match name.strip_prefix("s2_").unwrap_or(&name) {
            "off" | "disabled" => LinkCompression::Off,
            "accept" => LinkCompression::Accept,
            "auto" | "on" | "enabled" => LinkCompression::default(),
            "uncompressed" => LinkCompression::Always(Level::Uncompressed),
            "fast" => LinkCompression::Always(Level::Fast),
            "better" => LinkCompression::Always(Level::Better),
            "best" => LinkCompression::Always(Level::Best),
            _ => return None,
        })
    }

    /// Returns the name in INFO and CONNECT.
    pub fn name(&self) -> &'static str {
        match self {
            LinkCompression::Off => "off",
            LinkCompression::Accept => "accept",
            LinkCompression::Auto(_) => "s2_auto",
            LinkCompression::Always(level) => level_name(*level),
        }
    }

    /// Returns the compression of this side, given the request of the other side; `None` means no
    /// compression.
    pub fn agree(&self, announced: &str) -> Option<Self> {
        let announced = LinkCompression::parse(announced).unwrap_or(LinkCompression::Off);
        match (self, announced) {
            (LinkCompression::Off, _) | (_, LinkCompression::Off) => None,
            (LinkCompression::Accept, LinkCompression::Accept) => None,
            // The side that requested `auto` adapts its level to the round trip. The other side uses a fixed
            // level.
            (LinkCompression::Accept, LinkCompression::Auto(_)) => {
                Some(LinkCompression::Always(Level::Fast))
            }
            (LinkCompression::Accept, theirs) => Some(theirs),
            (ours, _) => Some(ours.clone()),
        }
    }

    /// Returns the compression level for a round-trip time.
    pub fn level(&self, rtt: Duration) -> Level {
        match self {
            LinkCompression::Off | LinkCompression::Accept => Level::Uncompressed,
            LinkCompression::Always(level) => *level,
            LinkCompression::Auto(thresholds) => {
                let levels = [Level::Uncompressed, Level::Fast, Level::Better];
                let reached = thresholds.iter().position(|most| rtt <= *most);
                let level = reached.and_then(|at| levels.get(at));
                level.copied().unwrap_or(Level::Best)
            }
        }
    }
}

/// Returns the name of a level in monitoring.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Uncompressed => "s2_uncompressed",
        Level::Fast => "s2_fast",
        Level::Better => "s2_better",
        Level::Best => "s2_best",
    }
}

/// The compression that both sides negotiated before the session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The compression of this side.
    pub by: LinkCompression,
    /// Round-trip time during the negotiation.
    pub rtt: Duration,
}

impl Compressed {
    /// Returns the compression level for the last measured round-trip time. `None` uses the time that was
    /// measured during the negotiation.
    pub(crate) fn level(&self, rtt: Option<Duration>) -> Level {
        self.by.level(rtt.unwrap_or(self.rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_agree_as_nats_servers_do() {
        for (ours, announced, expected) in [
            ("off", "s2_fast", None),
            ("accept", "accept", None),
            ("accept", "off", None),
            ("accept", "", None),
            ("accept", "s2_auto", Some("s2_fast")),
            ("accept", "s2_best", Some("s2_best")),
            ("s2_auto", "accept", Some("s2_auto")),
            ("s2_fast", "s2_best", Some("s2_fast")),
            ("s2_better", "s2_auto", Some("s2_better")),
            ("s2_uncompressed", "s2_fast", Some("s2_uncompressed")),
            ("accept", "s2_uncompressed", Some("s2_uncompressed")),
            ("s2_fast", "off", None),
            ("s2_fast", "not supported", None),
        ] {
            let agreed = LinkCompression::parse(ours).unwrap().agree(announced);
            assert_eq!(
                agreed.map(|by| by.name()),
                expected,
                "{ours} and {announced}"
            );
        }
        assert_eq!(LinkCompression::parse("zstd"), None);
    }

    #[test]
    fn long_round_trips_have_higher_levels() {
        let millis = |list: &[u64]| list.iter().map(|ms| Duration::from_millis(*ms)).collect();
        let usual = LinkCompression::default();
        let never_plain = LinkCompression::Auto(millis(&[0, 50]));
        for (by, rtt, expected) in [
            (&usual, 1, "s2_uncompressed"),
            (&usual, 10, "s2_uncompressed"),
            (&usual, 11, "s2_fast"),
            (&usual, 60, "s2_better"),
            (&usual, 101, "s2_best"),
            (&never_plain, 1, "s2_fast"),
            (&never_plain, 51, "s2_best"),
        ] {
            let level = by.level(Duration::from_millis(rtt));
            assert_eq!(level_name(level), expected, "{rtt} ms");
        }
    }
}
