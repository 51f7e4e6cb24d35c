//! Tools for streams, consumers, buckets, and objects, against a server of the same program.

use std::process::Stdio;

use serde_json::Value;

use crate::folder::Folder;
use crate::server::Server;
use crate::{run_with_input, seen, until};

/// A server with JetStream, and its folder.
struct Fixture {
    server: Server,
    folder: Folder,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let folder = Folder::new(name);
        let server = Server::start(&["-js", "-sd", &folder.path("store")]);
        Fixture { server, folder }
    }

    /// Runs a tool that must succeed, and returns its output. Arguments are separated by spaces.
    fn ok(&self, line: &str) -> String {
        let (code, stdout, stderr) = self.run(line);
        assert_eq!(code, Some(0), "{line}\n{stdout}{stderr}");
        stdout
    }

    /// Runs a tool that must fail with this exit code, and returns its error output.
    fn fails(&self, code: i32, line: &str) -> String {
        let (found, stdout, stderr) = self.run(line);
        assert_eq!(found, Some(code), "{line}\n{stdout}{stderr}");
        stderr
    }

    fn json(&self, line: &str) -> Value {
        let text = self.ok(line);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}\n{text}"))
    }

    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        seen(&self.server.tool(&arguments).output().expect("it runs"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }
}

#[test]
fn streams_are_created_changed_and_deleted() {
    let at = Fixture::new("streams");
    let made = at.ok("stream add ORDERS --subjects orders.> --max-age 7d");
    assert!(
        made.contains("Stream ORDERS created") && made.contains("Maximum age: 168h0m0s"),
        "{made}"
    );
    let config = &at.json("stream info ORDERS --json")["config"];
    assert_eq!(config["max_age"], 604_800_000_000_000_i64);
    assert_eq!(config["allow_direct"], true);

    at.ok("stream edit ORDERS --max-msgs 10 --metadata team=a --force");
    let config = &at.json("stream info ORDERS --json")["config"];
    assert_eq!(
        (&config["max_msgs"], &config["metadata"]["team"]),
        (&10.into(), &"a".into())
    );

    for number in 0..5 {
        at.ok(&format!("pub orders.{} {number}", number % 2));
    }
    let listed = at.ok("stream ls");
    assert!(listed.contains("ORDERS  orders.>  file"), "{listed}");
    assert_eq!(at.json("stream state ORDERS --json")["messages"], 5);
    assert_eq!(at.json("stream subjects ORDERS --json")["orders.0"], 3);
    assert_eq!(at.ok("stream get ORDERS 2 --raw"), "1\n");
    assert_eq!(at.json("stream get ORDERS -S orders.0 -j")["seq"], 5);
    assert_eq!(at.ok("stream view ORDERS --raw"), "0\n1\n2\n3\n4\n");
    assert_eq!(at.ok("stream view ORDERS --raw --id 4"), "3\n4\n");

    at.ok("stream rmm ORDERS 1 --force");
    at.ok("stream purge ORDERS --subject orders.1 --force");
    assert_eq!(at.ok("stream view ORDERS --raw"), "2\n4\n");
    assert!(at.ok("stream report").contains("1 stream "));
    at.ok("stream seal ORDERS --force");
    assert!(at.fails(1, "stream purge ORDERS --force").contains("10109"));
    at.ok("stream rm ORDERS --force");
    // The tools reject these names, because the server would not respond to such requests.
    for line in ["stream add a.b", "stream info a>", "consumer info S c.d"] {
        assert!(at.fails(2, line).contains("invalid "), "{line}");
    }
    assert_eq!(at.json("stream ls --json"), Value::Array(Vec::new()));
}

#[test]
fn publish_reports_stream_and_sequence() {
    let at = Fixture::new("stored");
    at.ok("stream add ORDERS --subjects orders.>");
    let output = at.ok("pub orders.new --jetstream --count 2 --quiet tea");
    assert_eq!(
        output,
        "Stored in stream ORDERS as 1\nStored in stream ORDERS as 2\n"
    );
    let once = "pub orders.new -J --quiet -H Nats-Msg-Id:7 tea";
    assert_eq!(at.ok(once), "Stored in stream ORDERS as 3\n");
    let again = "Stored in stream ORDERS as 3 (duplicate)\n";
    assert_eq!(at.ok(once), again);
    at.fails(3, "pub elsewhere --jetstream tea");
}

