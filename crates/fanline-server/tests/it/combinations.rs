//! Combinations of permissions, headers, queue groups, accounts, and JetStream, for each kind of connection.
//! `access.rs` tests each of them alone.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use fanline_server::auth::{
    Access, AccessConfig, AllowResponses, Allowed, Export, ExportKind, Import, ImportKind, Mapping,
    Permissions, ResponseKind, User,
};
use fanline_server::{Auth, JetStreamOptions, Options};

use crate::access::{Client, Over, Site, as_user, for_each_transport, server, with_users};
use crate::raw::options;

for_each_transport!(
    messages_with_headers_are_filtered,
    queue_group_members_receive_permitted_messages,
    permissions_apply_to_mapped_subjects,
    answers_have_headers_and_an_end,
    permissions_apply_to_jetstream_requests,
    permissions_hold_before_borders,
    permissions_hold_behind_borders,
);

fn allowed(publish: Option<&[&str]>, subscribe: Option<&[&str]>) -> Permissions {
    Permissions {
        publish: Allowed::publish(publish, &[]).unwrap(),
        subscribe: Allowed::subscribe(subscribe, &[]).unwrap(),
        responses: None,
    }
}

fn user(name: &str, permissions: Permissions) -> User {
    let mut user = User::new(name, "pw");
    user.permissions = Some(permissions);
    user
}

fn with_header(subject: &str, reply: &str, payload: &str) -> String {
    const HEADERS: &str = "NATS/1.0\r\nA: b\r\n\r\n";
    let (head, total) = (HEADERS.len(), HEADERS.len() + payload.len());
    format!("HPUB {subject} {reply} {head} {total}\r\n{HEADERS}{payload}\r\n")
}

fn denied(subject: &str) -> String {
    format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'")
}

/// Sends a frame, and expects a permissions violation and nothing else.
fn check_denied(client: &mut Client, frame: &str, subject: &str) {
    client.send(format!("{frame}PING\r\n"));
    assert_eq!(client.line(), denied(subject), "{frame}");
    assert_eq!(client.line(), "PONG", "{frame}");
}

/// Returns the subjects of received messages, in order.
fn subjects(client: &mut Client) -> Vec<String> {
    client.settle().into_iter().map(|m| m.subject).collect()
}

fn messages_with_headers_are_filtered(over: Over) {
    let ada = user(
        "ada",
        Permissions {
            subscribe: Allowed::subscribe(None, &["in.secret", "*.*.secret"]).unwrap(),
            ..Permissions::default()
        },
    );
    let server = server(over, with_users(vec![ada, User::new("all", "pw")]));
    let mut ada = as_user(&server, "ada");
    ada.send("SUB > 1\r\nSUB in.> 2\r\nSUB *.*.* 3\r\nSUB in.* crew 4\r\n");
    ada.settle();
    for mut all in [as_user(&server, "all"), as_user(&server, "all")] {
        for subject in ["in.secret", "in.deep.secret", "in.secret"] {
            all.send(with_header(subject, "r", "x"));
            all.send(with_header(subject, "", "x"));
            all.publish(subject, "x");
        }
        all.settle();
        assert_eq!(subjects(&mut ada), Vec::<String>::new());
        all.send(with_header("in.open", "r", "x"));
        all.settle();
        assert_eq!(subjects(&mut ada), ["in.open"; 3]);
    }
}

fn queue_group_members_receive_permitted_messages(over: Over) {
    let ada = user(
        "ada",
        Permissions {
            subscribe: Allowed::subscribe(None, &["jobs.secret"]).unwrap(),
            ..Permissions::default()
        },
    );
    let crew = user("crew", allowed(None, Some(&["jobs.* crew", "_INBOX.>"])));
    let users = vec![ada, crew, User::new("all", "pw")];
    let server = server(over, with_users(users));
    let (mut ada, mut all) = (as_user(&server, "ada"), as_user(&server, "all"));
    ada.send("SUB jobs.* crew 1\r\nSUB jobs.> crew 2\r\n");
    ada.settle();
    for number in 0..50 {
        all.publish("jobs.secret", format!("{number}"));
        all.send(with_header("jobs.secret", "r", "x"));
    }
    all.publish("jobs.open", "x");
    all.settle();
    assert_eq!(subjects(&mut ada), ["jobs.open"]);
    // A user that may only join one queue group may not subscribe without a group or join another group.
    let mut crew = as_user(&server, "crew");
    for (arguments, reply) in [
        ("jobs.*", "\"jobs.*\""),
        ("jobs.* other", "\"jobs.*\" using queue \"other\""),
        ("> crew", "\">\" using queue \"crew\""),
    ] {
        crew.send(format!("SUB {arguments} 1\r\nPING\r\n"));
        let expected = format!("-ERR 'Permissions Violation for Subscription to {reply}'");
        assert_eq!(crew.line(), expected);
        assert_eq!(crew.line(), "PONG");
    }
}

