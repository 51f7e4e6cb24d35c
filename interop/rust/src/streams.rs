//! The cases for JetStream. Each is a function, and fails if the function returns an error.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull, push};
use async_nats::jetstream::kv::{CreateErrorKind, Operation, UpdateErrorKind};
use async_nats::jetstream::{self, AckKind, Context, Message, kv, object_store, stream};
use async_nats::{ConnectOptions, HeaderMap};
use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use crate::peers::{Outcome, WAIT, connect, connect_with, equal, numbers};
use crate::server::{Folder, Server};

const OBJECT_BYTES: usize = 64 << 20;

async fn context(server: &Server) -> anyhow::Result<Context> {
    let mut context = jetstream::new(connect(server).await?);
    context.set_timeout(WAIT);
    Ok(context)
}

async fn add_stream(
    context: &Context,
    name: &str,
    subject: &str,
) -> anyhow::Result<stream::Stream> {
    let config = stream::Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        ..Default::default()
    };
    Ok(context.create_stream(config).await?)
}

/// Publishes messages without waiting for each acknowledgement, and then waits for all of them.
async fn publish_many(context: &Context, subject: &str, count: usize) -> anyhow::Result<Vec<u64>> {
    let mut acks = Vec::with_capacity(count);
    for n in 0..count {
        let payload = n.to_string().into();
        acks.push(context.publish(subject.to_owned(), payload).await?);
    }
    let mut sequences = Vec::with_capacity(count);
    for ack in acks {
        sequences.push(ack.await?.sequence);
    }
    Ok(sequences)
}

async fn next<E: std::error::Error + Send + Sync + 'static>(
    messages: &mut (impl Stream<Item = Result<Message, E>> + Unpin),
) -> anyhow::Result<Message> {
    let message = timeout(WAIT, messages.next()).await;
    let message = message
        .context("nothing came")?
        .context("the messages ended")?;
    Ok(message?)
}

/// Takes `count` messages, and acknowledges them if `acknowledge` is set.
async fn take<E: std::error::Error + Send + Sync + 'static>(
    messages: &mut (impl Stream<Item = Result<Message, E>> + Unpin),
    count: usize,
    acknowledge: bool,
) -> anyhow::Result<Vec<String>> {
    let mut payloads = Vec::with_capacity(count);
    for _ in 0..count {
        let message = next(messages).await?;
        if acknowledge {
            message.ack().await.map_err(anyhow::Error::from_boxed)?;
        }
        payloads.push(text(&message)?);
    }
    Ok(payloads)
}

/// Takes messages, and checks their payloads.
async fn brings<E: std::error::Error + Send + Sync + 'static>(
    messages: &mut (impl Stream<Item = Result<Message, E>> + Unpin),
    acknowledge: bool,
    wanted: &[impl AsRef<str>],
    what: &str,
) -> Outcome {
    let found = take(messages, wanted.len(), acknowledge).await?;
    let wanted: Vec<&str> = wanted.iter().map(AsRef::as_ref).collect();
    equal(found, wanted, what)
}

fn text(message: &Message) -> anyhow::Result<String> {
    Ok(String::from_utf8(message.payload.to_vec())?)
}

