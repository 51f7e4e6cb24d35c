//! `fanline auth`: keys and hashes, made and recognised.

use crate::{run, run_with_input, seen};

#[test]
fn a_key_pair_is_made_and_its_public_half_found_again() {
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
    let file = std::env::temp_dir().join(format!("fanline-nkey-{}", std::process::id()));
    std::fs::write(&file, seed).expect("a file");
    let path = file.to_str().expect("text");
    let (code, again, stderr) = seen(&run(&["auth", "nkey", "--public-of", path]));
    assert_eq!((code, again.trim()), (Some(0), public), "{stderr}");
    std::fs::remove_file(file).expect("the file");
}

#[test]
fn passwords_are_hashed_and_recognised() {
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
