//! Tests with malicious backups, because a backup consists of bytes from a client.

use super::*;
use crate::codec::s2::{Level, Packer, STREAM_HEAD};
use crate::limits::AccountLimits;

/// Returns a backup of these records in the format of `docs/formats/backup.md`.
fn backup(records: &[(u64, &str, usize)]) -> Vec<u8> {
    let mut archive = b"FLBackup\x01\x00".to_vec();
    let mut frame = |kind: u8, body: &[u8]| {
        archive.push(kind);
        archive.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        archive.extend(crc32fast::hash(body).to_le_bytes());
        archive.extend(body);
    };
    for (sequence, subject, payload_bytes) in records {
        let mut body = sequence.to_le_bytes().to_vec();
        body.extend([0; 16]);
        body.extend(u16::try_from(subject.len()).unwrap().to_le_bytes());
        body.extend([0; 4]);
        body.extend(subject.as_bytes());
        body.extend(vec![b'x'; *payload_bytes]);
        frame(1, &body);
    }
    frame(4, &[]);
    let mut sent = STREAM_HEAD.to_vec();
    Packer::default().pack(Level::Fast, &archive, &mut sent);
    sent
}

/// Sends a backup in one chunk and the end. Returns the answers.
fn restore(account: &mut Account, sent: &[u8]) -> Vec<String> {
    let config = r#"{"config":{"name":"BIRDS","subjects":["birds.*"],"storage":"memory"}}"#;
    let answer = account.ask("STREAM.RESTORE.BIRDS", config);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let deliver = answer["deliver_subject"].as_str().unwrap().to_owned();
    let piece = Message {
        subject: deliver.as_bytes(),
        reply: b"reply",
        payload: sent,
        ..Message::default()
    };
    account.js.handle(&piece, account.now, &mut account.port);
    let mut answers = account.port.take_published();
    answers.extend(account.send(&deliver, "", ""));
    answers
}

/// Regression: with a line feed in a subject, a client could insert any protocol lines into deliveries.
#[test]
fn record_with_invalid_subject_is_not_restored() {
    for subject in ["birds.heron\r\nPING\r\n", "birds. ", "\t", ""] {
        let mut account = Account::new();
        let answers = restore(&mut account, &backup(&[(1, subject, 5)]));
        assert!(answers[0].contains("no valid subject"), "{answers:?}");
        assert_eq!(account.error("STREAM.INFO.BIRDS", ""), 10059);
    }
}

/// Regression: a few kilobytes that expanded to gigabytes filled the memory, in spite of the account's
/// limits.
#[test]
fn restore_respects_account_limits() {
    let limits = AccountLimits {
        max_memory: 10_000,
        ..AccountLimits::default()
    };
    let settings = Settings {
        limits,
        ..Settings::default()
    };
    let records = |count| (1..=count).map(|sequence| (sequence, "birds.heron", 1000));
    for (count, is_taken) in [(9, true), (10, false), (1000, false)] {
        let mut account = Account::over(settings.clone(), None);
        let records: Vec<_> = records(count).collect();
        let answers = restore(&mut account, &backup(&records));
        let is_refused = answers.iter().any(|answer| answer.contains("10002"));
        assert_eq!(is_refused, !is_taken, "{count}: {answers:?}");
        if is_taken {
            assert_eq!(account.messages("BIRDS"), count);
        } else {
            assert_eq!(account.error("STREAM.INFO.BIRDS", ""), 10059);
        }
    }
}