async fn all_acknowledged(consumer: &PullConsumer) -> Outcome {
    for _ in 0..600 {
        if consumer.get_info().await?.num_ack_pending == 0 {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    bail!("not all was acknowledged");
}

fn durable(name: &str) -> pull::Config {
    pull::Config {
        durable_name: Some(name.to_owned()),
        ..Default::default()
    }
}

pub async fn publish_and_acknowledge(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "ACKS", "acks.*").await?;
    let ack = context.publish("acks.one", "first".into()).await?.await?;
    equal(
        (ack.stream.as_str(), ack.sequence),
        ("ACKS", 1),
        "the first acknowledgement",
    )?;
    let sequences = publish_many(&context, "acks.many", 2000).await?;
    equal(sequences, Vec::from_iter(2..=2001), "sequences")?;
    let state = stream.get_info().await?.state;
    equal(
        (state.messages, state.last_sequence),
        (2001, 2001),
        "the state",
    )?;
    equal(state.subjects_count, 2, "subjects")?;
    let last = stream.get_last_raw_message_by_subject("acks.many").await?;
    equal(
        (last.sequence, &last.payload[..]),
        (2001, &b"1999"[..]),
        "the last of a subject",
    )
}

pub async fn duplicates(server: &Server) -> Outcome {
    let context = context(server).await?;
    add_stream(&context, "DUPES", "dupes").await?;
    let mut found = Vec::new();
    for identity in ["a", "b", "a", "c"] {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", identity);
        let ack = context
            .publish_with_headers("dupes", headers, "x".into())
            .await?
            .await?;
        found.push((ack.sequence, ack.duplicate));
    }
    let wanted = vec![(1, false), (2, false), (1, true), (3, false)];
    equal(&found, &wanted, "acknowledgements")?;
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Sequence", "9");
    let refused = context
        .publish_with_headers("dupes", headers, "no".into())
        .await?
        .await;
    ensure!(refused.is_err(), "an expectation was not looked at");
    Ok(())
}

pub async fn pull_batches(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "BATCH", "batch").await?;
    publish_many(&context, "batch", 500).await?;
    let consumer = stream.create_consumer(durable("worker")).await?;
    let mut found = Vec::new();
    while found.len() < 500 {
        let mut batch = consumer.fetch().max_messages(100).messages().await?;
        while let Some(message) = batch.next().await {
            let message = message.map_err(anyhow::Error::from_boxed)?;
            message.ack().await.map_err(anyhow::Error::from_boxed)?;
            found.push(text(&message)?);
        }
    }
    equal(&found, &numbers(500), "in order")?;
    all_acknowledged(&consumer).await?;
    let info = consumer.get_info().await?;
    equal(
        (info.ack_floor.stream_sequence, info.num_pending),
        (500, 0),
        "where it stands",
    )?;
    let mut empty = consumer.fetch().max_messages(1).messages().await?;
    ensure!(empty.next().await.is_none(), "there was one more");
    Ok(())
}

pub async fn pull_messages(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "PULL", "pull.*").await?;
    publish_many(&context, "pull.a", 1500).await?;
    let config = pull::Config {
        filter_subject: "pull.a".to_owned(),
        ..durable("worker")
    };
    let consumer = stream.create_consumer(config).await?;
    let mut messages = consumer.messages().await?;
    brings(&mut messages, true, &numbers(1500), "in order").await?;
    publish_many(&context, "pull.b", 1).await?;
    publish_many(&context, "pull.a", 500).await?;
    brings(&mut messages, true, &numbers(500), "what came after").await
}

pub async fn acknowledgements(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "KINDS", "kinds").await?;
    publish_many(&context, "kinds", 3).await?;
    let config = pull::Config {
        max_deliver: 3,
        ..durable("worker")
    };
    let consumer = stream.create_consumer(config).await?;
    let mut messages = consumer.messages().await?;
    let (acked, naked) = (next(&mut messages).await?, next(&mut messages).await?);
    let ended = next(&mut messages).await?;
    let boxed = anyhow::Error::from_boxed;
    acked.double_ack().await.map_err(boxed)?;
    naked.ack_with(AckKind::Nak(None)).await.map_err(boxed)?;
    ended.ack_with(AckKind::Term).await.map_err(boxed)?;
    for (delivered, what) in [(2, "what was not acknowledged"), (3, "after a delay")] {
        let again = next(&mut messages).await?;
        let info = again.info().map_err(boxed)?;
        equal(
            (text(&again)?.as_str(), info.delivered),
            ("1", delivered),
            what,
        )?;
        match delivered {
            2 => {
                let delay = Some(Duration::from_millis(100));
                again.ack_with(AckKind::Nak(delay)).await.map_err(boxed)?;
            }
            _ => again.double_ack().await.map_err(boxed)?,
        }
    }
    all_acknowledged(&consumer).await?;
    let floor = consumer.get_info().await?.ack_floor.stream_sequence;
    equal(&floor, &3, "acknowledged up to")
}

