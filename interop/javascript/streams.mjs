// JetStream with the official JavaScript client: streams, consumers, key-value buckets, and objects.

import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { connect as dial } from "@nats-io/transport-node";
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { check, equal, numbers, rejects, within } from "./checks.mjs";
import { Server } from "./server.mjs";

const OBJECT_BYTES = 64 * 1024 * 1024;
const SECOND_NANOS = 1_000_000_000;
const WAIT_TRIES_MAX = 600;

async function connect(server, options = {}) {
  const client = await dial({ servers: `127.0.0.1:${server.port}`, timeout: 10_000, ...options });
  const manager = await jetstreamManager(client, { timeout: 20_000 });
  return { client, manager, streams: jetstream(client, { timeout: 20_000 }) };
}

const folder = await mkdtemp(path.join(tmpdir(), "fanline-interop-"));
const server = await Server.start(["-js", "-sd", path.join(folder, "shared")]);
after(async () => {
  await server.kill();
  await rm(folder, { recursive: true, force: true });
});

function onJetStream(name, body) {
  test(name, async () => {
    const connected = await connect(server);
    await body(connected);
    await connected.client.close();
  });
}

async function publishMany(streams, subject, count) {
  const acks = await Promise.all(numbers(count).map((n) => streams.publish(subject, `${n}`)));
  return acks.map((ack) => ack.seq);
}

/** Takes a number of messages and acknowledges each. */
async function take(messages, count) {
  const found = [];
  for await (const message of messages) {
    message.ack();
    found.push(Number(message.string()));
    if (found.length === count) break;
  }
  return found;
}

async function until(what, look) {
  for (let tries = 0; tries < WAIT_TRIES_MAX; tries += 1) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
}

onJetStream("publish and acknowledge", async ({ manager, streams }) => {
  await manager.streams.add({ name: "ACKS", subjects: ["acks.*"] });
  const ack = await streams.publish("acks.one", "first");
  equal([ack.stream, ack.seq, ack.duplicate], ["ACKS", 1, false], "the first acknowledgement");
  equal(await publishMany(streams, "acks.many", 1000), numbers(1000).map((n) => n + 2), "sequences");
  const { state } = await manager.streams.info("ACKS", { subjects_filter: ">" });
  equal([state.messages, state.last_seq, state.num_subjects], [1001, 1001, 2], "the state");
  equal(state.subjects, { "acks.many": 1000, "acks.one": 1 }, "records per subject");
  const stored = await manager.streams.getMessage("ACKS", { last_by_subj: "acks.many" });
  equal([stored.seq, stored.string()], [1001, "999"], "the last of a subject");
});

onJetStream("duplicates and expectations", async ({ manager, streams }) => {
  await manager.streams.add({ name: "DUPES", subjects: ["dupes"] });
  const found = [];
  for (const msgID of ["a", "b", "a", "c"]) {
    const ack = await streams.publish("dupes", "x", { msgID });
    found.push([ack.seq, ack.duplicate]);
  }
  equal(found, [[1, false], [2, false], [1, true], [3, false]], "acknowledgements");
  for (const [expect, code] of [
    [{ lastSequence: 9 }, 10071],
    [{ lastSubjectSequence: 1 }, 10071],
    [{ lastMsgID: "other" }, 10070],
    [{ streamName: "OTHER" }, 10060],
  ]) {
    const error = await rejects(streams.publish("dupes", "no", { expect }), JSON.stringify(expect));
    equal(error.code, code, JSON.stringify(expect));
  }
  equal((await streams.publish("dupes", "yes", { expect: { lastSequence: 3 } })).seq, 4, "as expected");
});

onJetStream("fetch durable", async ({ manager, streams }) => {
  await manager.streams.add({ name: "FETCH", subjects: ["fetch"] });
  await publishMany(streams, "fetch", 500);
  await manager.consumers.add("FETCH", { durable_name: "worker", ack_policy: AckPolicy.Explicit });
  const consumer = await streams.consumers.get("FETCH", "worker");
  const found = [];
  while (found.length < 500) found.push(...await take(await consumer.fetch({ max_messages: 100 }), 100));
  equal(found, numbers(500), "in order");
  await until("all acknowledged", async () => (await consumer.info()).num_ack_pending === 0);
  const info = await consumer.info();
  equal([info.ack_floor.stream_seq, info.num_pending], [500, 0], "where it stands");
  equal(await consumer.next({ expires: 1000 }), null, "one more");
});

