// The official JavaScript client, @nats-io/transport-node, with the server under test.

import { randomBytes } from "node:crypto";
import { after, afterEach, test } from "node:test";
import { connect as dial, createInbox, errors, headers } from "@nats-io/transport-node";
import { check, equal, MILLISECONDS_MAX, numbers, rejects, within } from "./checks.mjs";
import { Server } from "./server.mjs";

const opened = [];

/** Connects a client, which is closed after the case. */
async function connect(server, options = {}) {
  const client = await dial({ servers: `127.0.0.1:${server.port}`, timeout: 10_000, ...options });
  opened.push(client);
  return client;
}

const text = (message) => message.string();

const server = await Server.start([]);
after(() => server.kill());
afterEach(() => Promise.all(opened.splice(0).map((client) => client.close())));

/** A subscription that stores messages until they are taken. */
function listen(client, subject, options = {}) {
  const heard = [];
  let wake = () => {};
  const subscription = client.subscribe(subject, {
    ...options,
    callback: (error, message) => {
      heard.push(error ?? message);
      wake();
    },
  });
  const take = async (count) => {
    while (heard.length < count) {
      await within(new Promise((resolve) => (wake = resolve)), `${count} messages on ${subject}, only ${heard.length}`);
    }
    return heard.splice(0, count);
  };
  return { subscription, heard, take };
}

async function pair(server) {
  return [await connect(server), await connect(server)];
}

test("publish subscribe", async () => {
  const [sender, receiver] = await pair(server);
  const plain = listen(receiver, "js.plain");
  await receiver.flush();
  for (const n of numbers(2000)) sender.publish("js.plain", `${n}`);
  equal((await plain.take(2000)).map(text), numbers(2000).map(String), "payloads in order");
  sender.publish("js.plain");
  sender.publish("js.plain", Uint8Array.from(numbers(256)));
  const found = (await plain.take(2)).map((message) => [...message.data]);
  equal(found, [[], numbers(256)], "empty and binary payloads");
});

test("wildcards", async () => {
  const [sender, receiver] = await pair(server);
  const star = listen(receiver, "js.*.c");
  const tail = listen(receiver, "js.>");
  await receiver.flush();
  for (const subject of ["js.b.c", "js.b.d", "js.b.c.d", "js", "js.x.c", "jx.b.c", "js.c", "js.end.c"]) {
    sender.publish(subject);
  }
  await sender.flush();
  const subjects = (messages) => messages.map((message) => message.subject);
  equal(subjects(await star.take(3)), ["js.b.c", "js.x.c", "js.end.c"], "heard by js.*.c");
  const wanted = ["js.b.c", "js.b.d", "js.b.c.d", "js.x.c", "js.c", "js.end.c"];
  equal(subjects(await tail.take(6)), wanted, "heard by js.>");
});

test("queue group", async () => {
  const sender = await connect(server);
  const members = await Promise.all(numbers(4).map(() => connect(server)));
  const total = 1200;
  const heard = members.map(() => []);
  let wake = () => {};
  const all = new Promise((resolve) => (wake = resolve));
  for (const [index, member] of members.entries()) {
    member.subscribe("js.work", {
      queue: "workers",
      callback: (_, message) => {
        heard[index].push(Number(text(message)));
        if (heard.flat().length >= total) wake();
      },
    });
    await member.flush();
  }
  const plain = listen(sender, "js.work");
  for (const n of numbers(total)) sender.publish("js.work", `${n}`);
  await within(all, "end of the work");
  await sender.flush();
  for (const member of members) await member.flush();
  equal(heard.flat().sort((a, b) => a - b), numbers(total), "messages over all members");
  check(heard.every((mine) => mine.length > 0), `a member got nothing: ${heard.map((mine) => mine.length)}`);
  equal((await plain.take(total)).map(text), numbers(total).map(String), "heard by the plain one");
});

test("request reply", async () => {
  const [asker, answerer] = await pair(server);
  answerer.subscribe("js.ask", { callback: (_, message) => message.respond(`${text(message)}!`) });
  await answerer.flush();
  const ask = async (n) => text(await asker.request("js.ask", `${n}`, { timeout: MILLISECONDS_MAX }));
  for (const n of numbers(200)) equal(await ask(n), `${n}!`, "answer");
  equal(await Promise.all(numbers(200).map(ask)), numbers(200).map((n) => `${n}!`), "answers at once");
  // The older style with one inbox per request, which is selected by an option.
  const alone = await asker.request("js.ask", "alone", { timeout: MILLISECONDS_MAX, noMux: true });
  equal(text(alone), "alone!", "an answer to an inbox of its own");
});