pub async fn push_durable(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "PUSH", "push").await?;
    publish_many(&context, "push", 500).await?;
    let config = push::Config {
        durable_name: Some("pushed".to_owned()),
        deliver_subject: context.client().new_inbox(),
        flow_control: true,
        idle_heartbeat: Duration::from_secs(5),
        ..Default::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let mut messages = consumer.messages().await?;
    brings(&mut messages, true, &numbers(500), "what was there").await?;
    publish_many(&context, "push", 200).await?;
    brings(&mut messages, true, &numbers(200), "what came after").await
}

pub async fn ephemeral(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "BRIEF", "brief.*").await?;
    for n in 0..12 {
        let subject = format!("brief.{}", n % 3);
        context
            .publish(subject, n.to_string().into())
            .await?
            .await?;
    }
    let from = |deliver_policy| pull::Config {
        ack_policy: AckPolicy::None,
        deliver_policy,
        ..Default::default()
    };
    let per_subject = pull::Config {
        filter_subject: ">".to_owned(),
        ..from(DeliverPolicy::LastPerSubject)
    };
    let some = pull::Config {
        filter_subjects: vec!["brief.1".to_owned(), "brief.2".to_owned()],
        ..from(DeliverPolicy::All)
    };
    for (config, wanted) in [
        (from(DeliverPolicy::Last), vec!["11"]),
        (per_subject, vec!["9", "10", "11"]),
        (
            from(DeliverPolicy::ByStartSequence { start_sequence: 11 }),
            vec!["10", "11"],
        ),
        (some, vec!["1", "2", "4", "5", "7", "8", "10", "11"]),
    ] {
        let what = format!("{:?}", config.deliver_policy);
        let consumer = stream.create_consumer(config).await?;
        let pending = consumer.cached_info().num_pending;
        equal(pending, wanted.len() as u64, "pending")?;
        let mut messages = consumer.messages().await?;
        brings(&mut messages, false, &wanted, &what).await?;
        let name = consumer.cached_info().name.clone();
        ensure!(stream.delete_consumer(&name).await?.success, "not deleted");
    }
    Ok(())
}

pub async fn ordered(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "ORDER", "order.*").await?;
    publish_many(&context, "order.a", 3000).await?;
    publish_many(&context, "order.b", 10).await?;
    let config = pull::OrderedConfig {
        filter_subject: "order.a".to_owned(),
        ..Default::default()
    };
    let mut pulled = stream.create_consumer(config).await?.messages().await?;
    brings(&mut pulled, false, &numbers(3000), "pulled").await?;
    let config = push::OrderedConfig {
        deliver_subject: context.client().new_inbox(),
        filter_subject: "order.a".to_owned(),
        ..Default::default()
    };
    let mut pushed = stream.create_consumer(config).await?.messages().await?;
    brings(&mut pushed, false, &numbers(3000), "pushed").await
}

pub async fn manage_streams(server: &Server) -> Outcome {
    let context = context(server).await?;
    let stream = add_stream(&context, "MANAGE", "manage.*").await?;
    for key in ["a", "b", "c"] {
        publish_many(&context, &format!("manage.{key}"), 10).await?;
    }
    let mut config = stream.cached_info().config.clone();
    config.subjects.push("more".to_owned());
    config.max_messages = 100;
    context.update_stream(config).await?;
    ensure!(stream.delete_message(2).await?, "not deleted");
    equal(
        stream.get_info().await?.state.deleted_count,
        Some(1),
        "deleted",
    )?;
    let purged = stream.purge().filter("manage.b").await?.purged;
    equal(&purged, &10, "purged by subject")?;
    let purged = stream.purge().keep(5).await?.purged;
    equal(&purged, &14, "purged but a few")?;
    equal(
        context.stream_by_subject("more").await?,
        "MANAGE",
        "by subject",
    )?;
    let names: Vec<String> = context.stream_names().try_collect().await?;
    ensure!(
        names.contains(&"MANAGE".to_owned()),
        "not listed: {names:?}"
    );
    ensure!(
        context.delete_stream("MANAGE").await?.success,
        "not deleted"
    );
    ensure!(
        context.get_stream("MANAGE").await.is_err(),
        "it is still there"
    );
    let account = context.query_account().await?;
    ensure!(account.streams > 0, "an account without streams");
    Ok(())
}