fn permissions_apply_to_mapped_subjects(over: Over) {
    // Permissions apply to the mapped subject.
    let mut config = with_users(vec![
        user("ada", allowed(Some(&["shown.*", "open.*"]), None)),
        User::new("all", "pw"),
    ]);
    config.account_mut("$G").mappings = vec![
        Mapping::new("shown.*", "hidden.$1").unwrap(),
        Mapping::new("alias.*", "open.$1").unwrap(),
    ];
    let server = server(over, config);
    let (mut ada, mut all) = (as_user(&server, "ada"), as_user(&server, "all"));
    all.subscribe("*.*", "1");
    check_denied(&mut ada, "PUB shown.1 1\r\nx\r\n", "hidden.1");
    check_denied(&mut ada, &with_header("shown.1", "r", "x"), "hidden.1");
    ada.publish("alias.1", "x");
    ada.settle();
    assert_eq!(subjects(&mut all), ["open.1"]);
}

fn answers_have_headers_and_an_end(over: Over) {
    let answers = user(
        "answers",
        Permissions {
            publish: Allowed::publish(None, &["inbox.never"]).unwrap(),
            subscribe: Allowed::subscribe(Some(&["ask.> crew", "ask.>"]), &[]).unwrap(),
            responses: Some(AllowResponses {
                max: Some(2),
                expires: None,
            }),
        },
    );
    let server = server(over, with_users(vec![answers, User::new("all", "pw")]));
    let (mut answers, mut all) = (as_user(&server, "answers"), as_user(&server, "all"));
    all.subscribe("inbox.*", "1");
    answers.send("SUB ask.> crew 1\r\n");
    answers.settle();
    all.send(with_header("ask.1", "inbox.1", "x"));
    assert_eq!(answers.message().reply.as_deref(), Some("inbox.1"));
    // The responder may send two responses to that reply subject, with or without headers, and none to other
    // subjects.
    check_denied(&mut answers, &with_header("inbox.2", "", "x"), "inbox.2");
    answers.send(with_header("inbox.1", "", "1"));
    answers.send("PUB inbox.1 1\r\n2\r\n");
    check_denied(&mut answers, &with_header("inbox.1", "", "3"), "inbox.1");
    assert_eq!(subjects(&mut all), ["inbox.1"; 2]);
    // A message without a reply subject permits no response.
    all.publish("ask.2", "x");
    assert_eq!(answers.message().reply, None);
    check_denied(&mut answers, "PUB inbox.3 1\r\nx\r\n", "inbox.3");
}

fn permissions_apply_to_jetstream_requests(over: Over) {
    let reader = Permissions {
        publish: Allowed::publish(
            Some(&["$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.>"]),
            &["$JS.API.STREAM.INFO.TWO", "$JS.API.CONSUMER.CREATE.>"],
        )
        .unwrap(),
        subscribe: Allowed::subscribe(Some(&["inbox.reader.>"]), &[]).unwrap(),
        responses: None,
    };
    let config = with_users(vec![user("reader", reader), User::new("all", "pw")]);
    let auth = Auth::Directory(Access::new(config).unwrap().into());
    let server = Site::with(
        over,
        Options {
            auth,
            jetstream: Some(JetStreamOptions::default()),
            ..options(2)
        },
    );
    let mut all = as_user(&server, "all");
    all.subscribe("inbox.all", "1");
    let mut ask = |subject: &str, body: &str| {
        let len = body.len();
        all.send(format!("PUB {subject} inbox.all {len}\r\n{body}\r\n"));
        String::from_utf8(all.message().payload).unwrap()
    };
    for name in ["ONE", "TWO"] {
        let body =
            format!("{{\"name\":\"{name}\",\"subjects\":[\"{name}.>\"],\"storage\":\"memory\"}}");
        let made = ask(&format!("$JS.API.STREAM.CREATE.{name}"), &body);
        assert!(
            made.contains("stream_create_response") && !made.contains("error"),
            "{made}"
        );
    }
    let mut reader = as_user(&server, "reader");
    reader.subscribe("inbox.reader.>", "1");
    for subject in [
        "$JS.API.INFO",
        "$JS.API.STREAM.INFO.TWO",
        "$JS.API.STREAM.DELETE.ONE",
        "$JS.API.STREAM.PURGE.ONE",
        "$JS.API.STREAM.MSG.GET.ONE",
        "$JS.API.DIRECT.GET.ONE",
        "$JS.API.STREAM.CREATE.THREE",
        "$JS.API.CONSUMER.CREATE.ONE.c",
        "$JS.ACK.ONE.c.1.1.1.1.0",
        "$JS.FC.x",
        "$KV.a.b",
        "ONE.x",
    ] {
        check_denied(
            &mut reader,
            &format!("PUB {subject} inbox.reader.1 0\r\n\r\n"),
            subject,
        );
        check_denied(
            &mut reader,
            &with_header(subject, "inbox.reader.1", "{}"),
            subject,
        );
    }
    reader.send("PUB $JS.API.STREAM.INFO.ONE inbox.reader.1 0\r\n\r\n");
    let reply = String::from_utf8(reader.message().payload).unwrap();
    assert!(reply.contains("\"name\":\"ONE\""), "{reply}");
    let info = ask("$JS.API.STREAM.INFO.ONE", "");
    assert!(info.contains("\"messages\":0"), "{info}");
    assert!(ask("$JS.API.STREAM.INFO.THREE", "").contains("10059"));
}