onJetStream("consume pull", async ({ manager, streams }) => {
  await manager.streams.add({ name: "CONSUME", subjects: ["consume.*"] });
  await publishMany(streams, "consume.a", 1500);
  const config = { durable_name: "worker", ack_policy: AckPolicy.Explicit, filter_subject: "consume.a" };
  await manager.consumers.add("CONSUME", config);
  const consumer = await streams.consumers.get("CONSUME", "worker");
  const messages = await consumer.consume({ max_messages: 100 });
  const taking = take(messages, 2000);
  await streams.publish("consume.b", "-1");
  await publishMany(streams, "consume.a", 500);
  equal(await taking, [...numbers(1500), ...numbers(500)], "in order");
  await messages.close();
});

onJetStream("acknowledgements", async ({ manager, streams }) => {
  await manager.streams.add({ name: "KINDS", subjects: ["kinds"] });
  await publishMany(streams, "kinds", 3);
  await manager.consumers.add("KINDS", { durable_name: "worker", ack_policy: AckPolicy.Explicit, max_deliver: 3 });
  const consumer = await streams.consumers.get("KINDS", "worker");
  const [acked, naked, ended] = [await consumer.next(), await consumer.next(), await consumer.next()];
  check(await acked.ackAck(), "the acknowledgement was not confirmed");
  naked.nak();
  ended.term("broken");
  const again = await consumer.next();
  equal([again.string(), again.info.deliveryCount], ["1", 2], "what was not acknowledged");
  again.nak(100);
  const third = await consumer.next();
  equal([third.string(), third.info.deliveryCount], ["1", 3], "after a delay");
  check(await third.ackAck(), "the acknowledgement was not confirmed");
  await until("the floor", async () => (await consumer.info()).ack_floor.stream_seq === 3);
});

onJetStream("push consumer", async ({ manager, streams }) => {
  await manager.streams.add({ name: "PUSH", subjects: ["push"] });
  await publishMany(streams, "push", 500);
  const config = {
    durable_name: "pushed", ack_policy: AckPolicy.Explicit, deliver_subject: "there.push",
    flow_control: true, idle_heartbeat: 5 * SECOND_NANOS,
  };
  await manager.consumers.add("PUSH", config);
  const consumer = await streams.consumers.getPushConsumer("PUSH", "pushed");
  const messages = await consumer.consume();
  const taking = take(messages, 700);
  await publishMany(streams, "push", 200);
  equal(await taking, [...numbers(500), ...numbers(200)], "in order");
  await messages.close();
  await until("all acknowledged", async () => (await consumer.info()).num_ack_pending === 0);
});

onJetStream("ephemeral", async ({ manager, streams }) => {
  await manager.streams.add({ name: "BRIEF", subjects: ["brief.*"] });
  for (const n of numbers(12)) await streams.publish(`brief.${n % 3}`, `${n}`);
  for (const [config, wanted] of [
    [{ deliver_policy: DeliverPolicy.All }, numbers(12)],
    [{ deliver_policy: DeliverPolicy.Last }, [11]],
    [{ deliver_policy: DeliverPolicy.LastPerSubject, filter_subject: ">" }, [9, 10, 11]],
    [{ deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 11 }, [10, 11]],
    [{ filter_subjects: ["brief.1", "brief.2"] }, [1, 2, 4, 5, 7, 8, 10, 11]],
  ]) {
    const info = await manager.consumers.add("BRIEF", { ack_policy: AckPolicy.None, ...config });
    const consumer = await streams.consumers.get("BRIEF", info.name);
    equal(info.num_pending, wanted.length, "pending");
    const messages = await consumer.fetch({ max_messages: wanted.length });
    equal(await take(messages, wanted.length), wanted, JSON.stringify(config));
    check(await consumer.delete(), "not deleted");
  }
});

