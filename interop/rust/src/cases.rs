//! The cases for core NATS. Each is a function, and fails if the function returns an error.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, PublishErrorKind,
    RequestErrorKind, Subscriber,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::peers::{Outcome, WAIT, connect, connect_with, equal, numbers};
use crate::server::Server;

const MIB: usize = 1 << 20;

/// Waits until the server has processed everything that the client sent. The client's own `flush` only
/// writes. So this publishes a message to the client itself, which arrives after everything sent before.
async fn settle(client: &Client) -> Outcome {
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await?;
    client.publish(inbox, "".into()).await?;
    next(&mut echo).await?;
    Ok(())
}

async fn next(subscriber: &mut Subscriber) -> anyhow::Result<Message> {
    timeout(WAIT, subscriber.next())
        .await
        .context("nothing came")?
        .context("the subscription ended")
}

async fn take(subscriber: &mut Subscriber, count: usize) -> anyhow::Result<Vec<String>> {
    let mut payloads = Vec::with_capacity(count);
    for _ in 0..count {
        payloads.push(text(&next(subscriber).await?)?);
    }
    Ok(payloads)
}

async fn publish_numbers(client: &Client, subject: &'static str, of: Range<usize>) -> Outcome {
    for number in of {
        client.publish(subject, number.to_string().into()).await?;
    }
    Ok(())
}

/// Checks the payloads of the next messages.
async fn receives(subscriber: &mut Subscriber, wanted: &[impl AsRef<str>], what: &str) -> Outcome {
    let found = take(subscriber, wanted.len()).await?;
    let wanted: Vec<&str> = wanted.iter().map(AsRef::as_ref).collect();
    equal(found, wanted, what)
}

fn text(message: &Message) -> anyhow::Result<String> {
    Ok(String::from_utf8(message.payload.to_vec())?)
}

pub async fn publish_subscribe(server: &Server) -> Outcome {
    let (sender, receiver) = (connect(server).await?, connect(server).await?);
    let mut plain = receiver.subscribe("rs.plain").await?;
    settle(&receiver).await?;
    publish_numbers(&sender, "rs.plain", 0..2000).await?;
    receives(&mut plain, &numbers(2000), "payloads in order").await?;
    let binary: Vec<u8> = (0..=255).collect();
    sender.publish("rs.plain", "".into()).await?;
    sender.publish("rs.plain", binary.clone().into()).await?;
    ensure!(
        next(&mut plain).await?.payload.is_empty(),
        "the empty payload is not empty"
    );
    equal(
        &next(&mut plain).await?.payload.to_vec(),
        &binary,
        "binary payload",
    )
}

pub async fn wildcards(server: &Server) -> Outcome {
    let (sender, receiver) = (connect(server).await?, connect(server).await?);
    let mut star = receiver.subscribe("rs.*.c").await?;
    let mut tail = receiver.subscribe("rs.>").await?;
    settle(&receiver).await?;
    for subject in [
        "rs.b.c", "rs.b.d", "rs.b.c.d", "rs", "rs.x.c", "rx.b.c", "rs.c", "rs.end.c",
    ] {
        // The payload is equal to the subject, so that `take` can compare it.
        sender.publish(subject, subject.into()).await?;
    }
    let wanted = ["rs.b.c", "rs.x.c", "rs.end.c"].map(String::from).to_vec();
    receives(&mut star, &wanted, "heard by rs.*.c").await?;
    let wanted = ["rs.b.c", "rs.b.d", "rs.b.c.d", "rs.x.c", "rs.c", "rs.end.c"].map(String::from);
    receives(&mut tail, &wanted, "heard by rs.>").await
}

