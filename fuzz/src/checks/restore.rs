//! The input is a backup of a stream, which is restored. The bits of its first byte choose the way: 1 sends
//! the backup in chunks of a few bytes, 2 compresses it, 4 restores a stream on disk, and 8 sends the rest
//! unchanged. Without bit 8, the rest is the frames of the archive. Each frame has one byte for its kind and
//! two bytes for its length before its content. The check adds lengths and checksums.

use fanline_engine::codec::s2::{Level, Packer, STREAM_HEAD};
use fanline_engine::jetstream::Folders;

use super::jetstream_account::{Account, Owned};
use super::memory_disk::MemoryFolders;

const FRAMES_MAX: usize = 100;

/// Checks that a stream that was restored from any backup responds to all requests, also after a restart.
pub fn check(data: &[u8]) {
    let Some((manners, rest)) = data.split_first() else {
        return;
    };
    let sent = match manners & 8 {
        0 => framed(rest, manners & 2 != 0),
        _ => rest.to_vec(),
    };
    let folders = MemoryFolders::default();
    let boxed = || Some(Box::new(folders.clone()) as Box<dyn Folders>);
    let mut account = Account::new(boxed());
    let storage = if manners & 4 == 0 { "memory" } else { "file" };
    let config = format!(
        r#"{{"config":{{"name":"S","subjects":["s.*"],"storage":"{storage}","allow_direct":true,"allow_msg_ttl":true,"compression":"s2"}}}}"#
    );
    account.ask("$JS.API.STREAM.RESTORE.S", &config);
    let step = if manners & 1 == 0 { 4096 } else { 7 };
    for chunk in sent.chunks(step).chain([&[][..]]) {
        account.handle(&Owned {
            subject: account.port.deliver_subject.clone(),
            reply: b"reply".to_vec(),
            headers: Vec::new(),
            payload: chunk.to_vec(),
        });
    }
    account.ask_all("S", &["c", "d"]);
    account.close();
    let mut account = Account::new(boxed());
    account.ask_all("S", &["c", "d"]);
    account.close();
}

fn framed(mut rest: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut archive = b"FLBackup\x01\x00".to_vec();
    for _ in 0..FRAMES_MAX {
        let Some(([kind, low, high], after)) = rest.split_first_chunk() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (body, after) = after.split_at(length);
        rest = after;
        archive.push(*kind);
        archive.extend(u32::try_from(length).expect("16 bits").to_le_bytes());
        archive.extend(crc32fast::hash(body).to_le_bytes());
        archive.extend_from_slice(body);
    }
    let mut sent = STREAM_HEAD.to_vec();
    let level = if is_compressed {
        Level::Fast
    } else {
        Level::Uncompressed
    };
    Packer::default().pack(level, &archive, &mut sent);
    sent
}