onJetStream("ordered", async ({ manager, streams }) => {
  await manager.streams.add({ name: "ORDER", subjects: ["order.*"] });
  await publishMany(streams, "order.a", 2000);
  await publishMany(streams, "order.b", 10);
  const consumer = await streams.consumers.get("ORDER", { filter_subjects: "order.a" });
  equal(await take(await consumer.consume(), 2000), numbers(2000), "pulled in order");
  const pushed = await streams.consumers.getPushConsumer("ORDER", { filter_subjects: "order.a" });
  equal(await take(await pushed.consume(), 2000), numbers(2000), "pushed in order");
});

onJetStream("key value", async ({ client }) => {
  const bucket = await new Kvm(client).create("kv", { history: 5 });
  equal(await bucket.put("a.b", "one"), 1, "the first revision");
  equal((await bucket.get("a.b")).string(), "one", "a value");
  equal(await bucket.update("a.b", "two", 1), 2, "the revision after an update");
  equal((await rejects(bucket.update("a.b", "no", 1), "an old revision")).code, 10071, "the error");
  equal(await bucket.create("c", "new"), 3, "the revision of a new key");
  await rejects(bucket.create("c", "no"), "a key created twice");
  await bucket.delete("c");
  equal((await bucket.get("c")).operation, "DEL", "a deleted key");
  equal(await bucket.create("c", "again"), 5, "the revision of a key that was deleted");
  equal(await bucket.get("none"), null, "a key that never was");
  equal((await bucket.get("a.b", { revision: 1 })).string(), "one", "an old revision");
  const history = [];
  for await (const entry of await bucket.history({ key: "a.b" })) history.push(entry.string());
  equal(history, ["one", "two"], "the history");
  const keys = [];
  for await (const key of await bucket.keys()) keys.push(key);
  equal(keys.sort(), ["a.b", "c"], "the keys");
  await bucket.purge("a.b");
  const status = await bucket.status();
  equal([status.bucket, status.history, status.values], ["kv", 5, 4], "the status");
  check(await bucket.destroy(), "not destroyed");
});

onJetStream("key value watch", async ({ client }) => {
  const bucket = await new Kvm(client).create("watched");
  for (const n of numbers(20)) await bucket.put(`key.${n % 4}`, `${n}`);
  const watch = await bucket.watch({ key: "key.>" });
  const found = [];
  for await (const entry of watch) {
    found.push([entry.key, entry.operation, entry.string()]);
    if (found.length === 4) {
      await bucket.put("key.1", "new");
      await bucket.put("other", "unheard");
      await bucket.delete("key.2");
    }
    if (found.length === 6) break;
  }
  const wanted = [16, 17, 18, 19].map((n) => [`key.${n % 4}`, "PUT", `${n}`]);
  equal(found, [...wanted, ["key.1", "PUT", "new"], ["key.2", "DEL", ""]], "changes");
});

onJetStream("key with ttl", async ({ client }) => {
  const bucket = await new Kvm(client).create("leases", { markerTTL: 5_000 });
  const watch = await bucket.watch();
  await bucket.create("lease", "mine", "1s");
  const found = [];
  for await (const entry of watch) {
    found.push([entry.key, entry.operation]);
    if (found.length === 2) break;
  }
  equal(found, [["lease", "PUT"], ["lease", "PURGE"]], "changes");
});