async fn bucket(context: &Context, name: &str, history: i64) -> anyhow::Result<kv::Store> {
    let config = kv::Config {
        bucket: name.to_owned(),
        history,
        ..Default::default()
    };
    Ok(context.create_key_value(config).await?)
}

pub async fn key_value(server: &Server) -> Outcome {
    let context = context(server).await?;
    let store = bucket(&context, "kv", 5).await?;
    equal(
        store.put("a.b", "one".into()).await?,
        1,
        "the first revision",
    )?;
    equal(store.get("a.b").await?, Some("one".into()), "a value")?;
    equal(
        store.update("a.b", "two".into(), 1).await?,
        2,
        "after an update",
    )?;
    match store.update("a.b", "no".into(), 1).await {
        Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
        other => bail!("an old revision: {other:?}"),
    }
    equal(store.create("c", "new".into()).await?, 3, "a new key")?;
    match store.create("c", "no".into()).await {
        Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {}
        other => bail!("a key created twice: {other:?}"),
    }
    store.delete("c").await?;
    equal(store.get("c").await?, None, "a deleted key")?;
    equal(
        store.create("c", "again".into()).await?,
        5,
        "a key that was deleted",
    )?;
    equal(store.get("none").await?, None, "a key that never was")?;
    let old = store
        .entry_for_revision("a.b", 1)
        .await?
        .context("no old revision")?;
    equal(old.value, "one", "an old revision")?;
    let history: Vec<_> = store.history("a.b").await?.try_collect().await?;
    let history: Vec<_> = history.iter().map(|entry| &entry.value[..]).collect();
    equal(&history, &vec![&b"one"[..], b"two"], "the history")?;
    let mut keys: Vec<String> = store.keys().await?.try_collect().await?;
    keys.sort();
    equal(&keys, &vec!["a.b".to_owned(), "c".to_owned()], "the keys")?;
    store.purge("a.b").await?;
    equal(store.status().await?.history(), 5, "the status")?;
    ensure!(context.delete_key_value("kv").await?.success, "not deleted");
    Ok(())
}

pub async fn key_value_watch(server: &Server) -> Outcome {
    let context = context(server).await?;
    let store = bucket(&context, "watched", 1).await?;
    for n in 0..20 {
        store
            .put(format!("key.{}", n % 4), n.to_string().into())
            .await?;
    }
    let mut watch = store.watch_with_history("key.>").await?;
    let mut found = Vec::new();
    while found.len() < 6 {
        let entry = timeout(WAIT, watch.next()).await?.context("it ended")??;
        let value = String::from_utf8(entry.value.to_vec())?;
        found.push((entry.key, entry.operation, value));
        if found.len() == 4 {
            store.put("key.1", "new".into()).await?;
            store.put("other", "unheard".into()).await?;
            store.delete("key.2").await?;
        }
    }
    let put = |key: &str, value: &str| (key.to_owned(), Operation::Put, value.to_owned());
    let wanted = vec![
        put("key.0", "16"),
        put("key.1", "17"),
        put("key.2", "18"),
        put("key.3", "19"),
        put("key.1", "new"),
        ("key.2".to_owned(), Operation::Delete, String::new()),
    ];
    equal(&found, &wanted, "changes")
}

pub async fn key_with_ttl(server: &Server) -> Outcome {
    let context = context(server).await?;
    let config = kv::Config {
        bucket: "leases".to_owned(),
        limit_markers: Some(Duration::from_secs(5)),
        ..Default::default()
    };
    let store = context.create_key_value(config).await?;
    let mut watch = store.watch_all().await?;
    let ttl = Duration::from_secs(1);
    store.create_with_ttl("lease", "mine".into(), ttl).await?;
    for wanted in [Operation::Put, Operation::Purge] {
        let entry = timeout(WAIT, watch.next()).await?.context("it ended")??;
        equal(
            (entry.key.as_str(), entry.operation),
            ("lease", wanted),
            "a change",
        )?;
    }
    equal(store.get("lease").await?, None, "a key whose time is over")
}

