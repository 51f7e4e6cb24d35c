//! Tests of the state after the server has stopped or crashed.

use std::collections::BTreeMap;

use super::*;
use crate::store::simulated_disk::{Dice, SimulatedDisk};
use crate::store::{Disk, DiskError};

/// Folders that survive a restart.
#[derive(Clone, Default)]
pub(super) struct DiskFolders(BTreeMap<String, SimulatedDisk>);

impl DiskFolders {
    pub(super) fn disk(&self, stream: &str) -> SimulatedDisk {
        self.0[stream].clone()
    }
}

impl Folders for DiskFolders {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let used = self.0.iter().filter(|(_, disk)| !disk.names().is_empty());
        Ok(used.map(|(name, _)| name.clone()).collect())
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(self.0[stream].clone()))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let disk = self.0.get_mut(stream).ok_or(DiskError::NotFound)?;
        disk.names().iter().try_for_each(|name| disk.remove(name))
    }
}

pub(super) fn start(folders: &DiskFolders) -> Account {
    Account::over(Settings::default(), Some(Box::new(folders.clone())))
}

/// Creates folders with these names. All accounts that are started with them share the folders.
pub(super) fn disk_folders(names: &[&str]) -> DiskFolders {
    DiskFolders(
        names
            .iter()
            .map(|name| ((*name).to_owned(), SimulatedDisk::new()))
            .collect(),
    )
}

/// Returns the next sync. If there is none, sends the acknowledgements of durable records.
fn poll_sync(account: &mut Account) -> Option<StreamSync> {
    let now = account.now.since_start;
    let sync = account.js.poll_sync(now);
    if sync.is_none() {
        account.js.release_acks(now, &mut account.port);
    }
    sync
}

/// Performs syncs until none is requested.
fn sync(account: &mut Account, folders: &DiskFolders) {
    while let Some(sync) = poll_sync(account) {
        let disk = &folders.0[&sync.name];
        let result = disk.clone().perform(&sync.request, &mut Dice::new(1));
        account.js.handle_synced(
            sync.stream,
            sync.request.id,
            result,
            account.now.since_start,
        );
        account.js.settle(account.now, &mut account.port);
    }
}

