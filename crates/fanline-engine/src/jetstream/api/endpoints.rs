//! The table of API requests.

use super::{
    Answer, Call, account_info, consumer_create, consumer_delete, consumer_info, consumer_list,
    consumer_pause, consumer_reset, consumer_unpin, leader_stepdown, peers, stream_create,
    stream_delete, stream_info, stream_list, stream_message, stream_purge, stream_restore,
    stream_snapshot, stream_update,
};
use crate::jetstream::ApiError;

/// A kind of request.
pub(in crate::jetstream) struct Endpoint {
    /// Subject after the API prefix. `*` and `>` are placeholders for names.
    path: &'static str,
    /// Word in the `type` of the reply.
    pub(super) kind: &'static str,
    /// JSON fields that an error reply has in addition to the error.
    pub(super) on_error: &'static str,
    pub(super) handle: fn(&mut Call<'_>) -> Result<Answer, ApiError>,
}

const PAGE: &str = r#","total":0,"offset":0,"limit":0"#;
const NO_NAMES: &str = r#","total":0,"offset":0,"limit":0,"streams":null"#;
const NO_STREAMS: &str = r#","total":0,"offset":0,"limit":0,"streams":[]"#;
const NO_CONSUMERS: &str = r#","total":0,"offset":0,"limit":0,"consumers":[]"#;
const NOT_PAUSED: &str = r#","paused":false,"pause_until":"0001-01-01T00:00:00Z""#;

#[rustfmt::skip]
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint { path: "INFO", kind: "account_info", on_error: "", handle: account_info::handle },
    Endpoint { path: "STREAM.CREATE.*", kind: "stream_create", on_error: "", handle: stream_create::handle },
    Endpoint { path: "STREAM.UPDATE.*", kind: "stream_update", on_error: "", handle: stream_update::handle },
    Endpoint { path: "STREAM.NAMES", kind: "stream_names", on_error: NO_NAMES, handle: stream_list::names },
    Endpoint { path: "STREAM.LIST", kind: "stream_list", on_error: NO_STREAMS, handle: stream_list::infos },
    Endpoint { path: "STREAM.INFO.*", kind: "stream_info", on_error: PAGE, handle: stream_info::handle },
    Endpoint { path: "STREAM.DELETE.*", kind: "stream_delete", on_error: "", handle: stream_delete::handle },
    Endpoint { path: "STREAM.PURGE.*", kind: "stream_purge", on_error: r#","purged":0"#, handle: stream_purge::handle },
    Endpoint { path: "STREAM.MSG.GET.*", kind: "stream_msg_get", on_error: "", handle: stream_message::get },
    Endpoint { path: "STREAM.MSG.DELETE.*", kind: "stream_msg_delete", on_error: "", handle: stream_message::delete },
    Endpoint { path: "STREAM.SNAPSHOT.*", kind: "stream_snapshot", on_error: "", handle: stream_snapshot::handle },
    Endpoint { path: "STREAM.RESTORE.*", kind: "stream_restore", on_error: r#","deliver_subject":"""#, handle: stream_restore::handle },
    Endpoint { path: "STREAM.LEADER.STEPDOWN.*", kind: "stream_leader_stepdown", on_error: "", handle: leader_stepdown::stream },
    Endpoint { path: "STREAM.PEER.REMOVE.*", kind: "stream_remove_peer", on_error: "", handle: peers::stream },
    Endpoint { path: "STREAM.PEER.EVACUATE.*", kind: "stream_evacuate_peer", on_error: "", handle: peers::stream },
    Endpoint { path: "STREAM.CANCEL_MOVE.*", kind: "stream_cancel_move", on_error: "", handle: peers::cancel_move },
    Endpoint { path: "CONSUMER.CREATE.*", kind: "consumer_create", on_error: "", handle: consumer_create::unnamed },
    Endpoint { path: "CONSUMER.CREATE.*.*", kind: "consumer_create", on_error: "", handle: consumer_create::named },
    Endpoint { path: "CONSUMER.CREATE.*.*.>", kind: "consumer_create", on_error: "", handle: consumer_create::named },
    Endpoint { path: "CONSUMER.DURABLE.CREATE.*.*", kind: "consumer_create", on_error: "", handle: consumer_create::durable },
    Endpoint { path: "CONSUMER.NAMES.*", kind: "consumer_names", on_error: NO_CONSUMERS, handle: consumer_list::names },
    Endpoint { path: "CONSUMER.LIST.*", kind: "consumer_list", on_error: NO_CONSUMERS, handle: consumer_list::infos },
    Endpoint { path: "CONSUMER.INFO.*.*", kind: "consumer_info", on_error: "", handle: consumer_info::handle },
    Endpoint { path: "CONSUMER.DELETE.*.*", kind: "consumer_delete", on_error: "", handle: consumer_delete::handle },
    Endpoint { path: "CONSUMER.PAUSE.*.*", kind: "consumer_pause", on_error: NOT_PAUSED, handle: consumer_pause::handle },
    Endpoint { path: "CONSUMER.UNPIN.*.*", kind: "consumer_unpin", on_error: "", handle: consumer_unpin::handle },
    Endpoint { path: "CONSUMER.RESET.*.*", kind: "consumer_reset", on_error: r#","reset_seq":0"#, handle: consumer_reset::handle },
    Endpoint { path: "CONSUMER.LEADER.STEPDOWN.*.*", kind: "consumer_leader_stepdown", on_error: "", handle: leader_stepdown::consumer },
    Endpoint { path: "CONSUMER.PEER.REMOVE.*.*", kind: "consumer_remove_peer", on_error: "", handle: peers::consumer },
    Endpoint { path: "CONSUMER.PEER.EVACUATE.*.*", kind: "consumer_evacuate_peer", on_error: "", handle: peers::consumer },
];

impl Endpoint {
    #[cfg(test)]
    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the names at the wildcards of the path, or `None` if this endpoint does not match.
    pub(super) fn names<'a>(&self, path: &'a str) -> Option<Vec<&'a str>> {
        let mut names = Vec::new();
        let mut rest = Some(path);
        for wanted in self.path.split('.') {
            let given = rest?;
            if wanted == ">" {
                names.push(given);
                return Some(names);
            }
            let (token, after) = match given.split_once('.') {
                Some((token, after)) => (token, Some(after)),
                None => (given, None),
            };
            match wanted {
                "*" => names.push(token),
                _ if wanted == token => {}
                _ => return None,
            }
            rest = after;
        }
        rest.is_none().then_some(names)
    }
}