onJetStream("objects", async ({ client, manager }) => {
  const store = await new Objm(client).create("objects");
  const content = Buffer.alloc(OBJECT_BYTES, randomBytes(1 << 20));
  const digest = createHash("sha256").update(content).digest("base64url");
  const info = await store.putBlob({ name: "large file.bin", description: "large" }, content);
  equal([info.size, info.chunks], [OBJECT_BYTES, OBJECT_BYTES / (128 * 1024)], "size and pieces");
  equal(info.digest.replace(/=+$/, ""), `SHA-256=${digest}`, "the digest that was stored");
  const back = await store.getBlob("large file.bin");
  equal(createHash("sha256").update(back).digest("base64url"), digest, "the digest");
  await store.putBlob({ name: "small" }, Buffer.from("hello"));
  await store.link("alias", await store.info("small"));
  equal(Buffer.from(await store.getBlob("alias")).toString(), "hello", "through a link");
  const names = async () => (await store.list()).filter((o) => !o.deleted).map((o) => o.name).sort();
  equal(await names(), ["alias", "large file.bin", "small"], "the list");
  await store.delete("large file.bin");
  equal(await names(), ["alias", "small"], "the list after a delete");
  equal((await manager.streams.info("OBJ_objects")).state.messages, 4, "records");
  check((await store.seal()).sealed, "not sealed");
  await rejects(store.putBlob({ name: "no" }, Buffer.from("more")), "an object into a sealed store");
});

onJetStream("manage streams", async ({ manager, streams }) => {
  await manager.streams.add({ name: "MANAGE", subjects: ["manage.*"] });
  for (const key of "abc") await publishMany(streams, `manage.${key}`, 10);
  await manager.streams.update("MANAGE", { subjects: ["manage.*", "more"], max_msgs: 100 });
  check(await manager.streams.deleteMessage("MANAGE", 2), "not deleted");
  const { state } = await manager.streams.info("MANAGE", { deleted_details: true });
  equal([state.messages, state.num_deleted, state.deleted], [29, 1, [2]], "after a delete");
  equal((await manager.streams.purge("MANAGE", { filter: "manage.b" })).purged, 10, "purged");
  equal((await manager.streams.purge("MANAGE", { seq: 25 })).purged, 13, "purged below");
  equal(await manager.streams.find("more"), "MANAGE", "found by subject");
  const names = [];
  for await (const stream of manager.streams.list()) names.push(stream.config.name);
  check(names.includes("MANAGE"), `not listed: ${names}`);
  const first = await rejects(manager.streams.add({ name: "OTHER", subjects: ["manage.a"] }), "an overlap");
  equal(first.code, 10065, "the error");
  check(await manager.streams.delete("MANAGE"), "not deleted");
  equal((await rejects(manager.streams.info("MANAGE"), "a stream that is gone")).code, 10059, "the error");
  const account = await manager.getAccountInfo();
  check(account.streams > 0 && account.api.total > 0, "an account without use");
});

/** Ordered consumers receive every record once and in order, although the server restarts and loses the consumer.
 *  A durable consumer continues at its position. */
test("ordered across a restart", async () => {
  const own = await Server.start(["-js", "-sd", path.join(folder, "lasting")]);
  try {
    const { client, manager, streams } = await connect(own, { reconnectTimeWait: 100, maxReconnectAttempts: -1 });
    await manager.streams.add({ name: "LASTS", subjects: ["lasts"] });
    await publishMany(streams, "lasts", 500);
    const consumer = await streams.consumers.get("LASTS");
    const messages = await consumer.consume({ idle_heartbeat: 1000 });
    const taking = take(messages, 1000);
    await manager.consumers.add("LASTS", { durable_name: "worker", ack_policy: AckPolicy.Explicit });
    const durable = await streams.consumers.get("LASTS", "worker");
    equal(await take(await durable.fetch({ max_messages: 200 }), 200), numbers(200), "before");
    await until("all acknowledged", async () => (await durable.info()).num_ack_pending === 0);

    own.signal("SIGTERM");
    await own.exited;
    await own.launch();
    await until("a connection", async () => !client.isClosed() && (await client.rtt().catch(() => null)) !== null);
    const { state } = await manager.streams.info("LASTS");
    equal([state.messages, state.last_seq], [500, 500], "the state after it");
    await publishMany(streams, "lasts", 500);
    equal(await within(taking, "the rest"), [...numbers(500), ...numbers(500)], "in order");
    const wanted = [...numbers(500).slice(200), ...numbers(500)];
    equal(await take(await durable.consume(), 800), wanted, "of the durable one, after");
    await client.close();
  } finally {
    await own.kill();
  }
});
