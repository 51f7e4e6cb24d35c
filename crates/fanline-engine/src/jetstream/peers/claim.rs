//! Names and subjects of streams are unique in the cluster: a server claims them from all other servers before it
//! creates a stream. If two servers claim the same, the one with the lower id creates its stream first.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;

use super::filters::questions_to;
use super::pending::{Pending, Request, Step, send};
use super::placement::Mismatch;
use super::question::{Answer, Claim, Forwarded, Question, Subject, Wanted};
use crate::auth::AccountId;
use crate::jetstream::accounts::JetStreams;
use crate::jetstream::{
    ApiError, Message, Now, Pedantry, Ports, StreamConfig, Strictness, decode_with_flag, overlap,
};

/// Requests that create a stream, which they name.
const CREATE: &str = "STREAM.CREATE.";
const RESTORE: &str = "STREAM.RESTORE.";

/// Returns whether a request may create a stream.
pub(super) fn may_create(path: &str) -> bool {
    path.starts_with(CREATE) || path.starts_with(RESTORE)
}

/// The request to restore a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RestoreRequest {
    config: StreamConfig,
}

impl JetStreams {
    /// Returns what must happen before this server creates a stream; `None` if the request creates none, or is invalid.
    pub(super) fn step_to_create(
        &self,
        account: AccountId,
        path: &str,
        message: &Message<'_>,
    ) -> Option<Step> {
        let peers = self.peers.as_ref()?;
        let config = created(path, message.payload)?;
        let wanted = Wanted {
            placement: config.placement.unwrap_or_default(),
            replicas: config.num_replicas,
        };
        if !Mismatch::of(&wanted, &peers.cluster).is_none() {
            return Some(Step::Placement(wanted));
        }
        let claim = Claim {
            name: config.name,
            subjects: config.subjects,
            is_update: false,
        };
        let is_claimed = !peers.ids.is_empty() || self.has_absent(account);
        is_claimed.then_some(Step::Claim(claim))
    }

    /// Returns the claim of a request that changes the subjects of a stream of this server.
    pub(super) fn claim_of_update(
        &self,
        account: AccountId,
        path: &str,
        stream: &str,
        message: &Message<'_>,
    ) -> Option<Claim> {
        if !path.starts_with("STREAM.UPDATE.") {
            return None;
        }
        let config = parsed(message.payload)?;
        let is_changed = self
            .config_of(account, stream)
            .is_some_and(|own| own.subjects != config.subjects);
        is_changed.then_some(Claim {
            name: config.name,
            subjects: config.subjects,
            is_update: true,
        })
    }

    /// Judges the claim of another server. If this server has claimed the same, the one with the lower id comes first.
    pub(super) fn judge(
        &mut self,
        account: AccountId,
        claim: &Claim,
        from: &str,
        now: Now,
    ) -> Answer {
        if !claim.is_update && self.has_stream_in(account, &claim.name) {
            return Answer::Later;
        }
        if self.stores_any(account, &claim.subjects, &claim.name) {
            return Answer::Overlap;
        }
        if self.has_absent(account) {
            return Answer::Later;
        }
        let Some(peers) = &mut self.peers else {
            return Answer::Free;
        };
        let is_first = peers.id.as_str() < from;
        for pending in peers.pending.values_mut() {
            let collides = pending.account == account
                && matches!(&pending.step, Step::Claim(own) if own.collides(claim));
            if !collides {
                continue;
            }
            if is_first {
                return Answer::Later;
            }
            pending.postpone(now);
        }
        Answer::Free
    }

