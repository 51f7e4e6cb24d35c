//! The input is the content of a stream's folder, except its log, when a server starts. Lines of `--`
//! separate documents. The first line of each document is its name, and the rest is its content, to which the
//! check adds a valid checksum. If the name begins with `!`, it is the name of a file that is written
//! unchanged. The stream's name is `S`. Its log is written first, and contains eight records.

use std::time::Duration;

use fanline_engine::jetstream::Folders;
use fanline_engine::store::{FileOptions, NewRecord, Store, StoreLimits};

use super::jetstream_account::Account;
use super::memory_disk::{MemoryDisk, MemoryFolders};

const DOCUMENTS_MAX: usize = 20;
const SEPARATOR: &[u8] = b"\n--\n";

/// Checks that a server starts with any content, and starts again with the files that it has written.
pub fn check(data: &[u8]) {
    let folders = MemoryFolders::default();
    let disk = folders.folder("S");
    write_log(&disk);
    let mut rest = Some(data);
    let mut consumers = Vec::new();
    for _ in 0..DOCUMENTS_MAX {
        let Some(here) = rest else { break };
        let end = here
            .windows(SEPARATOR.len())
            .position(|part| part == SEPARATOR);
        rest = end.map(|end| &here[end + SEPARATOR.len()..]);
        let document = &here[..end.unwrap_or(here.len())];
        let line_end = document.iter().position(|b| *b == b'\n');
        let (name, content) = document.split_at(line_end.unwrap_or(document.len()));
        let name = String::from_utf8_lossy(name);
        let content = content.get(1..).unwrap_or_default();
        match name.strip_prefix('!') {
            Some(file) => disk.write(file, content.to_vec()),
            None => write_document(&disk, &name, content),
        }
        consumers.extend(name.strip_prefix("consumer.").map(str::to_owned));
    }
    let consumers: Vec<&str> = consumers.iter().map(String::as_str).collect();
    for _ in 0..2 {
        let folders: Box<dyn Folders> = Box::new(folders.clone());
        let mut account = Account::new(Some(folders));
        account.js.take_problems();
        account.ask_all("S", &consumers);
        account.close();
    }
}

fn write_log(disk: &MemoryDisk) {
    let options = FileOptions::default();
    let limits = StoreLimits::default();
    let opened = Store::file(Box::new(disk.clone()), &options, &limits);
    let (mut store, _) = opened.expect("an empty folder");
    for number in 0..8 {
        let record = NewRecord {
            unix_nanos: 1_690_000_000_000_000_000 + number,
            subject: [&b"s.a"[..], b"s.b", b"s.c"][usize::try_from(number % 3).unwrap_or(0)],
            payload: b"by the lake",
            ..NewRecord::default()
        };
        store.append(&record).expect("there are no limits");
    }
    store.sync_now(Duration::ZERO).expect("a sound disk");
    store.close().expect("a sound disk");
}

/// Writes a document in the format of `docs/formats/log.md`.
fn write_document(disk: &MemoryDisk, name: &str, content: &[u8]) {
    let length = u32::try_from(content.len()).expect("short").to_le_bytes();
    let head = b"FDoc\x01\x00\x00\x00";
    let summed = [name.as_bytes(), head, &length, content].concat();
    let sum = crc32fast::hash(&summed).to_le_bytes();
    let escaped: String = (name.bytes())
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        })
        .collect();
    let file = format!("{escaped}.doc");
    disk.write(&file, [&head[..], &sum, &length, content].concat());
}