pub async fn queue_group(server: &Server) -> Outcome {
    const TOTAL: usize = 1200;
    let sender = connect(server).await?;
    let (heard, mut hears) = mpsc::unbounded_channel();
    let mut clients = Vec::new();
    for member in 0..4_usize {
        let client = connect(server).await?;
        let mut work = client.queue_subscribe("rs.work", "workers".into()).await?;
        settle(&client).await?;
        let heard = heard.clone();
        tokio::spawn(async move {
            while let Some(message) = work.next().await {
                let number: usize = text(&message)?.parse()?;
                heard.send((member, number))?;
            }
            anyhow::Ok(())
        });
        clients.push(client);
    }
    let mut plain = sender.subscribe("rs.work").await?;
    publish_numbers(&sender, "rs.work", 0..TOTAL).await?;
    let (mut by_member, mut seen) = ([0; 4], Vec::with_capacity(TOTAL));
    for _ in 0..TOTAL {
        let (member, number) = timeout(WAIT, hears.recv())
            .await?
            .context("the members ended")?;
        by_member[member] += 1;
        seen.push(number);
    }
    receives(&mut plain, &numbers(TOTAL), "heard by the plain one").await?;
    // When `settle` returns, everything that the server sent to a member before has arrived, so also a second
    // copy of a message.
    for client in &clients {
        settle(client).await?;
    }
    ensure!(hears.try_recv().is_err(), "a message came twice");
    seen.sort_unstable();
    equal(seen, Vec::from_iter(0..TOTAL), "messages over all members")?;
    ensure!(
        by_member.iter().all(|count| *count > 0),
        "a member got nothing: {by_member:?}"
    );
    Ok(())
}

/// Answers every message with the message's own payload, followed by `!`.
async fn answer(client: &Client, subject: &'static str) -> Outcome {
    let mut questions = client.subscribe(subject).await?;
    settle(client).await?;
    let client = client.clone();
    tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            let reply = question.reply.clone().context("no reply subject")?;
            let back = format!("{}!", text(&question)?);
            match question.headers {
                Some(headers) => {
                    client
                        .publish_with_headers(reply, headers, back.into())
                        .await?
                }
                None => client.publish(reply, back.into()).await?,
            }
        }
        anyhow::Ok(())
    });
    Ok(())
}

pub async fn request_reply(server: &Server) -> Outcome {
    let (asker, answerer) = (connect(server).await?, connect(server).await?);
    answer(&answerer, "rs.ask").await?;
    for n in 0..200 {
        let found = asker.request("rs.ask", n.to_string().into()).await?;
        equal(text(&found)?, format!("{n}!"), "answer")?;
    }
    let all = (0..200).map(|n| asker.request("rs.ask", n.to_string().into()));
    for (n, found) in futures_util::future::join_all(all)
        .await
        .into_iter()
        .enumerate()
    {
        equal(text(&found?)?, format!("{n}!"), "answer among many")?;
    }
    let inbox = asker.new_inbox();
    let request = async_nats::Request::new()
        .payload("own".into())
        .inbox(inbox);
    let found = asker.send_request("rs.ask", request).await?;
    equal(text(&found)?, "own!", "answer to an inbox of its own")
}

pub async fn no_responders(server: &Server) -> Outcome {
    let client = connect(server).await?;
    match client.request("rs.nobody", "".into()).await {
        Ok(_) => bail!("somebody answered"),
        Err(error) => equal(&error.kind(), &RequestErrorKind::NoResponders, "error"),
    }
}

pub async fn headers_both_ways(server: &Server) -> Outcome {
    let (asker, answerer) = (connect(server).await?, connect(server).await?);
    answer(&answerer, "rs.headers").await?;
    let mut headers = HeaderMap::new();
    headers.append("Kind", "a: b");
    headers.append("Kind", "ü");
    headers.insert("Other", "1");
    let found = asker
        .request_with_headers("rs.headers", headers.clone(), "q".into())
        .await?;
    equal(text(&found)?, "q!", "answer")?;
    equal(
        &found.headers,
        &Some(headers.clone()),
        "headers there and back",
    )?;
    let mut alone = answerer.subscribe("rs.headers.alone").await?;
    settle(&answerer).await?;
    asker
        .publish_with_headers("rs.headers.alone", headers.clone(), "".into())
        .await?;
    let message = next(&mut alone).await?;
    ensure!(message.payload.is_empty(), "a payload came");
    equal(
        &message.headers,
        &Some(headers),
        "headers without a payload",
    )
}

