//! JetStream by default, and its storage folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{fanline, seen};

/// A data folder that is removed after the test.
struct Data(PathBuf);

impl Data {
    fn new(name: &str) -> Self {
        let name = format!("fanline-data-{name}-{}", std::process::id());
        Data(std::env::temp_dir().join(name))
    }

    fn serve(&self) -> Command {
        let mut command = fanline();
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("XDG_DATA_HOME", &self.0);
        command
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and returns its output up to a line that contains this text.
fn started(mut command: Command, last: &str) -> (Running, String) {
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let stderr = child.stderr.take().expect("piped");
    let running = Running(child);
    let mut output = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line.expect("readable");
        output += &line;
        output.push('\n');
        if line.contains(last) {
            return (running, output);
        }
    }
    panic!("it ended: {output}");
}

fn refused(command: &mut Command) -> String {
    let (code, _, output) = seen(&command.output().expect("the program runs"));
    assert_eq!(code, Some(1), "{output}");
    output
}

#[test]
fn streams_are_stored_in_the_users_data_folder() {
    let data = Data::new("default");
    let (first, output) = started(data.serve(), "Try it");
    let folder = data.0.join("fanline/jetstream/fanline");
    let expected = format!("JetStream stores streams in {}\n", folder.display());
    assert!(output.contains(&expected), "{output}");
    assert!(folder.join("streams").is_dir());
    let second = refused(&mut data.serve());
    let expected = format!(
        "the store folder {} is in use by another server (process {}); --store-dir",
        folder.display(),
        first.0.id()
    );
    assert!(second.contains(&expected), "{second}");
}

#[test]
fn no_jetstream_stores_nothing() {
    let data = Data::new("none");
    let mut command = data.serve();
    command.arg("--no-jetstream");
    let (_, output) = started(command, "Try it");
    assert!(!output.contains("JetStream"), "{output}");
    let mut command = fanline();
    command
        .args(["-a", "127.0.0.1", "-p", "-1"])
        .env("XDG_DATA_HOME", &data.0);
    let (_, output) = started(command, "Server is ready");
    assert!(!output.contains("JetStream"), "{output}");
    assert!(!Path::new(&data.0).exists());
}

#[test]
fn error_names_a_folder_that_cannot_be_created() {
    let data = Data::new("file");
    std::fs::write(&data.0, "").expect("written");
    let output = refused(&mut data.serve());
    let expected = format!(
        "the store folder {} cannot be used",
        data.0.join("fanline/jetstream/fanline").display()
    );
    assert!(output.contains(&expected), "{output}");
    assert!(output.contains("--no-jetstream"), "{output}");
    std::fs::remove_file(&data.0).expect("removed");
}

#[test]
fn streams_are_encrypted_with_the_key_file() {
    let data = Data::new("encrypted");
    std::fs::create_dir_all(&data.0).expect("made");
    let file = |name: &str, content: &str| {
        let path = data.0.join(name);
        std::fs::write(&path, content).expect("written");
        path
    };
    let with = |flag: &str, path: &Path| {
        let mut command = data.serve();
        command.arg(flag).arg(path);
        command
    };
    const FLAG: &str = "--encryption-key-file";
    drop(started(with(FLAG, &file("key", "swordfish\n")), "Try it"));
    // The line break that an editor adds does not matter.
    drop(started(with(FLAG, &file("same", "swordfish")), "Try it"));
    let output = refused(&mut data.serve());
    assert!(
        output.contains("set the file with the key with --encryption-key-file"),
        "{output}"
    );
    let output = refused(&mut with(FLAG, &file("other", "haddock")));
    assert!(
        output.contains("encrypted with another encryption key"),
        "{output}"
    );
    let mut changed = with(FLAG, &file("other", "haddock"));
    changed
        .arg("--previous-encryption-key-file")
        .arg(file("key", "swordfish"));
    drop(started(changed, "Try it"));
    drop(started(with(FLAG, &file("other", "haddock")), "Try it"));
    for (path, why) in [
        (file("none", "\n"), "the file is empty"),
        (data.0.join("gone"), "No such"),
    ] {
        let output = refused(&mut with(FLAG, &path));
        assert!(output.contains(why), "{output}");
    }
}
