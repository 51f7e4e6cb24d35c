//! `fanline auth`: creation and verification of keys, hashes, and tokens.

use crate::folder::Folder;
use crate::server::Server;
use crate::{run, run_with_input, seen};

#[test]
fn key_pair_is_created_and_its_public_key_is_derived() {
    let (code, stdout, stderr) = seen(&run(&["auth", "nkey"]));
    assert_eq!(code, Some(0), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let [seed, public] = lines[..] else {
        panic!("{stdout}");
    };
    assert!(
        seed.starts_with("SU") && public.starts_with('U'),
        "{stdout}"
    );
    let folder = Folder::new("nkey");
    let path = folder.path("seed");
    std::fs::write(&path, seed).expect("a file");
    let (code, again, stderr) = seen(&run(&["auth", "nkey", "--public-of", &path]));
    assert_eq!((code, again.trim()), (Some(0), public), "{stderr}");
}

#[test]
fn passwords_are_hashed_and_verified() {
    let hashed = run_with_input(&["auth", "hash", "--cost", "4"], "s3cret\n");
    let (code, hash, stderr) = seen(&hashed);
    assert_eq!(code, Some(0), "{stderr}");
    let hash = hash.trim();
    assert!(hash.starts_with("$2a$04$") && hash.len() == 60, "{hash}");
    for (password, expected) in [("s3cret", Some(0)), ("S3cret", Some(1)), ("", Some(1))] {
        let (code, _, stderr) = seen(&run_with_input(&["auth", "check", hash], password));
        assert_eq!(code, expected, "{password:?} {stderr}");
        assert!(!stderr.contains("s3cret"));
    }
}

impl Folder {
    /// Runs a command, and writes its output to a file with this name as well.
    fn write_output(&self, name: &str, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = seen(&run(arguments));
        assert_eq!(code, Some(0), "{arguments:?} {stderr}");
        std::fs::write(self.path(name), &stdout).expect("a file");
        stdout.trim().to_owned()
    }

    /// Creates a key of this kind. Returns the path of its seed, and its public key.
    fn key(&self, name: &str, kind: &str) -> (String, String) {
        let lines = self.write_output(name, &["auth", "nkey", "--kind", kind]);
        let public = lines.lines().last().expect("two lines");
        (self.path(name), public.to_owned())
    }
}

/// Operator mode with keys and tokens from `fanline auth` only.
#[test]
fn users_of_an_operator_are_admitted() {
    let folder = Folder::new("auth");
    let (operator, _) = folder.key("operator.nk", "operator");
    let (shop, shop_key) = folder.key("shop.nk", "account");
    let (signer, signer_key) = folder.key("signer.nk", "account");
    let (stranger, _) = folder.key("stranger.nk", "account");
    folder.write_output(
        "operator.jwt",
        &["auth", "operator", &operator, "--name", "acme"],
    );
    let of_shop = [
        "auth",
        "account",
        &shop_key,
        "--operator",
        &operator,
        "--name",
        "shop",
    ];
    let account = folder.write_output(
        "shop.jwt",
        &[&of_shop[..], &["--signing-key", &signer_key]].concat(),
    );
    let config = format!(
        "operator: {:?}\nresolver: MEMORY\nresolver_preload {{ {shop_key}: {account} }}\n",
        folder.path("operator.jwt")
    );
    std::fs::write(folder.path("server.conf"), config).expect("a file");
    let server = Server::start(&["-c", &folder.path("server.conf")]);
    let by = |name: &str, seed: &str, more: &[&str]| {
        let creds = ["auth", "creds", "--account", seed, "--name", "ada"];
        folder.write_output(name, &[&creds[..], more].concat());
        let path = folder.path(name);
        let ask = ["rtt", "--server", &server.address, "--creds", &path];
        run(&ask).status.code()
    };
    assert_eq!(by("ada.creds", &shop, &[]), Some(0));
    let limited = [
        "--allow-pub",
        "a.>",
        "--deny-sub",
        "b",
        "--allow-responses",
        "1",
        "--expires",
        "1d",
    ];
    assert_eq!(by("limited.creds", &shop, &limited), Some(0));
    let signed = ["--issuer-account", &shop_key];
    assert_eq!(by("signed.creds", &signer, &signed), Some(0));
    assert_ne!(by("unsaid.creds", &signer, &[]), Some(0));
    assert_ne!(by("stranger.creds", &stranger, &[]), Some(0));
    let elsewhere = ["--source", "203.0.113.0/24"];
    assert_ne!(by("elsewhere.creds", &shop, &elsewhere), Some(0));
    let wrong = ["auth", "creds", "--account", &operator, "--name", "ada"];
    let (code, _, stderr) = seen(&run(&wrong));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("not the seed of an account"), "{stderr}");
}