pub async fn drain(server: &Server) -> Outcome {
    let (sender, receiver) = (connect(server).await?, connect(server).await?);
    let mut one = receiver.subscribe("rs.drain").await?;
    let mut end = receiver.subscribe("rs.end").await?;
    settle(&receiver).await?;
    publish_numbers(&sender, "rs.drain", 0..1000).await?;
    // When this message arrives, the thousand messages before it have been delivered to the receiver.
    sender.publish("rs.end", "".into()).await?;
    next(&mut end).await?;
    one.drain().await?;
    settle(&receiver).await?;
    sender.publish("rs.drain", "1000".into()).await?;
    sender.publish("rs.end", "".into()).await?;
    next(&mut end).await?;
    let mut heard = Vec::new();
    while let Some(message) = timeout(WAIT, one.next())
        .await
        .context("the drained one stays")?
    {
        heard.push(text(&message)?);
    }
    equal(&heard, &numbers(1000), "heard by a drained subscription")?;

    let mut all = receiver.subscribe("rs.drain.all").await?;
    settle(&receiver).await?;
    publish_numbers(&sender, "rs.drain.all", 0..1000).await?;
    sender.publish("rs.end", "".into()).await?;
    next(&mut end).await?;
    receiver.drain().await?;
    let mut heard = Vec::new();
    while let Some(message) = timeout(WAIT, all.next())
        .await
        .context("the drained one stays")?
    {
        heard.push(text(&message)?);
    }
    equal(&heard, &numbers(1000), "heard by a drained connection")
}

/// Adds a callback to the options that sends every event to a channel.
fn with_events(options: ConnectOptions) -> (ConnectOptions, mpsc::UnboundedReceiver<Event>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let options = options.event_callback(move |event| {
        let sender = sender.clone();
        async move {
            // If the case no longer listens to events, it has ended.
            let _ = sender.send(event);
        }
    });
    (options, receiver)
}

async fn wait_for(events: &mut mpsc::UnboundedReceiver<Event>, wanted: &Event) -> Outcome {
    loop {
        let event = timeout(WAIT, events.recv())
            .await
            .with_context(|| format!("no {wanted}"))?;
        if event.as_ref().context("the client ended")? == wanted {
            return Ok(());
        }
    }
}

pub async fn reconnect(_: &Server) -> Outcome {
    let mut own = Server::start(&[]).await?;
    let options = || ConnectOptions::new().reconnect_delay_callback(|_| Duration::from_millis(100));
    let (sender_options, mut sender_events) = with_events(options());
    let (receiver_options, mut receiver_events) = with_events(options());
    let sender = connect_with(&own, sender_options).await?;
    let receiver = connect_with(&own, receiver_options).await?;
    let mut plain = receiver.subscribe("rs.again").await?;
    let mut queue = receiver.queue_subscribe("rs.again.*", "q".into()).await?;
    settle(&receiver).await?;
    for events in [&mut sender_events, &mut receiver_events] {
        wait_for(events, &Event::Connected).await?;
    }
    for _ in 0..2 {
        own.restart().await?;
        for events in [&mut sender_events, &mut receiver_events] {
            wait_for(events, &Event::Connected).await?;
        }
        settle(&receiver).await?;
        sender.publish("rs.again", "after".into()).await?;
        sender
            .publish("rs.again.x", "after, in a queue".into())
            .await?;
        receives(&mut plain, &["after"], "heard after a restart").await?;
        receives(&mut queue, &["after, in a queue"], "heard by the queue").await?;
    }
    Ok(())
}

pub async fn largest_payload(server: &Server) -> Outcome {
    let (sender, receiver) = (connect(server).await?, connect(server).await?);
    equal(sender.server_info().max_payload, MIB, "max_payload")?;
    let mut large = receiver.subscribe("rs.large").await?;
    settle(&receiver).await?;
    let payload: Vec<u8> = (0..MIB).map(|n| (n * 31 % 251) as u8).collect();
    for _ in 0..5 {
        sender.publish("rs.large", payload.clone().into()).await?;
        ensure!(
            next(&mut large).await?.payload == payload,
            "another mebibyte came"
        );
    }
    match sender.publish("rs.large", vec![0; MIB + 1].into()).await {
        Ok(()) => bail!("one byte more was sent"),
        Err(error) => equal(
            &error.kind(),
            &PublishErrorKind::MaxPayloadExceeded,
            "error",
        ),
    }
}

