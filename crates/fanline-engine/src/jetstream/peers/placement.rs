//! Which server may have a stream, by the placement in its configuration.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ClusterSettings;
use super::question::Wanted;
use crate::jetstream::ApiError;

/// Start of a tag that the server must not have.
const EXCLUDED: char = '!';

/// The tag of servers that get no new streams, except those that are placed by tags.
const NO_STREAMS: &str = "!jetstream";

/// How servers fail to satisfy a placement. The default satisfies it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Mismatch {
    /// Whether the placement names another cluster.
    pub(super) is_other_cluster: bool,
    /// Whether the server gets no new streams.
    pub(super) is_excluded: bool,
    /// Tags that a server lacks.
    pub(super) missing: BTreeSet<String>,
    /// Excluded tags that a server has.
    pub(super) forbidden: BTreeSet<String>,
    /// Whether the server's streams have another number of replicas.
    pub(super) has_other_replicas: bool,
    /// Whether they have several.
    pub(super) is_replicating: bool,
}

impl Mismatch {
    /// Compares a server with a placement. Tags are compared without case.
    pub(super) fn of(wanted: &Wanted, server: &ClusterSettings) -> Mismatch {
        let placement = &wanted.placement;
        let has = |tag: &str| server.tags.iter().any(|own| own.eq_ignore_ascii_case(tag));
        let mut mismatch = Mismatch {
            is_other_cluster: !placement.cluster.is_empty() && placement.cluster != server.name,
            is_excluded: has(NO_STREAMS),
            has_other_replicas: wanted.replicas.max(1) != server.replicas.max(1),
            is_replicating: server.replicas > 1,
            ..Mismatch::default()
        };
        for tag in &placement.tags {
            match tag.strip_prefix(EXCLUDED) {
                Some(tag) if has(tag) => mismatch.forbidden.insert(tag.to_owned()),
                None if !has(tag) => mismatch.missing.insert(tag.clone()),
                _ => continue,
            };
        }
        mismatch
    }

    /// Returns whether the server satisfies the placement.
    pub(super) fn is_none(&self) -> bool {
        let same = Mismatch {
            is_replicating: self.is_replicating,
            ..Mismatch::default()
        };
        *self == same
    }

    /// Adds the reasons of another server.
    pub(super) fn join(&mut self, other: Mismatch) {
        self.is_other_cluster |= other.is_other_cluster;
        self.is_excluded |= other.is_excluded;
        self.has_other_replicas &= other.has_other_replicas;
        self.is_replicating |= other.is_replicating;
        self.missing.extend(other.missing);
        self.forbidden.extend(other.forbidden);
    }

    /// Returns the error for a stream that no server may have. `is_short` means that a server has not answered.
    pub(super) fn error(&self, is_short: bool) -> ApiError {
        if self.has_other_replicas && !self.is_replicating {
            return ApiError::STREAM_REPLICAS_NOT_SUPPORTED;
        }
        let mut text = String::new();
        let quoted = |tags: &BTreeSet<String>| {
            let tags: Vec<String> = tags.iter().map(|tag| format!("'{tag}'")).collect();
            tags.join(", ")
        };
        if is_short {
            text.push_str(", peer offline");
        }
        if self.is_excluded {
            text.push_str(", exclude tag set");
        }
        if !self.missing.is_empty() {
            text.push_str(&format!(", tags not matched [{}]", quoted(&self.missing)));
        }
        if !self.forbidden.is_empty() {
            text.push_str(&format!(", tags excluded [{}]", quoted(&self.forbidden)));
        }
        ApiError::no_suitable_peers(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::Placement;

    #[test]
    fn servers_are_compared_by_cluster_and_tags() {
        let check = |cluster: &str, tags: &[&str], server_tags: &[&str], expected: Option<&str>| {
            let own = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
            let placement = Placement {
                cluster: cluster.into(),
                tags: own(tags),
                ..Placement::default()
            };
            let wanted = Wanted {
                placement,
                replicas: 1,
            };
            let server = ClusterSettings {
                name: "c".into(),
                tags: own(server_tags),
                replicas: 1,
            };
            let mismatch = Mismatch::of(&wanted, &server);
            let error = (!mismatch.is_none()).then(|| mismatch.error(false).description);
            let expected = expected.map(|text| format!("no suitable peers for placement{text}"));
            assert_eq!(
                error.as_deref(),
                expected.as_deref(),
                "{cluster:?} {tags:?}"
            );
        };
        check("", &[], &[], None);
        check("c", &["SSD", "!old"], &["ssd", "eu"], None);
        check("d", &[], &[], Some(""));
        check(
            "",
            &["b", "a"],
            &["c"],
            Some(", tags not matched ['a', 'b']"),
        );
        check("", &["!c"], &["C"], Some(", tags excluded ['c']"));
        check("", &[], &["!jetstream"], Some(", exclude tag set"));
    }
}
