//! Deleted messages, purged messages, and deleted consumers do not reappear.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fanline_client::Client;

use super::{RESPONSE_LIMIT, Shared, ask, connect, field, text};

/// Number of subjects of the stream from which messages are deleted.
const SUBJECTS: u64 = 5;

/// Confirmed deletions.
#[derive(Default)]
pub(super) struct Deletions {
    /// Deleted sequences.
    deleted: BTreeSet<u64>,
    /// For each subject, the sequence up to which it was purged.
    purged: BTreeMap<u64, u64>,
    /// Deleted consumers.
    consumers: Vec<String>,
}

impl fmt::Display for Deletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (deleted, consumers) = (self.deleted.len(), self.consumers.len());
        write!(f, "{deleted} records and {consumers} consumers deleted")
    }
}

pub(super) async fn make(client: &Client) {
    let config = r#"{"name":"GONE","subjects":["gone.*"],"storage":"file"}"#;
    ask(client, "STREAM.CREATE.GONE", config).await;
}

/// Returns the response to a successful request; `None` if the connection is lost.
async fn answer(client: &Client, subject: &str, body: String) -> Option<String> {
    let answer = client.request(subject, body, RESPONSE_LIMIT).await.ok()?;
    let answer = text(&answer);
    assert!(!answer.contains(r#""error""#), "{subject}: {answer}");
    Some(answer)
}

/// Stores messages and deletes them in several ways, until the connection is lost.
pub(super) async fn run(address: String, round: u64, promises: Shared) {
    if let Some(client) = connect(&address).await {
        let mut iteration = 0;
        while delete(&client, round, iteration, &promises).await.is_some() {
            iteration += 1;
        }
    }
}

/// Stores a message and deletes messages or a consumer. Returns `None` if the connection is lost.
async fn delete(client: &Client, round: u64, iteration: u64, promises: &Shared) -> Option<()> {
    let subject = iteration % SUBJECTS;
    let stored = answer(client, &format!("gone.{subject}"), "a leaf".to_owned()).await?;
    let sequence = field(&stored, "seq").expect("a sequence");
    match iteration % 3 {
        0 => {
            let no_erase = iteration.is_multiple_of(2);
            let body = format!(r#"{{"seq":{sequence},"no_erase":{no_erase}}}"#);
            answer(client, "$JS.API.STREAM.MSG.DELETE.GONE", body).await?;
            let mut promises = promises.lock().expect("whole");
            promises.deletions.deleted.insert(sequence);
        }
        1 => {
            let body = format!(r#"{{"filter":"gone.{subject}"}}"#);
            answer(client, "$JS.API.STREAM.PURGE.GONE", body).await?;
            let mut promises = promises.lock().expect("whole");
            promises.deletions.purged.insert(subject, sequence);
        }
        _ => {
            let name = format!("c{round}-{iteration}");
            let body = format!(
                r#"{{"stream_name":"GONE","config":{{"durable_name":"{name}","ack_policy":"none"}}}}"#
            );
            answer(
                client,
                &format!("$JS.API.CONSUMER.CREATE.GONE.{name}"),
                body,
            )
            .await?;
            let subject = format!("$JS.API.CONSUMER.DELETE.GONE.{name}");
            answer(client, &subject, String::new()).await?;
            promises
                .lock()
                .expect("whole")
                .deletions
                .consumers
                .push(name);
        }
    }
    Some(())
}

pub(super) async fn check(client: &Client, deletions: &Deletions) {
    for (subject, purged) in &deletions.purged {
        let body = format!(r#"{{"next_by_subj":"gone.{subject}"}}"#);
        let subject = "$JS.API.STREAM.MSG.GET.GONE";
        let found = client.request(subject, body, RESPONSE_LIMIT).await;
        let found = text(&found.expect("an answer"));
        let first = field(&found, "seq");
        assert!(
            first.is_none_or(|first| first > *purged),
            "purged up to {purged}: {found}"
        );
        let deleted = first.filter(|first| deletions.deleted.contains(first));
        assert_eq!(deleted, None, "it was deleted: {found}");
    }
    // Only the newest deletions are checked, because older ones were checked after an earlier start.
    for sequence in deletions.deleted.iter().rev().take(20) {
        let body = format!(r#"{{"seq":{sequence}}}"#);
        let subject = "$JS.API.STREAM.MSG.GET.GONE";
        let found = client.request(subject, body, RESPONSE_LIMIT).await;
        let found = text(&found.expect("an answer"));
        assert!(found.contains(r#""err_code":10037"#), "{sequence}: {found}");
    }
    let names = ask(client, "CONSUMER.NAMES.GONE", "").await;
    let back = deletions.consumers.iter().rev();
    let back = back.filter(|name| names.contains(&format!(r#""{name}""#)));
    assert_eq!(back.collect::<Vec<_>>(), Vec::<&String>::new());
}