async fn authorization(
    flags: &[&'static str],
    good: ConnectOptions,
    bad: ConnectOptions,
) -> Outcome {
    let own = Server::start(flags).await?;
    let client = connect_with(&own, good).await?;
    let mut heard = client.subscribe("rs.auth").await?;
    client.publish("rs.auth", "in".into()).await?;
    receives(&mut heard, &["in"], "a message").await?;
    for options in [bad, ConnectOptions::new()] {
        match connect_with(&own, options).await {
            Ok(_) => bail!("wrong or no credentials were accepted"),
            Err(error) => {
                let kind = error
                    .downcast_ref::<async_nats::ConnectError>()
                    .map(|error| error.kind());
                equal(
                    &kind,
                    &Some(ConnectErrorKind::AuthorizationViolation),
                    "error",
                )?;
            }
        }
    }
    Ok(())
}

pub async fn user_and_password(_: &Server) -> Outcome {
    let options =
        |password: &str| ConnectOptions::with_user_and_password("alice".into(), password.into());
    authorization(
        &["--user", "alice", "--pass", "secret"],
        options("secret"),
        options("wrong"),
    )
    .await
}

pub async fn token(_: &Server) -> Outcome {
    let options = |token: &str| ConnectOptions::with_token(token.into());
    authorization(&["--auth", "s3cr3t"], options("s3cr3t"), options("wrong")).await
}

pub async fn unsubscribe_after(server: &Server) -> Outcome {
    let (sender, receiver) = (connect(server).await?, connect(server).await?);
    let mut early = receiver.subscribe("rs.max").await?;
    let mut late = receiver.subscribe("rs.max").await?;
    let mut every = receiver.subscribe("rs.max").await?;
    early.unsubscribe_after(3).await?;
    settle(&receiver).await?;
    publish_numbers(&sender, "rs.max", 0..2).await?;
    let mut heard = take(&mut every, 2).await?;
    late.unsubscribe_after(4).await?;
    settle(&receiver).await?;
    publish_numbers(&sender, "rs.max", 2..10).await?;
    heard.extend(take(&mut every, 8).await?);
    equal(&heard, &numbers(10), "heard without a limit")?;
    for (subscriber, limit) in [(&mut early, 3), (&mut late, 4)] {
        receives(subscriber, &numbers(limit), "heard with a limit").await?;
        let end = timeout(WAIT, subscriber.next())
            .await
            .context("it stays after its limit")?;
        ensure!(end.is_none(), "a message beyond the limit");
    }
    Ok(())
}

pub async fn echo_off(server: &Server) -> Outcome {
    let deaf = connect_with(server, ConnectOptions::new().no_echo()).await?;
    let other = connect(server).await?;
    let mut own = deaf.subscribe("rs.echo").await?;
    let mut others = other.subscribe("rs.echo").await?;
    settle(&other).await?;
    deaf.publish("rs.echo", "mine".into()).await?;
    receives(&mut others, &["mine"], "heard by the other").await?;
    other.publish("rs.echo", "yours".into()).await?;
    receives(&mut others, &["yours"], "heard by the other").await?;
    receives(&mut own, &["yours"], "heard by the one with echo off").await
}

pub async fn many_subscriptions(server: &Server) -> Outcome {
    const TOTAL: usize = 10_000;
    let sender = connect(server).await?;
    // A subscription of async-nats allocates the whole capacity of its channel, so use a small capacity here.
    let receiver = connect_with(server, ConnectOptions::new()).await?;
    let mut subscribers = Vec::with_capacity(TOTAL);
    for n in 0..TOTAL {
        subscribers.push(receiver.subscribe(format!("rs.many.{n}")).await?);
    }
    let mut end = receiver.subscribe("rs.done").await?;
    receiver.publish("rs.done", "".into()).await?;
    next(&mut end).await?;
    for n in 0..TOTAL {
        sender
            .publish(format!("rs.many.{n}"), n.to_string().into())
            .await?;
    }
    for (n, subscriber) in subscribers.iter_mut().enumerate() {
        receives(subscriber, &[n.to_string()], "a message of the many").await?;
        subscriber.unsubscribe().await?;
    }
    receiver.publish("rs.done", "".into()).await?;
    next(&mut end).await?;
    // The server must have removed all subscriptions: for each subject it reports that there are no
    // responders.
    for n in [0, TOTAL / 2, TOTAL - 1] {
        match sender.request(format!("rs.many.{n}"), "".into()).await {
            Ok(_) => bail!("somebody answered"),
            Err(error) => equal(&error.kind(), &RequestErrorKind::NoResponders, "error")?,
        }
    }
    Ok(())
}

pub async fn lame_duck(_: &Server) -> Outcome {
    let own = Server::start(&[]).await?;
    let (options, mut events) = with_events(ConnectOptions::new());
    let client = connect_with(&own, options).await?;
    let mut heard = client.subscribe("rs.lame").await?;
    client.publish("rs.lame", "before".into()).await?;
    receives(&mut heard, &["before"], "a message").await?;
    own.lame_duck()?;
    wait_for(&mut events, &Event::LameDuckMode).await?;
    client.publish("rs.lame", "still here".into()).await?;
    receives(&mut heard, &["still here"], "a message in lame duck").await
}

pub async fn many_clients(server: &Server) -> Outcome {
    let dials = (0..100).map(|_| connect(server));
    let clients: Vec<Client> = futures_util::future::join_all(dials)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    let mut subscribers = Vec::new();
    for client in &clients {
        let mut all = client.subscribe("rs.all").await?;
        client.publish("rs.all", "warm".into()).await?;
        next(&mut all).await?;
        subscribers.push(all);
    }
    for (n, client) in clients.iter().enumerate() {
        client.publish("rs.all", n.to_string().into()).await?;
    }
    for subscriber in &mut subscribers {
        let mut found = Vec::new();
        while found.len() < clients.len() {
            let payload = text(&next(subscriber).await?)?;
            if payload != "warm" {
                found.push(payload.parse::<usize>()?);
            }
        }
        found.sort_unstable();
        let wanted = Vec::from_iter(0..clients.len());
        equal(found, wanted, "heard by one of them")?;
    }
    Ok(())
}

/// Publishes a burst to many subscribers. Each gets all of it, in order.
pub async fn fan_out(server: &Server) -> Outcome {
    const MESSAGES: usize = 20_000;
    let sender = connect(server).await?;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let client = connect(server).await?;
        let mut burst = client.subscribe("rs.burst").await?;
        let mut ready = client.subscribe("rs.ready").await?;
        client.publish("rs.ready", "".into()).await?;
        next(&mut ready).await?;
        tasks.push(tokio::spawn(async move {
            let found = take(&mut burst, MESSAGES).await?;
            // Keep the client until here, because dropping it closes the connection.
            drop(client);
            ensure!(found == numbers(MESSAGES), "lost or out of order");
            anyhow::Ok(())
        }));
    }
    publish_numbers(&sender, "rs.burst", 0..MESSAGES).await?;
    for task in tasks {
        task.await??;
    }
    Ok(())
}

pub async fn server_info(server: &Server) -> Outcome {
    let client = connect(server).await?;
    let info = client.server_info();
    equal(&info.version, &"2.15.2".to_owned(), "version")?;
    equal(&info.port, &server.port, "port")?;
    equal(
        (info.proto, info.headers, info.auth_required),
        (1, true, false),
        "proto, headers, auth",
    )?;
    ensure!(
        info.client_id > 0 && !info.server_id.is_empty(),
        "no client_id or server_id"
    );
    // Applications use this method to find out whether a feature is available.
    ensure!(
        client.is_server_compatible(2, 14, 0),
        "not compatible with 2.14"
    );
    Ok(())
}
