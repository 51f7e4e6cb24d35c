//! Stored streams on disk: encryption and compression.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fanline_server::client::Client;
use fanline_server::{
    Cipher, Encryption, Handle, JetStreamOptions, Options, Secret, Server, StartError,
    StoreKeyError,
};

use crate::folder::TempFolder;
use crate::jetstream::{ask, stop};
use crate::raw::options;

const RECORDS: usize = 20;
const SUBJECT: &str = "plans.for.tonight";
const PAYLOAD: &str = "meet me at the old mill when the lamp is out";

fn with_keys(folder: &TempFolder, secret: Option<&str>, previous: Option<&str>) -> Options {
    let encryption = |secret: &str| Encryption {
        previous_secret: previous.map(Secret::new),
        ..Encryption::new(Secret::new(secret))
    };
    Options {
        jetstream: Some(JetStreamOptions {
            store_dir: Some(folder.0.clone()),
            encryption: secret.map(encryption),
            ..JetStreamOptions::default()
        }),
        ..options(1)
    }
}

fn start(folder: &TempFolder, secret: &str) -> Handle {
    Server::start(with_keys(folder, Some(secret), None)).expect("the server starts")
}

fn refusal(options: Options) -> StartError {
    Server::start(options).expect_err("it is encrypted otherwise")
}

/// Returns all files below a folder with their contents, except the lock file.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else if !path.ends_with("lock") {
            let bytes = fs::read(&path).expect("readable");
            found.insert(path, bytes);
        }
    }
    found
}

fn contains(folder: &TempFolder, text: &str) -> bool {
    let holds = |file: &Vec<u8>| file.windows(text.len()).any(|part| part == text.as_bytes());
    files(&folder.0).values().any(holds)
}