    /// Creates or changes the stream of a claim, unless another server objects.
    pub(super) fn end_claim(&mut self, pending: Pending, now: Now, ports: &mut dyn Ports) {
        let answers = || pending.answers.iter().map(|(_, answer)| answer);
        if answers().any(|answer| matches!(answer, Answer::Overlap)) {
            return self.refuse(&pending, &ApiError::STREAM_SUBJECT_OVERLAP, ports);
        }
        if !pending.awaited.is_empty() {
            return self.refuse(&pending, &ApiError::TEMPORARILY_UNAVAILABLE, ports);
        }
        // A server that has joined in the meantime was not asked.
        let is_asked = |id: &String| pending.answers.iter().any(|(from, _)| from == id);
        let are_all_asked =
            (self.peers.as_ref()).is_none_or(|peers| peers.ids.iter().all(is_asked));
        let must_wait = self.has_absent(pending.account) || !are_all_asked;
        if must_wait || answers().any(|answer| matches!(answer, Answer::Later)) {
            return self.postpone(pending, now, ports);
        }
        self.handle_here(pending.account, &pending.request().message(), now, ports);
    }

    /// Returns how this server fails to satisfy a placement.
    pub(super) fn judge_placement(&self, account: AccountId, wanted: &Wanted) -> Answer {
        let own = self.peers.as_ref();
        let mut mismatch = own.map_or_else(Mismatch::default, |peers| {
            Mismatch::of(wanted, &peers.cluster)
        });
        mismatch.is_other_cluster |= !self.is_enabled(account);
        Answer::Placement(mismatch)
    }

    /// Passes the request on to a server that satisfies the placement: the same one each time, but different ones for
    /// different streams.
    pub(super) fn end_placement(
        &mut self,
        pending: Pending,
        wanted: &Wanted,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let Some(peers) = &self.peers else {
            return;
        };
        let mut reasons = Mismatch::of(wanted, &peers.cluster);
        let rank = |server: &String| {
            let mut hasher = DefaultHasher::new();
            (server, &pending.request().subject).hash(&mut hasher);
            (hasher.finish(), server.clone())
        };
        let mut suitable = None;
        for (from, answer) in &pending.answers {
            match answer {
                Answer::Placement(mismatch) if mismatch.is_none() => {
                    suitable = suitable.max(Some(rank(from)));
                }
                Answer::Placement(mismatch) => reasons.join(mismatch.clone()),
                _ => {}
            }
        }
        if suitable.is_none() && wanted.replicas > 1 && self.has_absent(pending.account) {
            return self.postpone(pending, now, ports);
        }
        let Some((_, server)) = suitable else {
            let error = reasons.error(!pending.awaited.is_empty());
            return self.refuse(&pending, &error, ports);
        };
        self.forward(pending.account, pending.request(), &server, ports);
    }

    /// Passes a request that creates a stream on to another server.
    pub(super) fn forward(
        &self,
        account: AccountId,
        request: &Request,
        server: &str,
        ports: &mut dyn Ports,
    ) {
        let Some(peers) = &self.peers else {
            return;
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let question = Question {
            from: peers.id.clone(),
            account: self.name_of(account).to_owned(),
            subject: Subject::Create(Forwarded {
                subject: text(&request.subject),
                reply: text(&request.reply),
                payload: text(&request.payload),
            }),
        };
        send(questions_to(server).as_bytes(), b"", &question, ports);
    }
}

impl Claim {
    /// Returns whether both cannot be satisfied.
    fn collides(&self, other: &Claim) -> bool {
        let overlaps = |own: &String| other.subjects.iter().any(|theirs| overlap(own, theirs));
        self.name == other.name || self.subjects.iter().any(overlaps)
    }
}

/// Returns the configuration of the stream that a request creates, with its defaults; `None` if it creates none or is
/// invalid. The request is then answered without a claim.
fn created(path: &str, payload: &[u8]) -> Option<StreamConfig> {
    let config = if path.starts_with(CREATE) {
        parsed(payload)?
    } else if path.starts_with(RESTORE) {
        let (request, _): (RestoreRequest, _) =
            decode_with_flag(payload, "pedantic", Strictness::Lenient).ok()?;
        request.config
    } else {
        return None;
    };
    config.checked_new(Pedantry::Lax).ok()
}

fn parsed(payload: &[u8]) -> Option<StreamConfig> {
    let parsed = decode_with_flag(payload, "pedantic", Strictness::Lenient);
    parsed.ok().map(|(config, _)| config)
}