test("request many", async () => {
  const [asker, answerer] = await pair(server);
  const other = await connect(server);
  for (const client of [answerer, other]) {
    client.subscribe("js.poll", { callback: (_, message) => message.respond("here") });
    await client.flush();
  }
  const answers = [];
  for await (const answer of await asker.requestMany("js.poll", "", { strategy: "count", maxMessages: 2, maxWait: MILLISECONDS_MAX })) {
    answers.push(text(answer));
  }
  equal(answers, ["here", "here"], "answers of all");
});

test("no responders", async () => {
  const client = await connect(server);
  for (const noMux of [false, true]) {
    const error = await rejects(client.request("js.nobody", "", { timeout: MILLISECONDS_MAX, noMux }), "a request to nobody");
    const found = error instanceof errors.NoRespondersError || error.cause instanceof errors.NoRespondersError;
    check(found, `refused with ${error.name}: ${error.message}`);
  }
});

test("headers", async () => {
  const [sender, receiver] = await pair(server);
  receiver.subscribe("js.headers", {
    callback: (_, message) => {
      const back = headers();
      for (const value of message.headers.values("Kind")) back.append("Echo", value);
      message.respond("back", { headers: back });
    },
  });
  await receiver.flush();
  const there = headers();
  there.append("Kind", "a: b");
  there.append("Kind", "ü");
  const answer = await sender.request("js.headers", "there", { headers: there, timeout: MILLISECONDS_MAX });
  equal([text(answer), answer.headers.values("Echo")], ["back", ["a: b", "ü"]], "answer and its headers");
  const alone = listen(receiver, "js.headers.alone");
  await receiver.flush();
  sender.publish("js.headers.alone", "", { headers: there });
  const [message] = await alone.take(1);
  equal([message.data.length, message.headers.get("Kind")], [0, "a: b"], "headers without a payload");
});

test("drain", async () => {
  const [sender, receiver] = await pair(server);
  const one = listen(receiver, "js.drain");
  await receiver.flush();
  for (const n of numbers(1000)) sender.publish("js.drain", `${n}`);
  await sender.flush();
  await one.subscription.drain();
  equal(one.heard.map(text), numbers(1000).map(String), "heard by a drained subscription");
  sender.publish("js.drain", "1000");
  await sender.flush();
  await receiver.flush();
  equal(one.heard.length, 1000, "messages after the drain");

  const other = listen(receiver, "js.drain.all");
  await receiver.flush();
  for (const n of numbers(1000)) sender.publish("js.drain.all", `${n}`);
  await sender.flush();
  await receiver.drain();
  equal(other.heard.map(text), numbers(1000).map(String), "heard by a drained connection");
  check(receiver.isClosed(), "the drained connection is open");
});

/** Waits for the client's next status of a type. */
async function status(client, type) {
  for await (const found of client.status()) {
    if (found.type === type) return found;
  }
  throw new Error(`closed before ${type}`);
}

test("reconnect", async (t) => {
  const own = await Server.start([]);
  t.after(() => own.kill());
  const options = { reconnectTimeWait: 100, maxReconnectAttempts: 300 };
  const [sender, receiver] = [await connect(own, options), await connect(own, options)];
  const plain = listen(receiver, "js.again");
  const queue = listen(receiver, "js.again.*", { queue: "q" });
  await receiver.flush();
  for (const _ of numbers(2)) {
    const back = [status(sender, "reconnect"), status(receiver, "reconnect")];
    await own.kill();
    await own.launch();
    await within(Promise.all(back), "reconnection");
    await receiver.flush();
    sender.publish("js.again", "after");
    sender.publish("js.again.x", "after, in a queue");
    equal(text((await plain.take(1))[0]), "after", "heard after a restart");
    equal(text((await queue.take(1))[0]), "after, in a queue", "heard after a restart");
  }
});

test("largest payload", async () => {
  const [sender, receiver] = await pair(server);
  equal(sender.info.max_payload, 1 << 20, "max_payload");
  const large = listen(receiver, "js.large");
  await receiver.flush();
  const payload = randomBytes(1 << 20);
  for (const _ of numbers(5)) {
    sender.publish("js.large", payload);
    const [message] = await large.take(1);
    check(payload.equals(message.data), "another mebibyte came");
  }
  const publish = async () => sender.publish("js.large", randomBytes((1 << 20) + 1));
  const error = await rejects(publish(), "one byte more");
  check(/max_payload|max payload/i.test(error.message), `refused with ${error.message}`);
});

test("payload above the largest", async () => {
  const client = await connect(server, { reconnect: false });
  // Disables the client's own check: the server must refuse the message with an error.
  client.protocol.info.max_payload = 1 << 30;
  client.publish("js.large", new Uint8Array((1 << 20) + 1));
  const error = await within(client.closed(), "close");
  // The rest of the payload may arrive at a closed socket. The reset may then arrive before the server's error.
  check(error === undefined || /payload|closed|reset|pipe/i.test(`${error.name} ${error.message}`), `closed with ${error}`);
});