async fn create(client: &Client, name: &str, more: &str) {
    let config = format!(r#"{{"name":"{name}","subjects":["{name}.>"]{more}}}"#);
    let made = ask(client, &format!("$JS.API.STREAM.CREATE.{name}"), &config).await;
    assert!(made.contains(r#""did_create":true"#), "{made}");
}

async fn info(client: &Client, name: &str) -> String {
    ask(client, &format!("$JS.API.STREAM.INFO.{name}"), "").await
}

/// Publishes messages and creates a consumer.
async fn fill(server: &Handle) {
    let client = server.client().await.expect("connected");
    create(&client, "plans", "").await;
    for _ in 0..RECORDS {
        let ack = ask(&client, SUBJECT, PAYLOAD).await;
        assert!(ack.contains(r#""seq""#), "{ack}");
    }
    let config = r#"{"stream_name":"plans","config":{"durable_name":"d","ack_policy":"explicit","filter_subject":"plans.for.tonight"}}"#;
    let made = ask(&client, "$JS.API.CONSUMER.DURABLE.CREATE.plans.d", config).await;
    assert!(!made.contains("error"), "{made}");
}

async fn assert_all_is_there(server: &Handle) {
    let client = server.client().await.expect("connected");
    let info = info(&client, "plans").await;
    assert!(info.contains(&format!(r#""messages":{RECORDS}"#)), "{info}");
    assert!(info.contains(r#""consumer_count":1"#), "{info}");
    let wanted = format!(r#"{{"last_by_subj":"{SUBJECT}"}}"#);
    let record = ask(&client, "$JS.API.STREAM.MSG.GET.plans", &wanted).await;
    assert!(
        record.contains(r#""data":"bWVldCBtZSBhdCB0aGUg"#),
        "{record}"
    );
}

#[tokio::test]
async fn encrypted_store_needs_its_key() {
    let folder = TempFolder::new("encrypted");
    let server = start(&folder, "swordfish");
    fill(&server).await;
    stop(&server).await;
    assert!(!contains(&folder, "old mill") && !contains(&folder, "tonight"));
    let before = files(&folder.0);
    let missing = refusal(with_keys(&folder, None, None));
    let expected = format!(
        "the store folder {} cannot be used: it is encrypted, and no encryption key was given",
        folder.0.join("jetstream/fanline").display()
    );
    assert_eq!(missing.to_string(), expected);
    for (secret, previous) in [("haddock", None), ("haddock", Some("cod"))] {
        let wrong = refusal(with_keys(&folder, Some(secret), previous));
        let text = "it is encrypted with another encryption key";
        assert!(wrong.to_string().ends_with(text), "{wrong}");
    }
    // The failed starts have changed no file.
    assert!(before == files(&folder.0));
    let server = start(&folder, "swordfish");
    assert_all_is_there(&server).await;
    stop(&server).await;
}

#[tokio::test]
async fn key_and_cipher_can_be_changed() {
    let folder = TempFolder::new("rekeyed");
    let server = start(&folder, "swordfish");
    fill(&server).await;
    stop(&server).await;
    let mut changed = with_keys(&folder, Some("haddock"), Some("swordfish"));
    if let Some(jetstream) = &mut changed.jetstream
        && let Some(encryption) = &mut jetstream.encryption
    {
        encryption.cipher = Cipher::ChaCha;
    }
    let server = Server::start(changed).expect("the server starts");
    assert_all_is_there(&server).await;
    let client = server.client().await.expect("connected");
    ask(&client, SUBJECT, PAYLOAD).await;
    stop(&server).await;
    let wrong = refusal(with_keys(&folder, Some("swordfish"), None));
    assert!(
        matches!(
            wrong,
            StartError::StoreKey {
                source: StoreKeyError::Wrong,
                ..
            }
        ),
        "{wrong}"
    );
    // One copy of the key is enough, and the other is restored.
    fs::write(folder.0.join("jetstream/fanline/key"), "no key at all").expect("written");
    let server = start(&folder, "haddock");
    let client = server.client().await.expect("connected");
    let info = info(&client, "plans").await;
    let expected = format!(r#""messages":{}"#, RECORDS + 1);
    assert!(info.contains(&expected), "{info}");
    stop(&server).await;
    fs::remove_file(folder.0.join("jetstream/fanline/key.copy")).expect("removed");
    stop(&start(&folder, "haddock")).await;
    assert!(!contains(&folder, "old mill"));
}

#[tokio::test]
async fn a_store_in_clear_is_encrypted_from_then_on() {
    let folder = TempFolder::new("encrypted-late");
    let server = Server::start(with_keys(&folder, None, None)).expect("the server starts");
    fill(&server).await;
    stop(&server).await;
    assert!(contains(&folder, "old mill"));
    let server = start(&folder, "swordfish");
    assert_all_is_there(&server).await;
    let client = server.client().await.expect("connected");
    ask(&client, SUBJECT, "the lamp is out").await;
    ask(&client, SUBJECT, "burn this letter").await;
    stop(&server).await;
    assert!(!contains(&folder, "burn this letter"));
}

#[tokio::test]
async fn a_compressed_stream_takes_less() {
    let folder = TempFolder::new("compressed");
    let server = Server::start(with_keys(&folder, None, None)).expect("the server starts");
    let client = server.client().await.expect("connected");
    let text = "all the same words again and again, ".repeat(50);
    for (name, more) in [("plain", ""), ("packed", r#","compression":"s2""#)] {
        create(&client, name, more).await;
        for _ in 0..100 {
            ask(&client, &format!("{name}.x"), &text).await;
        }
    }
    let info = info(&client, "packed").await;
    assert!(info.contains(r#""compression":"s2""#), "{info}");
    stop(&server).await;
    let streams = folder.0.join("jetstream/fanline/streams/$G");
    let used = |name: &str| -> usize { files(&streams.join(name)).values().map(Vec::len).sum() };
    assert!(used("packed") * 4 < used("plain"));
    let server = Server::start(with_keys(&folder, None, None)).expect("the server starts");
    let client = server.client().await.expect("connected");
    let record = ask(&client, "$JS.API.STREAM.MSG.GET.packed", r#"{"seq":100}"#).await;
    assert!(
        record.contains(r#""data":"YWxsIHRoZSBzYW1lIHdvcmRz"#),
        "{record}"
    );
    stop(&server).await;
}