#[test]
fn streams_are_backed_up_and_restored() {
    let at = Fixture::new("backup");
    at.ok("stream add S --subjects s.*");
    at.ok("consumer add S c");
    for number in 0..20 {
        at.ok(&format!("pub s.a {number}"));
    }
    at.ok("consumer next S c --count 5");
    let backup = at.path("backup");
    at.ok(&format!("stream backup S {backup}"));
    let there = at.fails(1, &format!("stream restore {backup}"));
    assert!(there.contains("10130"), "{there}");
    at.ok("stream rm S --force");
    let restored = at.ok(&format!("stream restore {backup}"));
    assert!(restored.contains("Stream S restored"), "{restored}");
    assert_eq!(at.json("stream state S --json")["messages"], 20);
    assert_eq!(at.json("consumer info S c --json")["num_pending"], 15);
    assert_eq!(at.ok("consumer next S c --raw"), "5\n");
}

#[test]
fn consumers_are_created_and_pulled_from() {
    let at = Fixture::new("consumers");
    at.ok("stream add S --subjects s.*");
    for number in 0..6 {
        at.ok(&format!("pub s.{} {number} -H K:v", number % 2));
    }
    at.ok("consumer add S odd --filter s.1 --wait 1m --max-deliver 2");
    assert_eq!(at.ok("consumer next S odd --raw --count 2"), "1\n3\n");
    let next = at.json("consumer next S odd --json --nak");
    assert_eq!(
        (&next["data"], &next["headers"]["K"][0]),
        (&"5".into(), &"v".into())
    );
    let again = at.json("consumer next S odd --json");
    assert_eq!(
        (&again["data"], &again["delivered"]),
        (&"5".into(), &2.into())
    );
    at.fails(3, "consumer next S odd --wait 200ms");
    let info = at.json("consumer info S odd --json");
    assert_eq!(
        (&info["num_pending"], &info["config"]["max_deliver"]),
        (&0.into(), &2.into())
    );
    assert!(at.ok("consumer info S odd").contains("Consumer S > odd"));

    at.ok("consumer edit S odd --description those --force");
    at.ok("consumer pause S odd 1h --force");
    assert_eq!(at.json("consumer info S odd --json")["paused"], true);
    at.ok("consumer resume S odd --force");
    assert!(at.ok("consumer report S").contains("explicit"));
    at.ok("consumer add S pushed --target there --ack none");
    assert!(
        at.fails(1, "consumer next S pushed")
            .contains("push consumer with target there")
    );
    assert_eq!(at.ok("consumer sub S pushed --raw --count 2"), "0\n1\n");
    assert!(
        at.fails(1, "consumer sub S odd")
            .contains("is a pull consumer")
    );
    assert_eq!(at.ok("consumer ls S --names"), "odd\npushed\n");
    at.ok("consumer rm S odd --force");
    assert!(
        at.fails(1, "consumer info S odd")
            .contains("consumer not found (10014)")
    );
}

#[test]
fn buckets_store_values() {
    let at = Fixture::new("kv");
    at.ok("kv add prices --history 5");
    assert_eq!(at.json("kv put prices tea 2.00 --json")["revision"], 1);
    assert_eq!(at.json("kv update prices tea 2.10 1 -j")["revision"], 2);
    assert!(
        at.fails(1, "kv update prices tea no 1")
            .contains("wrong last sequence")
    );
    assert!(
        at.fails(1, "kv create prices tea no")
            .contains("exists at revision 2")
    );
    assert_eq!(at.ok("kv get prices tea --raw"), "2.10");
    assert_eq!(at.ok("kv get prices tea --revision 1 --raw"), "2.00");
    at.ok("kv create prices cake 3.50");
    assert_eq!(at.ok("kv ls prices"), "cake\ntea\n");

    let watching = ["kv", "watch", "prices", "--count", "3", "--json"];
    let watch = at
        .server
        .tool(&watching)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let watch = watch.expect("it runs");
    // Current entries and changes form one sequence, whenever the watch starts.
    at.ok("kv del prices cake --force");
    at.ok("kv put prices tea 2.20");
    at.ok("kv put prices rolls 1.00");
    let (code, stdout, _) = seen(&watch.wait_with_output().expect("it ends"));
    assert_eq!((code, stdout.lines().count()), (Some(0), 3), "{stdout}");

    at.fails(1, "kv get prices cake");
    let history = at.json("kv history prices cake --json");
    assert_eq!(
        [&history[0]["operation"], &history[1]["operation"]],
        ["PUT", "DEL"]
    );
    at.ok("kv revert prices tea 1 --force");
    assert_eq!(at.ok("kv get prices tea --raw"), "2.00");
    at.ok("kv purge prices tea --force");
    at.ok("kv compact prices --keep 0 --force");
    let (code, _, stderr) = seen(&run_with_input(
        &["kv", "put", "prices", "note", "-s", &at.server.address],
        "from stdin",
    ));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(at.ok("kv get prices note --raw"), "from stdin");
    assert!(at.ok("kv info prices").contains("History per key: 5"));
    assert!(at.ok("kv ls").contains("prices"));
    assert!(at.fails(2, "kv put prices a*b x").contains("invalid key"));
    assert!(
        at.fails(1, "kv get none x")
            .contains("bucket \"none\" not found")
    );
    at.ok("kv rm prices --force");
}

