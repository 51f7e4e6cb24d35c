//! Requests of clients that wait for answers of other servers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::question::{Answer, Claim, Forwarded, Question, Subject, Wanted};
use super::{ANSWER_WAIT, Responder, filters};
use crate::auth::AccountId;
use crate::jetstream::accounts::JetStreams;
use crate::jetstream::{ApiError, Message, Now, Ports, api};

/// Largest number of requests that wait for other servers. More are refused.
const PENDING_MAX: usize = 10_000;

/// Delay before the next attempt to claim a name that two servers have claimed at once. By then, the other server
/// has created its stream and announced it.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Requests that wait for [`Step::Settle`] are due at multiples of this time, so that many of them are due at once.
const SETTLE_STEP: Duration = Duration::from_millis(10);

/// Time for which a server repeats a claim.
const CLAIM_WAIT: Duration = Duration::from_secs(4);

/// A request of a client that waits for answers of other servers.
pub(super) struct Pending {
    pub(super) account: AccountId,
    request: Request,
    began_at: Duration,
    /// When to continue without further answers.
    pub(super) due: Duration,
    pub(super) step: Step,
    /// Servers that have not answered yet.
    pub(super) awaited: BTreeSet<String>,
    /// Answers, with the servers that sent them.
    pub(super) answers: Vec<(String, Answer)>,
    /// Names of streams of other servers, with their ids, that an earlier step has collected.
    pub(super) names: BTreeMap<String, String>,
}

/// What a request waits for.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The next attempt.
    Retry,
    /// What this server will soon know about the streams of the others. The request names a stream that is not on
    /// this server, and came from a server without JetStream: that server may know better where the stream is, or
    /// that it was deleted.
    Settle,
    Claim(Claim),
    Placement(Wanted),
    /// The names of streams whose subjects this filter matches. Afterwards, the descriptions of those on a page are
    /// requested if `then_infos` is set.
    Names {
        filter: String,
        then_infos: bool,
    },
    /// The descriptions of streams, by their names, with the ids of their servers.
    Infos(Vec<(String, String)>),
    Account,
}

/// A client's request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) subject: Vec<u8>,
    pub(super) reply: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Request {
    pub(super) fn of(message: &Message<'_>) -> Self {
        Request {
            subject: message.subject.into(),
            reply: message.reply.into(),
            headers: message.headers.into(),
            payload: message.payload.into(),
        }
    }

    pub(super) fn message(&self) -> Message<'_> {
        Message {
            subject: &self.subject,
            reply: &self.reply,
            headers: &self.headers,
            payload: &self.payload,
            ..Message::default()
        }
    }
}

impl Step {
    /// Returns the question to a server; `None` if it gets none.
    fn question(&self, server: &str) -> Option<Subject> {
        Some(match self {
            Step::Retry | Step::Settle => return None,
            Step::Claim(claim) => Subject::Claim(claim.clone()),
            Step::Placement(wanted) => Subject::Placement(wanted.clone()),
            Step::Names { filter, .. } => Subject::Names(filter.clone()),
            Step::Infos(streams) => {
                let names = streams.iter().filter(|(_, owner)| owner == server);
                let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
                (!names.is_empty()).then_some(Subject::Infos(names))?
            }
            Step::Account => Subject::Account,
        })
    }
}

impl JetStreams {
    /// Begins to wait with a request.
    pub(super) fn begin(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        step: Step,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let pending = Pending::new(account, Request::of(message), step, now);
        let is_full = (self.peers.as_ref()).is_some_and(|peers| peers.pending.len() >= PENDING_MAX);
        if let Step::Settle = pending.step {
            if !is_full {
                self.settle_later(pending, now);
            }
            return;
        }
        match is_full {
            true => self.refuse(&pending, &ApiError::TEMPORARILY_UNAVAILABLE, ports),
            false => self.ask(pending, now, ports),
        }
    }

    /// Sends the question of a request's step to the other servers. Continues at once if there is none.
    pub(super) fn ask(&mut self, mut pending: Pending, now: Now, ports: &mut dyn Ports) {
        let account = self.name_of(pending.account).to_owned();
        let Some(peers) = &mut self.peers else {
            return;
        };
        peers.last += 1;
        let number = peers.last;
        pending.due = now.since_start + ANSWER_WAIT;
        pending.answers.clear();
        pending.awaited.clear();
        for id in &peers.ids {
            let Some(subject) = pending.step.question(id) else {
                continue;
            };
            let question = Question {
                from: peers.id.clone(),
                account: account.clone(),
                subject,
            };
            let reply = filters::answers_to(&peers.id, number, id);
            let to = filters::questions_to(id);
            send(to.as_bytes(), reply.as_bytes(), &question, ports);
            pending.awaited.insert(id.clone());
        }
        match pending.awaited.is_empty() {
            true => self.advance(pending, now, ports),
            false => drop(peers.pending.insert(number, pending)),
        }
    }