pub async fn objects(server: &Server) -> Outcome {
    let context = context(server).await?;
    let config = object_store::Config {
        bucket: "objects".to_owned(),
        ..Default::default()
    };
    let store = context.create_object_store(config).await?;
    // The content of adjacent chunks differs.
    let content: Vec<u8> = (0..(OBJECT_BYTES as u64) / 8)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    let info = store.put("large file.bin", &mut &content[..]).await?;
    equal(
        (info.size, info.chunks),
        (OBJECT_BYTES, OBJECT_BYTES >> 17),
        "size and pieces",
    )?;
    let mut object = store.get("large file.bin").await?;
    equal(
        &object.info().digest,
        &info.digest,
        "the digest that was stored",
    )?;
    let mut back = Vec::with_capacity(OBJECT_BYTES);
    object.read_to_end(&mut back).await?;
    ensure!(back == content, "the bytes differ");
    store.put("small", &mut &b"hello"[..]).await?;
    let mut back = Vec::new();
    store.get("small").await?.read_to_end(&mut back).await?;
    equal(&back, &b"hello".to_vec(), "a small one")?;
    store.delete("large file.bin").await?;
    let objects: Vec<_> = store.list().await?.try_collect().await?;
    let names: Vec<_> = objects.iter().map(|object| object.name.as_str()).collect();
    equal(&names, &vec!["small"], "the list after a delete")?;
    context.delete_object_store("objects").await?;
    Ok(())
}

/// Takes `count` messages from a client that reports a lost consumer and then continues.
async fn take_on<E: std::error::Error + Send + Sync + 'static>(
    messages: &mut (impl Stream<Item = Result<Message, E>> + Unpin),
    count: usize,
) -> anyhow::Result<Vec<String>> {
    let (mut payloads, mut told) = (Vec::with_capacity(count), 0);
    while payloads.len() < count {
        match next(messages).await {
            Ok(message) => payloads.push(text(&message)?),
            Err(error) => {
                told += 1;
                ensure!(told < 100, "it does not go on: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    Ok(payloads)
}

/// An ordered consumer receives every record once and in order, even if the server is restarted and loses the
/// consumer. A durable consumer continues at its position.
pub async fn ordered_across_a_restart(_: &Server) -> Outcome {
    let folder = Folder::new("lasting")?;
    let mut own = Server::start(&["-js", "-sd", folder.path()]).await?;
    let options = ConnectOptions::new().reconnect_delay_callback(|_| Duration::from_millis(100));
    let mut context = jetstream::new(connect_with(&own, options).await?);
    context.set_timeout(WAIT);
    let stream = add_stream(&context, "LASTS", "lasts").await?;
    publish_many(&context, "lasts", 500).await?;
    let config = push::OrderedConfig {
        deliver_subject: context.client().new_inbox(),
        ..Default::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    brings(&mut messages, false, &numbers(500), "before").await?;
    let consumer = stream.create_consumer(durable("worker")).await?;
    let mut batch = consumer.fetch().max_messages(200).messages().await?;
    while let Some(message) = batch.next().await {
        let message = message.map_err(anyhow::Error::from_boxed)?;
        message.ack().await.map_err(anyhow::Error::from_boxed)?;
    }
    all_acknowledged(&consumer).await?;

    own.stop().await?;
    own.start_again().await?;
    let state = stream.get_info().await?.state;
    equal(
        (state.messages, state.last_sequence),
        (500, 500),
        "the state after it",
    )?;
    publish_many(&context, "lasts", 500).await?;
    equal(take_on(&mut messages, 500).await?, numbers(500), "after")?;
    let mut rest = consumer.messages().await?;
    let mut wanted = numbers(500).split_off(200);
    wanted.extend(numbers(500));
    brings(&mut rest, true, &wanted, "of the durable one, after").await
}