/// Returns two accounts. A exports a stream and a service, and B imports both. User bob of B has the given
/// permissions.
fn with_border(bob: Permissions) -> AccessConfig {
    let export = |kind, subject: &str| Export {
        kind,
        subject: subject.into(),
        accounts: None,
        account_token_position: None,
        allow_trace: false,
    };
    let import = |kind, subject: &str| Import {
        kind,
        account: "A".into(),
        subject: subject.into(),
        to: None,
        allow_trace: false,
    };
    let service = ExportKind::Service {
        response: ResponseKind::Single,
        response_threshold: None,
        latency: None,
    };
    let mut config = AccessConfig::default();
    let a = config.account_mut("A");
    a.users.push(User::new("ada", "pw"));
    a.exports = vec![
        export(ExportKind::Stream, "news.>"),
        export(service, "time.*"),
    ];
    let b = config.account_mut("B");
    b.users = vec![user("bob", bob), User::new("bea", "pw")];
    b.imports = vec![
        import(ImportKind::Stream, "news.>"),
        import(ImportKind::Service { share: false }, "time.*"),
    ];
    config
}

fn permissions_hold_before_borders(over: Over) {
    let bob = Permissions {
        publish: Allowed::publish(None, &["time.secret"]).unwrap(),
        ..Permissions::default()
    };
    let server = server(over, with_border(bob));
    let (mut ada, mut bob) = (as_user(&server, "ada"), as_user(&server, "bob"));
    ada.subscribe(">", "1");
    for frame in [
        "PUB time.secret inbox 1\r\nx\r\n".to_owned(),
        with_header("time.secret", "inbox", "x"),
    ] {
        check_denied(&mut bob, &frame, "time.secret");
    }
    // Subjects that are not imported stay in their account.
    for subject in ["other", "time", "time.a.b", "news.x"] {
        bob.publish(subject, "x");
        bob.send(with_header(subject, "inbox", "x"));
    }
    bob.settle();
    assert_eq!(subjects(&mut ada), Vec::<String>::new());
    bob.subscribe("inbox", "1");
    bob.send(with_header("time.now", "inbox", "x"));
    let request = ada.message();
    assert_eq!(request.subject, "time.now");
    let reply = request.reply.unwrap();
    assert_ne!(reply, "inbox");
    ada.publish(&reply, "noon");
    // The response is delivered once. A message to B's original reply subject in account A does not reach B.
    ada.publish(&reply, "again");
    ada.publish("inbox", "forged");
    ada.settle();
    assert_eq!(bob.message().payload, b"noon");
    assert_eq!(subjects(&mut bob), Vec::<String>::new());
}

fn permissions_hold_behind_borders(over: Over) {
    let bob = Permissions {
        subscribe: Allowed::subscribe(None, &["news.secret"]).unwrap(),
        ..Permissions::default()
    };
    let server = server(over, with_border(bob));
    let (mut ada, mut bob) = (as_user(&server, "ada"), as_user(&server, "bob"));
    let mut bea = as_user(&server, "bea");
    bob.send("SUB news.secret 1\r\nPING\r\n");
    let reply = bob.line();
    assert!(
        reply.contains("Permissions Violation for Subscription to \"news.secret\""),
        "{reply}"
    );
    assert_eq!(bob.line(), "PONG");
    bob.send("SUB news.* 2\r\nSUB > 3\r\nSUB news.> crew 4\r\n");
    bob.settle();
    bea.subscribe("news.>", "1");
    for frame in [
        "PUB news.secret 1\r\nx\r\n".to_owned(),
        with_header("news.secret", "r", "x"),
    ] {
        ada.send(frame);
    }
    ada.publish("private", "x");
    ada.settle();
    ada.send(with_header("news.open", "", "x"));
    ada.settle();
    assert_eq!(
        subjects(&mut bea),
        ["news.secret", "news.secret", "news.open"]
    );
    assert_eq!(subjects(&mut bob), ["news.open"; 3]);
}