#[test]
fn origins_in_other_domains_are_configured() {
    let at = Fixture::new("origins");
    for (flags, api) in [
        ("--origin-domain hub", "$JS.hub.API"),
        ("--origin-api THEM.API --origin-deliver copied", "THEM.API"),
    ] {
        for copies in ["--mirror ORDERS", "--source ORDERS --source BILLS"] {
            at.ok(&format!("stream add COPY {copies} {flags}"));
            let shown = at.ok("stream info COPY");
            let origin = format!("ORDERS by {api}, 0 messages behind, last active never");
            assert!(shown.contains(&origin), "{shown}");
            at.ok("stream rm COPY --force");
        }
    }
}

#[test]
fn mirror_becomes_an_independent_stream() {
    let at = Fixture::new("promoted");
    at.ok("stream add ORDERS --subjects orders.>");
    at.ok("pub orders.new --jetstream --quiet tea");
    at.ok("stream add COPY --mirror ORDERS");
    until("the mirror has the message", || {
        at.json("stream state COPY --json")["messages"] == 1
    });
    at.ok("stream rm ORDERS --force");
    at.fails(1, "stream edit COPY --subjects orders.> --force");
    at.ok("stream edit COPY --no-mirror --subjects orders.> --force");
    let output = at.ok("pub orders.new --jetstream --quiet cake");
    assert_eq!(output, "Stored in stream COPY as 2\n");
}