fn create(account: &mut Account, name: &str) {
    let body = format!(r#"{{"name":"{name}","subjects":["{name}.*"]}}"#);
    assert_eq!(account.error(&format!("STREAM.CREATE.{name}"), &body), 0);
}

/// Creates a stream with five records, and a durable consumer that has acknowledged the first.
fn birds(folders: &DiskFolders) -> Account {
    let mut account = start(folders);
    create(&mut account, "BIRDS");
    for bird in ["heron", "crane", "owl", "jay", "wren"] {
        let answers = account.send(&format!("BIRDS.{bird}"), "", bird);
        assert!(
            answers.is_empty(),
            "acknowledged before it is on the disk: {answers:?}"
        );
    }
    sync(&mut account, folders);
    let answers = account.port.take_published();
    assert_eq!(answers[4], r#"reply {"stream":"BIRDS","seq":5}"#);
    let body =
        r#"{"stream_name":"BIRDS","config":{"durable_name":"watch","ack_policy":"explicit"}}"#;
    assert_eq!(account.error("CONSUMER.CREATE.BIRDS.watch", body), 0);
    account.port.interest.insert(b"reply".to_vec());
    let pulled = account.send("$JS.API.CONSUMER.MSG.NEXT.BIRDS.watch", "", "1");
    assert_eq!(pulled.len(), 1, "{pulled:?}");
    account.send(
        "$JS.ACK.BIRDS.watch.1.1.1.1700000000000000000.4",
        "",
        "+ACK",
    );
    account.wait(Duration::from_secs(1));
    sync(&mut account, folders);
    account.port.take_published();
    account
}

#[test]
fn streams_and_consumers_are_recovered() {
    let folders = disk_folders(&["BIRDS"]);
    birds(&folders);
    let mut account = start(&folders);
    assert_eq!(account.js.take_problems(), Vec::<String>::new());
    assert!(account.port.interest.contains(&b"BIRDS.*"[..]));
    let stream = account.ask("STREAM.INFO.BIRDS", "");
    assert!(stream.contains(r#""messages":5,"#), "{stream}");
    assert!(
        stream.contains(r#""created":"2023-11-14T22:13:20Z""#),
        "{stream}"
    );
    let consumer = account.ask("CONSUMER.INFO.BIRDS.watch", "");
    assert!(
        consumer.contains(r#""ack_floor":{"consumer_seq":1,"stream_seq":1"#),
        "{consumer}"
    );
    assert!(consumer.contains(r#""num_pending":4"#), "{consumer}");
    assert_eq!(account.error("STREAM.DELETE.BIRDS", ""), 0);
    assert!(folders.0["BIRDS"].names().is_empty());
}

/// Regression: the answer to a duplicate waited until the sequence of the original message was synced. No
/// record was stored under that sequence, so the sync never came, and all later answers of the stream waited
/// behind this one.
#[test]
fn duplicate_of_a_message_that_no_consumer_needs_is_answered() {
    let folders = disk_folders(&["NEWS"]);
    let mut account = start(&folders);
    let body = r#"{"name":"NEWS","subjects":["NEWS.*"],"retention":"interest"}"#;
    account.send("$JS.API.STREAM.CREATE.NEWS", "", body);
    sync(&mut account, &folders);
    account.port.take_published();
    let headers = "NATS/1.0\r\nNats-Msg-Id: same\r\n\r\n";
    let first = account.send("NEWS.a", headers, "1");
    assert_eq!(first, [r#"reply {"stream":"NEWS","seq":1}"#]);
    let again = account.send("NEWS.a", headers, "1");
    assert_eq!(
        again,
        [r#"reply {"stream":"NEWS","seq":1,"duplicate": true}"#]
    );
    let next = account.send("NEWS.a", "", "2");
    assert_eq!(next, [r#"reply {"stream":"NEWS","seq":2}"#]);
}

#[test]
fn answered_publishes_survive_a_crash() {
    for seed in 0..50 {
        let folders = disk_folders(&["BIRDS"]);
        let mut account = birds(&folders);
        account.send("BIRDS.late", "", "not on the disk yet");
        folders.0["BIRDS"].crash(&mut Dice::new(seed));
        let mut account = start(&folders);
        let stream = account.ask("STREAM.INFO.BIRDS", "");
        let survives = ["5", "6"].map(|count| stream.contains(&format!(r#""messages":{count},"#)));
        assert!(survives.contains(&true), "seed {seed}: {stream}");
        assert_eq!(
            account.error("CONSUMER.INFO.BIRDS.watch", ""),
            0,
            "seed {seed}"
        );
    }
}

#[test]
fn flipped_bit_loses_at_most_one_record() {
    for seed in 0..200 {
        let folders = disk_folders(&["BIRDS"]);
        birds(&folders);
        let (file, at) = folders.0["BIRDS"].flip(&mut Dice::new(seed));
        let mut account = start(&folders);
        let stream = account.ask("STREAM.INFO.BIRDS", "");
        let left = ["4", "5"].map(|count| stream.contains(&format!(r#""messages":{count},"#)));
        assert!(
            left.contains(&true),
            "seed {seed}, {file} at {at}: {stream}"
        );
        let consumer = account.error("CONSUMER.INFO.BIRDS.watch", "");
        assert_eq!(consumer, 0, "seed {seed}, {file} at {at}");
    }
}

/// A folder without documents affects only its own stream. The server starts with all others.
#[test]
fn unreadable_folder_affects_only_its_stream() {
    let folders = disk_folders(&["BIRDS", "FISH"]);
    let mut account = start(&folders);
    create(&mut account, "BIRDS");
    create(&mut account, "FISH");
    sync(&mut account, &folders);
    let mut disk = folders.0["FISH"].clone();
    for name in disk.names() {
        if name.contains("stream") {
            let file = disk.open(&name, false).unwrap();
            disk.write_at(file, 0, b"nothing").unwrap();
        }
    }
    let mut account = start(&folders);
    let problems = account.js.take_problems();
    assert!(
        problems.iter().any(|problem| problem.contains("FISH")),
        "{problems:?}"
    );
    assert_eq!(account.error("STREAM.INFO.BIRDS", ""), 0);
    assert_eq!(account.error("STREAM.INFO.FISH", ""), 10194);
    // The unreadable files are not overwritten by a new stream of the same name.
    assert_eq!(
        account.error("STREAM.CREATE.FISH", r#"{"name":"FISH"}"#),
        10194
    );
    assert_eq!(account.error("STREAM.DELETE.FISH", ""), 0);
    create(&mut account, "FISH");
}

/// A consumer with `durable_only` delivers no record that a power cut may remove. The acknowledgement of a
/// delivery counts even if a power cut has lost the consumer's state.
#[test]
fn durable_only_consumer_delivers_nothing_that_a_crash_removes() {
    let folders = disk_folders(&["BIRDS"]);
    let mut account = start(&folders);
    create(&mut account, "BIRDS");
    let body = r#"{"stream_name":"BIRDS","config":{"durable_name":"watch","ack_policy":"explicit",
        "filter_subject":"BIRDS.heron","deliver_subject":"d","metadata":{"fanline.durable_only":"true"}}}"#;
    account.port.interest.insert(b"d".to_vec());
    assert_eq!(account.error("CONSUMER.CREATE.BIRDS.watch", body), 0);
    sync(&mut account, &folders);
    account.port.take_published();
    for bird in ["heron", "crane", "heron", "heron"] {
        let answers = account.send(&format!("BIRDS.{bird}"), "", bird);
        assert!(
            answers.is_empty(),
            "delivered before it is on the disk: {answers:?}"
        );
    }
    sync(&mut account, &folders);
    let delivered = |answers: &[String]| {
        answers
            .iter()
            .filter(|answers| answers.starts_with("d "))
            .count()
    };
    let answers = account.port.take_published();
    assert_eq!(delivered(&answers), 3, "{answers:?}");
    // The power cut loses the consumer's state, which is not synced yet.
    folders.0["BIRDS"].crash(&mut Dice::new(1));
    let mut account = start(&folders);
    account.send("$JS.ACK.BIRDS.watch.1.3.2.1700000000000000000.1", "", "");
    let lost = account.ask("CONSUMER.INFO.BIRDS.watch", "");
    assert!(lost.contains(r#""num_pending":2"#), "{lost}");
    account.port.interest.insert(b"d".to_vec());
    let now = account.now;
    account.js.handle_interest(b"d", now, &mut account.port);
    account.js.settle(now, &mut account.port);
    let answers = account.port.take_published();
    assert_eq!(delivered(&answers), 2, "{answers:?}");
    for sequence in [1, 4] {
        let ack = format!("$JS.ACK.BIRDS.watch.1.{sequence}.1.1700000000000000000.0");
        account.send(&ack, "", "");
    }
    let info = account.ask("CONSUMER.INFO.BIRDS.watch", "");
    let done = [
        r#""num_ack_pending":0"#,
        r#""num_pending":0"#,
        r#""stream_seq":4"#,
    ];
    assert!(done.iter().all(|part| info.contains(part)), "{info}");
}

/// Publishes a message while the disk refuses writes, and returns the error code.
fn refused(account: &mut Account, folders: &DiskFolders) -> u64 {
    account.port.take_published();
    // The payload is longer than the zeros that the store has already written after the last record.
    let mut answers = account.send("BIRDS.finch", "", &"no room".repeat(1000));
    sync(account, folders);
    answers.append(&mut account.port.take_published());
    let [answers] = &answers[..] else {
        panic!("one answer: {answers:?}");
    };
    let code = answers
        .split_once(r#""err_code":"#)
        .unwrap_or_else(|| panic!("{answers}"));
    code.1[..5].parse().unwrap()
}

#[test]
fn full_disk_refuses_only_new_records() {
    let folders = disk_folders(&["BIRDS"]);
    let mut account = birds(&folders);
    let disk = folders.0["BIRDS"].clone();
    disk.set_room(Some(disk.used_bytes()));
    for _ in 0..3 {
        assert_eq!(refused(&mut account, &folders), 10023);
    }
    let read = account.ask("STREAM.MSG.GET.BIRDS", r#"{"seq":2}"#);
    assert!(read.contains("message"), "{read}");
    let problems = account.js.take_problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    disk.set_room(None);
    account.wait(Duration::from_secs(1));
    sync(&mut account, &folders);
    account.port.take_published();
    account.send("BIRDS.finch", "", "there is room");
    sync(&mut account, &folders);
    let answers = account.port.take_published();
    assert!(
        answers[0].starts_with(r#"reply {"stream":"BIRDS","seq":"#),
        "{answers:?}"
    );
    assert_eq!(account.js.take_problems().len(), 1);
    // The refused record may be stored, because the result of its write is unknown.
    let kept = account.ask("STREAM.INFO.BIRDS", "");
    disk.crash(&mut Dice::new(3));
    let mut account = start(&folders);
    let left = account.ask("STREAM.INFO.BIRDS", "");
    let messages = |info: &str| info.split_once(r#""messages":"#).unwrap().1[..1].to_owned();
    assert_eq!(messages(&kept), messages(&left));
}

/// Regression: a failed sync was requested again at once, which kept the server busy as long as the disk
/// failed.
#[test]
fn failing_disk_is_retried_after_a_delay() {
    let folders = disk_folders(&["BIRDS"]);
    let mut account = birds(&folders);
    let disk = folders.0["BIRDS"].clone();
    disk.set_failing_syncs(100);
    assert_eq!(refused(&mut account, &folders), 10077);
    for _ in 0..10 {
        account.js.settle(account.now, &mut account.port);
        let next = poll_sync(&mut account);
        assert_eq!(next, None);
        let at = account.js.next_timeout();
        assert!(at.is_some_and(|at| at > account.now.since_start), "{at:?}");
        // The next attempt fails, too.
        account.wait(Duration::from_millis(300));
        sync(&mut account, &folders);
    }
    assert_eq!(account.js.take_problems().len(), 1);
    disk.set_failing_syncs(0);
    account.wait(Duration::from_millis(300));
    sync(&mut account, &folders);
    assert_eq!(account.js.take_problems().len(), 1);
    account.send("BIRDS.finch", "", "at last");
    sync(&mut account, &folders);
    let answers = account.port.take_published();
    let last = answers.last().unwrap();
    assert!(
        last.starts_with(r#"reply {"stream":"BIRDS","seq":"#),
        "{answers:?}"
    );
}

#[test]
fn modes_without_sync_are_answered_at_once() {
    for mode in ["interval", "none"] {
        let folders = disk_folders(&["BIRDS"]);
        let mut account = start(&folders);
        let body = format!(r#"{{"name":"BIRDS","subjects":["BIRDS.*"],"sync":"{mode}"}}"#);
        assert_eq!(account.error("STREAM.CREATE.BIRDS", &body), 0);
        account.send("BIRDS.owl", "", "hoo");
        let wanted = poll_sync(&mut account);
        assert_eq!(
            account.port.take_published(),
            [r#"reply {"stream":"BIRDS","seq":1}"#],
            "{mode}"
        );
        let at = account.js.next_timeout();
        assert!(
            at.is_none_or(|at| at > account.now.since_start),
            "{mode}: {at:?}"
        );
        assert!(wanted.is_none() || mode == "interval");
    }
}

#[test]
fn close_syncs_everything() {
    let folders = disk_folders(&["BIRDS"]);
    let mut account = birds(&folders);
    assert_eq!(account.send("BIRDS.late", "", "just in time").len(), 0);
    account.js.close(account.now, &mut account.port);
    assert_eq!(
        account.port.take_published(),
        [r#"reply {"stream":"BIRDS","seq":6}"#]
    );
    folders.0["BIRDS"].crash(&mut Dice::new(5));
    let mut account = start(&folders);
    assert_eq!(account.js.take_problems(), Vec::<String>::new());
    let stream = account.ask("STREAM.INFO.BIRDS", "");
    assert!(stream.contains(r#""messages":6,"#), "{stream}");
}

/// Operations on the stream: subject, payload, and then the request for a description with a part of its
/// expected answer.
const OPERATIONS: [(&str, &str, [&str; 2]); 6] = [
    (
        "$JS.ACK.BIRDS.watch.1.2.2.1700000000000000000.3",
        "+ACK",
        [
            "CONSUMER.INFO.BIRDS.watch",
            r#""ack_floor":{"consumer_seq":2,"stream_seq":2"#,
        ],
    ),
    (
        "$JS.API.STREAM.MSG.DELETE.BIRDS",
        r#"{"seq":5}"#,
        ["STREAM.INFO.BIRDS", r#""messages":4"#],
    ),
    (
        "$JS.API.STREAM.PURGE.BIRDS",
        r#"{"filter":"BIRDS.owl"}"#,
        ["STREAM.INFO.BIRDS", r#""messages":3"#],
    ),
    (
        "$JS.API.CONSUMER.RESET.BIRDS.watch",
        r#"{"seq":4}"#,
        [
            "CONSUMER.INFO.BIRDS.watch",
            r#""delivered":{"consumer_seq":0,"stream_seq":3"#,
        ],
    ),
    (
        "$JS.API.CONSUMER.DELETE.BIRDS.watch",
        "",
        ["CONSUMER.INFO.BIRDS.watch", r#""err_code":10014"#],
    ),
    (
        "$JS.API.STREAM.PURGE.BIRDS",
        "",
        ["STREAM.INFO.BIRDS", r#""messages":0"#],
    ),
];

/// Deletions and confirmed acknowledgements are durable when they are answered.
#[test]
fn deletions_and_confirmed_acks_survive_a_crash() {
    for seed in 0..50 {
        let folders = disk_folders(&["BIRDS"]);
        let mut account = birds(&folders);
        account.send("$JS.API.CONSUMER.MSG.NEXT.BIRDS.watch", "", "1");
        for (subject, payload, [question, expected]) in OPERATIONS {
            let answers = account.send(subject, "", payload);
            assert_eq!(answers, [""; 0], "{subject}: before it is on the disk");
            sync(&mut account, &folders);
            let answers = account.port.take_published();
            assert!(
                matches!(&answers[..], [answers] if answers.starts_with("reply") && !answers.contains("error")),
                "{subject}: {answers:?}"
            );
            folders.0["BIRDS"].crash(&mut Dice::new(seed));
            account = start(&folders);
            assert_eq!(
                account.js.take_problems(),
                [""; 0],
                "seed {seed}: {subject}"
            );
            let found = account.ask(question, "");
            assert!(found.contains(expected), "seed {seed}: {subject}: {found}");
        }
    }
}

#[test]
fn failing_disk_confirms_no_acknowledgement() {
    let folders = disk_folders(&["BIRDS"]);
    let mut account = birds(&folders);
    account.send("$JS.API.CONSUMER.MSG.NEXT.BIRDS.watch", "", "1");
    folders.0["BIRDS"].set_failing_syncs(100);
    for (subject, payload, _) in [OPERATIONS[0], OPERATIONS[1]] {
        assert_eq!(account.send(subject, "", payload), [""; 0]);
    }
    sync(&mut account, &folders);
    let answers = account.port.take_published();
    assert!(
        matches!(&answers[..], [answers] if answers.contains("msg_delete") && answers.contains("10077")),
        "{answers:?}"
    );
}

/// The folders of a disk that removes nothing.
struct StuckFolders(DiskFolders);

impl Folders for StuckFolders {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.0.list()
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        self.0.open(stream)
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        Err(DiskError::Other(5))
    }
}

#[test]
fn deleted_stream_confirms_pending_changes_only_if_its_folder_is_removed() {
    let check = |is_stuck: bool, expected: [&str; 2]| {
        let folders = disk_folders(&["BIRDS"]);
        drop(birds(&folders));
        let folders: Box<dyn Folders> = if is_stuck {
            Box::new(StuckFolders(folders))
        } else {
            Box::new(folders)
        };
        let mut account = Account::over(Settings::default(), Some(folders));
        let deletion = account.send("$JS.API.STREAM.MSG.DELETE.BIRDS", "", r#"{"seq":2}"#);
        assert_eq!(deletion, [""; 0], "before it is on the disk");
        let answers = account.send("$JS.API.STREAM.DELETE.BIRDS", "", "");
        for (answer, expected) in answers.iter().zip(expected) {
            assert!(answer.contains(expected), "{is_stuck}: {answers:?}");
        }
        assert_eq!(answers.len(), 2, "{answers:?}");
    };
    check(
        false,
        [
            r#"msg_delete_response","success":true"#,
            r#"stream_delete_response","success":true"#,
        ],
    );
    check(
        true,
        [
            r#"msg_delete_response","error"#,
            r#"stream_delete_response","error"#,
        ],
    );
}

/// When the records of a copy are removed, the copy's log does not show any more how far the copy was.
#[test]
fn source_resumes_after_its_records_were_removed() {
    let folders = disk_folders(&["BIRDS", "COPY"]);
    let mut account = start(&folders);
    create(&mut account, "BIRDS");
    let body = r#"{"name":"COPY","sources":[{"name":"BIRDS"}]}"#;
    assert_eq!(account.error("STREAM.CREATE.COPY", body), 0);
    for bird in ["heron", "crane"] {
        account.send(&format!("BIRDS.{bird}"), "", bird);
    }
    sync(&mut account, &folders);
    account.send("$JS.API.STREAM.PURGE.COPY", "", "");
    sync(&mut account, &folders);
    account.wait(Duration::from_secs(1));
    sync(&mut account, &folders);
    let mut account = start(&folders);
    account.send("BIRDS.owl", "", "owl");
    sync(&mut account, &folders);
    account.port.take_published();
    let info = account.ask("STREAM.INFO.COPY", "");
    assert!(info.contains(r#""messages":1,"#), "{info}");
    assert!(info.contains(r#""seq":3,"#), "{info}");
}