    /// Handles a message of another server. `path` is its subject after the id of this server.
    pub(super) fn handle_peer_message(
        &mut self,
        path: &str,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        if path == "ASK" {
            if let Ok(question) = serde_json::from_slice(message.payload) {
                self.handle_question(question, message.reply, now, ports);
            }
            return;
        }
        let answer = path.strip_prefix("ANSWER.");
        let answer = answer.and_then(|rest| rest.split_once('.'));
        let (Some((number, from)), Some(peers)) = (answer, &mut self.peers) else {
            return;
        };
        let number: Option<u64> = number.parse().ok();
        let found = number.and_then(|number| Some((number, peers.pending.get_mut(&number)?)));
        let (Some((number, pending)), Ok(answer)) =
            (found, serde_json::from_slice(message.payload))
        else {
            return;
        };
        if pending.awaited.remove(from) {
            pending.answers.push((from.to_owned(), answer));
        }
        if pending.awaited.is_empty()
            && !matches!(pending.step, Step::Retry | Step::Settle)
            && let Some(pending) = peers.pending.remove(&number)
        {
            self.advance(pending, now, ports);
        }
    }

    /// Handles a question of another server.
    fn handle_question(
        &mut self,
        question: Question,
        reply: &[u8],
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let Some(account) = self.account_named(&question.account) else {
            // An account that does not exist here has no streams here.
            if let Some(answer) = nothing(&question.subject) {
                send(reply, b"", &answer, ports);
            }
            return;
        };
        let answer = match question.subject {
            Subject::Claim(claim) => self.judge(account, &claim, &question.from, now),
            Subject::Placement(wanted) => self.judge_placement(account, &wanted),
            Subject::Names(filter) => Answer::Names(self.names_of_streams(account, &filter)),
            Subject::Infos(names) => Answer::Infos(self.infos_of_streams(account, &names, now)),
            Subject::Account => Answer::Account(self.sums_of(account, now, ports)),
            Subject::Create(forwarded) => {
                return self.create_forwarded(account, &forwarded, now, ports);
            }
        };
        send(reply, b"", &answer, ports);
    }