#[test]
fn streams_are_found() {
    let at = Fixture::new("found");
    at.ok("stream add ORDERS --subjects orders.> --max-age 7d --metadata team=a");
    at.ok("stream add IDLE");
    at.ok("stream add COPY --mirror ORDERS");
    at.ok("consumer add ORDERS billing --filter orders.paid");
    at.ok("pub orders.paid 1 --jetstream");
    let found = |flags: &str| {
        let names = at.ok(&format!("stream find --names {flags}"));
        names
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (flags, expected) in [
        ("--empty", &["IDLE"][..]),
        ("--empty --invert", &["COPY", "ORDERS"]),
        ("--mirrored", &["COPY"]),
        ("--sourced", &[]),
        ("--consumers 0", &["COPY", "IDLE"]),
        ("--consumers 0 --mirrored --invert", &["ORDERS"]),
        ("--subject orders.new", &["ORDERS"]),
        ("--idle 1h", &["IDLE"]),
        ("--created 1h", &[]),
        ("--replicas 1", &["COPY", "IDLE", "ORDERS"]),
    ] {
        let mut names = found(flags);
        names.sort();
        assert_eq!(names, expected, "{flags}");
    }
    assert!(at.ok("stream find --empty").contains("IDLE"));
}

#[test]
fn gaps_are_listed_and_configurations_copied() {
    let at = Fixture::new("copied");
    at.ok("stream add ORDERS --subjects orders.> --max-age 7d --metadata team=a");
    at.ok("stream add IDLE");
    at.ok("consumer add ORDERS billing --filter orders.paid");
    for n in 1..=6 {
        at.ok(&format!("pub orders.paid {n} --jetstream"));
    }
    for sequence in [2, 3, 5] {
        at.ok(&format!("stream rmm ORDERS {sequence} --force"));
    }
    let gaps = at.json("stream gaps ORDERS --json");
    assert_eq!(gaps, serde_json::json!([[2, 3], [5, 5]]));
    assert!(at.ok("stream gaps ORDERS").contains("Messages"));
    assert_eq!(at.ok("stream gaps IDLE"), "");

    at.ok("stream copy ORDERS RETURNS --subjects returns.>");
    let config = &at.json("stream info RETURNS --json")["config"];
    assert_eq!(
        (
            &config["max_age"],
            &config["subjects"][0],
            &config["metadata"]["team"]
        ),
        (
            &604_800_000_000_000_i64.into(),
            &"returns.>".into(),
            &"a".into()
        )
    );
    at.ok("consumer copy ORDERS billing shipping --filter orders.sent");
    let config = &at.json("consumer info ORDERS shipping --json")["config"];
    assert_eq!(
        (
            &config["durable_name"],
            &config["filter_subject"],
            &config["ack_policy"]
        ),
        (
            &"shipping".into(),
            &"orders.sent".into(),
            &"explicit".into()
        )
    );
    let found = at.ok("consumer find ORDERS --pending 1 --names");
    assert_eq!(found, "billing\n");
    let found = at.ok("consumer find ORDERS --pending 1 --invert --names");
    assert_eq!(found, "shipping\n");
    assert_eq!(at.ok("consumer find ORDERS --paused --names"), "");
}

#[test]
fn objects_are_linked() {
    let at = Fixture::new("links");
    let source = at.path("cup.png");
    std::fs::write(&source, "a cup").expect("writable");
    at.ok("object add images");
    at.ok("object add covers");
    at.ok(&format!("object put images {source}"));
    let made = at.ok("object link images same cup.png");
    assert!(made.contains("Link to: images > cup.png"), "{made}");
    at.ok("object link covers other cup.png --to images");
    at.ok("object link covers all --to images");
    let back = at.path("back.png");
    for (bucket, name) in [("images", "same"), ("covers", "other")] {
        at.ok(&format!(
            "object get {bucket} {name} --output {back} --force"
        ));
        assert_eq!(std::fs::read(&back).expect("readable"), b"a cup");
    }
    for (code, line, reason) in [
        (1, "object link covers x none --to images", "not found"),
        (2, "object link covers x same --to images", "it is a link"),
        (2, "object link images cup.png same", "it is a link"),
        (2, "object link images cup.png cup.png", "an object has it"),
        (2, "object get covers all", "it stands for a whole store"),
    ] {
        let message = at.fails(code, line);
        assert!(message.contains(reason), "{line}: {message}");
    }
}

#[test]
fn objects_round_trip() {
    let at = Fixture::new("objects");
    let content: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let source = at.path("large.bin");
    std::fs::write(&source, &content).expect("writable");
    at.ok("object add files");
    let put = at.ok(&format!("object put files {source} --description numbers"));
    assert!(
        put.contains("Chunks: 31") && put.contains("SHA-256="),
        "{put}"
    );
    let back = at.path("back.bin");
    at.ok(&format!("object get files large.bin --output {back}"));
    assert!(
        std::fs::read(&back).expect("readable") == content,
        "the bytes differ"
    );
    let info = at.json("object info files large.bin --json");
    assert_eq!(
        (&info["size"], &info["chunks"]),
        (&4_000_000.into(), &31.into())
    );
    at.ok(&format!(
        "object put files {source} --name empty --chunk-size 1M"
    ));
    assert_eq!(at.ok("object ls files --names"), "empty\nlarge.bin\n");
    at.ok("object del files large.bin --force");
    assert!(
        at.fails(1, "object get files large.bin")
            .contains("not found")
    );
    at.ok("object seal files --force");
    at.fails(1, &format!("object put files {source}"));
    assert!(at.ok("object ls").contains("files"));
    at.ok("object rm files --force");
}

#[test]
fn errors_are_reported() {
    let at = Fixture::new("wrong");
    assert!(
        at.fails(1, "stream info NONE")
            .contains("stream not found (10059)")
    );
    let unasked = at.fails(2, "stream rm NONE");
    assert!(unasked.contains("--force"), "{unasked}");
    at.fails(2, "stream add");
    at.fails(2, "stream add S --storage tape");
    let without = Server::start(&[]);
    let (code, _, stderr) = seen(&without.tool(&["stream", "ls"]).output().expect("it runs"));
    assert_eq!(code, Some(3));
    assert!(stderr.contains("JetStream is not enabled"), "{stderr}");
}