async function authorization(flags, good, bad) {
  const own = await Server.start(flags);
  try {
    const client = await connect(own, good);
    const heard = listen(client, "js.auth");
    client.publish("js.auth", "in");
    equal(text((await heard.take(1))[0]), "in", "a message");
    await client.close();
    for (const options of [bad, {}]) {
      const error = await rejects(connect(own, { ...options, reconnect: false }), JSON.stringify(options));
      check(error instanceof errors.AuthorizationError, `refused with ${error.name}: ${error.message}`);
    }
  } finally {
    await own.kill();
  }
}

test("user and password", () =>
  authorization(["--user", "alice", "--pass", "secret"], { user: "alice", pass: "secret" }, { user: "alice", pass: "wrong" }));
test("token", () => authorization(["--auth", "s3cr3t"], { token: "s3cr3t" }, { token: "wrong" }));

test("unsubscribe after", async () => {
  const [sender, receiver] = await pair(server);
  const early = listen(receiver, "js.max", { max: 3 });
  const late = listen(receiver, "js.max");
  const every = listen(receiver, "js.max");
  await receiver.flush();
  for (const n of numbers(2)) sender.publish("js.max", `${n}`);
  await sender.flush();
  await receiver.flush();
  late.subscription.unsubscribe(4);
  await receiver.flush();
  for (const n of numbers(8)) sender.publish("js.max", `${n + 2}`);
  equal((await every.take(10)).map(text), numbers(10).map(String), "heard without a limit");
  equal(early.heard.map(text), ["0", "1", "2"], "limit set first");
  equal(late.heard.map(text), ["0", "1", "2", "3"], "limit set after two");
});

test("echo off", async () => {
  const [deaf, other] = [await connect(server, { noEcho: true }), await connect(server)];
  const [own, others] = [listen(deaf, "js.echo"), listen(other, "js.echo")];
  await deaf.flush();
  await other.flush();
  deaf.publish("js.echo", "mine");
  await deaf.flush();
  other.publish("js.echo", "yours");
  equal((await others.take(2)).map(text), ["mine", "yours"], "heard by the other");
  equal((await own.take(1)).map(text), ["yours"], "heard by the one with echo off");
});

test("many subscriptions", async () => {
  const [sender, receiver] = await pair(server);
  const total = 10_000;
  const heard = [];
  const subscriptions = numbers(total).map((n) =>
    receiver.subscribe(`js.many.${n}`, { callback: (_, message) => heard.push(message.subject) })
  );
  const done = listen(receiver, "js.done");
  const round = async () => {
    await receiver.flush();
    heard.length = 0;
    for (const n of numbers(total)) sender.publish(`js.many.${n}`);
    sender.publish("js.done");
    await done.take(1);
  };
  await round();
  equal(heard.length, total, "messages heard");
  check(heard.every((subject, n) => subject === `js.many.${n}`), "out of order");
  for (const subscription of subscriptions) subscription.unsubscribe();
  await round();
  equal(heard, [], "heard after unsubscribing");
});

test("lame duck", async (t) => {
  const own = await Server.start([]);
  t.after(() => own.kill());
  const client = await connect(own);
  const told = status(client, "ldm");
  await client.flush();
  own.signal("SIGUSR2");
  await within(told, "lame duck notice");
  const heard = listen(client, "js.lame");
  client.publish("js.lame", "still here");
  equal(text((await heard.take(1))[0]), "still here", "a message in lame duck");
});

test("many clients", async () => {
  const clients = await Promise.all(numbers(100).map(() => connect(server)));
  const all = clients.map((client) => listen(client, "js.all"));
  await Promise.all(clients.map((client) => client.flush()));
  for (const [n, client] of clients.entries()) client.publish("js.all", `${n}`);
  for (const one of all) {
    const found = (await one.take(100)).map((message) => Number(text(message))).sort((a, b) => a - b);
    equal(found, numbers(100), "heard by one of them");
  }
});

test("reply to", async () => {
  const [sender, receiver] = await pair(server);
  const asked = listen(receiver, "js.to");
  const inbox = createInbox();
  const answers = listen(sender, inbox);
  await receiver.flush();
  sender.publish("js.to", "q", { reply: inbox });
  const [question] = await asked.take(1);
  equal(question.reply, inbox, "reply subject");
  question.respond("a");
  equal(text((await answers.take(1))[0]), "a", "answer");
  check((await sender.rtt()) >= 0, "no round trip");
});

test("verbose and pedantic", async () => {
  const client = await connect(server, { verbose: true, pedantic: true });
  const heard = listen(client, "js.verbose");
  client.publish("js.verbose", "hi");
  equal(text((await heard.take(1))[0]), "hi", "a message");
});