    /// Continues with the requests that have waited long enough.
    pub(in crate::jetstream) fn handle_due_peers(&mut self, now: Now, ports: &mut dyn Ports) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        let is_due = |pending: &Pending| pending.due <= now.since_start;
        let due = peers.pending.iter().filter(|(_, pending)| is_due(pending));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        for number in due {
            let pending = self
                .peers
                .as_mut()
                .and_then(|peers| peers.pending.remove(&number));
            match pending {
                Some(pending) if matches!(pending.step, Step::Retry) => {
                    self.repeat(pending, now, ports);
                }
                Some(pending) => self.advance(pending, now, ports),
                None => {}
            }
        }
    }

    /// Stops waiting for servers that have left the cluster.
    pub(super) fn forget_absent_peers(&mut self) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        for pending in peers.pending.values_mut() {
            let was_empty = pending.awaited.is_empty();
            pending.awaited.retain(|id| peers.ids.contains(id));
            if pending.awaited.is_empty() && !was_empty {
                pending.due = Duration::ZERO;
            }
        }
    }

    /// Continues a request after the answers.
    fn advance(&mut self, pending: Pending, now: Now, ports: &mut dyn Ports) {
        match pending.step.clone() {
            Step::Retry => self.repeat(pending, now, ports),
            Step::Settle => self.end_settling(&pending, now, ports),
            Step::Claim(_) => self.end_claim(pending, now, ports),
            Step::Placement(wanted) => self.end_placement(pending, &wanted, now, ports),
            Step::Names { filter, then_infos } => {
                self.end_names(pending, (&filter, then_infos), now, ports);
            }
            Step::Infos(_) => self.end_infos(pending, now, ports),
            Step::Account => self.end_account(&pending, now, ports),
        }
    }

    /// Lets a request wait until this server knows the streams that existed when the request was sent.
    fn settle_later(&mut self, mut pending: Pending, now: Now) {
        let steps = (now.since_start + RETRY_DELAY).as_nanos() / SETTLE_STEP.as_nanos() + 1;
        pending.due = SETTLE_STEP * u32::try_from(steps).unwrap_or(u32::MAX);
        if let Some(peers) = &mut self.peers {
            peers.last += 1;
            peers.pending.insert(peers.last, pending);
        }
    }

    /// Answers a request that names a stream that does not exist. If another server has the stream, that server has
    /// received the request, too.
    fn end_settling(&mut self, pending: &Pending, now: Now, ports: &mut dyn Ports) {
        let request = pending.request();
        let stream = self
            .request_path(&request.subject)
            .and_then(api::stream_named);
        let peers = self.peers.as_ref();
        let is_elsewhere = stream.is_some_and(|stream| {
            peers.is_some_and(|peers| peers.owners(pending.account, stream).is_some())
        });
        let is_here = stream.is_some_and(|stream| self.has_stream_in(pending.account, stream));
        let is_absent = stream.is_some_and(|stream| self.is_absent(pending.account, stream));
        if is_absent {
            return self.refuse(pending, &ApiError::TEMPORARILY_UNAVAILABLE, ports);
        }
        // A stream that is here now was created after the request.
        if !is_elsewhere && !is_here {
            self.handle_here(pending.account, &request.message(), now, ports);
        }
    }

    /// Lets a request wait for the next attempt. Refuses it if it has waited for too long.
    pub(super) fn postpone(&mut self, mut pending: Pending, now: Now, ports: &mut dyn Ports) {
        if pending.began_at + CLAIM_WAIT <= now.since_start {
            return self.refuse(&pending, &ApiError::TEMPORARILY_UNAVAILABLE, ports);
        }
        pending.postpone(now);
        if let Some(peers) = &mut self.peers {
            peers.last += 1;
            peers.pending.insert(peers.last, pending);
        }
    }

    /// Makes another attempt. If another server has created the stream in the meantime, that server gets the request.
    fn repeat(&mut self, mut pending: Pending, now: Now, ports: &mut dyn Ports) {
        let (account, request) = (pending.account, pending.request.clone());
        let path = self.request_path(&request.subject).map(str::to_owned);
        let path = path.unwrap_or_default();
        match self.responder(account, &path, &request.message()) {
            Responder::Other => ports.of(account).publish(&request.message()),
            Responder::At(server) => self.forward(account, &request, &server, ports),
            Responder::Here => self.handle_here(account, &request.message(), now, ports),
            Responder::After(step) => {
                pending.step = step;
                self.ask(pending, now, ports);
            }
            Responder::Absent => {
                self.refuse(&pending, &ApiError::TEMPORARILY_UNAVAILABLE, ports);
            }
        }
    }

    /// Answers the request of a client that is connected to another server.
    fn create_forwarded(
        &mut self,
        account: AccountId,
        forwarded: &Forwarded,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let request = Request {
            subject: forwarded.subject.clone().into(),
            reply: forwarded.reply.clone().into(),
            headers: Vec::new(),
            payload: forwarded.payload.clone().into(),
        };
        let pending = Pending::new(account, request, Step::Retry, now);
        self.repeat(pending, now, ports);
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&mut self, pending: &Pending, error: &ApiError, ports: &mut dyn Ports) {
        let request = &pending.request;
        let path = self.request_path(&request.subject).unwrap_or_default();
        api::refuse(
            path.as_bytes(),
            &request.message(),
            error,
            ports.of(pending.account),
        );
    }
}

impl Pending {
    fn new(account: AccountId, request: Request, step: Step, now: Now) -> Self {
        Pending {
            account,
            request,
            began_at: now.since_start,
            due: now.since_start,
            step,
            awaited: BTreeSet::new(),
            answers: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// Returns the client's request.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Waits for the next attempt.
    pub(super) fn postpone(&mut self, now: Now) {
        self.step = Step::Retry;
        self.awaited.clear();
        self.due = now.since_start + RETRY_DELAY;
    }
}

/// Sends a question or an answer to another server.
pub(super) fn send(to: &[u8], reply: &[u8], content: &impl Serialize, ports: &mut dyn Ports) {
    ports.of(AccountId::SYSTEM).publish(&Message {
        subject: to,
        reply,
        payload: &serde_json::to_vec(content).unwrap_or_default(),
        ..Message::default()
    });
}

/// Returns the answer for an account that does not exist.
fn nothing(subject: &Subject) -> Option<Answer> {
    Some(match subject {
        Subject::Claim(_) => Answer::Free,
        // No stream can be placed here.
        Subject::Placement(_) => Answer::Placement(super::placement::Mismatch {
            is_other_cluster: true,
            ..Default::default()
        }),
        Subject::Names(_) => Answer::Names(Vec::new()),
        Subject::Infos(_) => Answer::Infos(Vec::new()),
        Subject::Account => Answer::Account(super::AccountSums::default()),
        Subject::Create(_) => return None,
    })
}
