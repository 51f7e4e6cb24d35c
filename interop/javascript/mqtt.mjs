// MQTT.js in both versions, over TCP and WebSocket, with a broker that the caller has started.

import mqtt from "mqtt";
import { once } from "node:events";
import { test } from "node:test";
import { check, equal, numbers, within } from "./checks.mjs";

const TCP = process.env.MQTT_URL ?? `mqtt://127.0.0.1:${process.env.MQTT_PORT}`;
const WEBSOCKET = process.env.MQTT_WEBSOCKET;

let names = 0;
const fresh = (prefix) => `${prefix}-${process.pid}-${(names += 1)}`;

/** A connected client that stores received messages. */
class Client {
  static async open({ url, version }, options = {}) {
    const client = new Client();
    client.messages = [];
    client.waiting = null;
    client.mqtt = mqtt.connect(url, {
      protocolVersion: version,
      clientId: fresh("js"),
      reconnectPeriod: 0,
      connectTimeout: 10_000,
      ...options,
    });
    client.mqtt.on("message", (topic, payload, packet) => {
      client.messages.push({ topic, payload, packet });
      client.waiting?.();
    });
    const [connack] = await within(once(client.mqtt, "connect"), "CONNACK");
    client.sessionPresent = connack.sessionPresent;
    return client;
  }

  subscribe(topic, options) {
    return within(this.mqtt.subscribeAsync(topic, options), "SUBACK");
  }

  publish(topic, payload, options) {
    return within(this.mqtt.publishAsync(topic, payload, options), "acknowledgement");
  }

  async take(count) {
    while (this.messages.length < count) {
      await within(new Promise((resolve) => (this.waiting = resolve)), `${count} messages`);
    }
    return this.messages.splice(0, count);
  }

  async texts(count) {
    return (await this.take(count)).map(({ payload }) => payload.toString());
  }

  end() {
    return within(this.mqtt.endAsync(), "end");
  }
}

const kept = (version, clientId) =>
  version === 5
    ? { clientId, clean: false, properties: { sessionExpiryInterval: 3600 } }
    : { clientId, clean: false };

async function publishAndSubscribe(way) {
  const [sender, receiver] = [await Client.open(way), await Client.open(way)];
  for (const qos of [0, 1, 2]) {
    const topic = fresh("t");
    const [granted] = await receiver.subscribe(topic, { qos });
    equal(granted.qos, qos, "granted");
    await Promise.all(numbers(500).map((n) => sender.publish(topic, `${n}`, { qos })));
    equal(await receiver.texts(500), numbers(500).map(String), `payloads with QoS ${qos}`);
  }
  await sender.end();
  await receiver.end();
}

async function sizes(way) {
  const client = await Client.open(way);
  const topic = fresh("t");
  await client.subscribe(topic, { qos: 1 });
  for (const size of [0, 1, 125, 126, 127, 128, 16_383, 16_384, 65_536, 700_000]) {
    const sent = Buffer.from(Uint8Array.from({ length: size }, (_, n) => (n * 31 + (n >> 8)) & 255));
    await client.publish(topic, sent, { qos: size % 2 });
    const [{ payload }] = await client.take(1);
    check(Buffer.compare(payload, sent) === 0, `${size} bytes came back otherwise`);
  }
  await client.end();
}

async function wildcards(way) {
  const client = await Client.open(way);
  const own = fresh("t");
  await client.subscribe([`${own}/+/c`, `${own}/x/#`]);
  const topics = [`${own}/b/c`, `${own}/b/d`, `${own}/x`, `${own}/x/y/z`, `${own}/b/c`];
  for (const topic of topics) await client.publish(topic, topic, { qos: 1 });
  equal(await client.texts(4), [topics[0], topics[2], topics[3], topics[4]], "topics");
  await client.end();
}

async function retainedAndWill(way) {
  const topic = fresh("t");
  const watcher = await Client.open(way);
  await watcher.subscribe(topic, { qos: 1 });
  const gone = await Client.open(way, { will: { topic, payload: Buffer.from("gone"), qos: 1, retain: true } });
  gone.mqtt.stream.destroy();
  equal(await watcher.texts(1), ["gone"], "the will");
  const later = await Client.open(way);
  await later.subscribe(topic, { qos: 1 });
  const [{ payload, packet }] = await later.take(1);
  equal([payload.toString(), packet.retain], ["gone", true], "retained");
  await later.publish(topic, "", { qos: 1, retain: true });
  for (const client of [watcher, later]) await client.end();
}

async function aSessionGoesOn(way) {
  const [clientId, topic] = [fresh("js"), fresh("t")];
  const first = await Client.open(way, kept(way.version, clientId));
  equal(first.sessionPresent, false, "session present");
  await first.subscribe(topic, { qos: 2 });
  await first.end();
  const sender = await Client.open(way);
  for (const n of numbers(50)) await sender.publish(topic, `${n}`, { qos: 1 + (n % 2) });
  const second = await Client.open(way, kept(way.version, clientId));
  equal(second.sessionPresent, true, "session present");
  // The order of QoS 1 and QoS 2 messages relative to each other is not defined.
  const texts = (await second.texts(50)).map(Number);
  const all = numbers(50);
  for (const odd of [0, 1]) {
    const of = (some) => some.filter((n) => n % 2 === odd);
    equal(of(texts), of(all), `messages of QoS ${1 + odd}`);
  }
  await second.end();
  await sender.end();
}

async function propertiesOf5(way) {
  const client = await Client.open(way);
  const topic = fresh("t");
  await client.subscribe(topic, { qos: 1, properties: { subscriptionIdentifier: 7 } });
  const sent = {
    contentType: "text/plain",
    responseTopic: "a/b",
    correlationData: Buffer.from([0, 1, 2]),
    userProperties: { kind: "x", many: ["1", "2"] },
  };
  await client.publish(topic, "x", { qos: 1, properties: sent });
  const [{ packet }] = await client.take(1);
  const found = packet.properties;
  equal([found.contentType, found.responseTopic], [sent.contentType, sent.responseTopic], "properties");
  equal([...found.correlationData], [0, 1, 2], "correlation data");
  equal({ ...found.userProperties }, sent.userProperties, "user properties");
  equal(found.subscriptionIdentifier, 7, "identifier");
  await client.end();
}

const ways = process.env.MQTT_VERSIONS.split(" ").flatMap((version) =>
  [TCP, WEBSOCKET].map((url) => ({ url, version: Number(version) })),
);
for (const way of ways) {
  const title = `${way.version === 5 ? "5.0" : "3.1.1"}, ${way.url === TCP ? "TCP" : "WebSocket"}`;
  const all = { publishAndSubscribe, sizes, wildcards, retainedAndWill, aSessionGoesOn };
  if (way.version === 5) all.propertiesOf5 = propertiesOf5;
  for (const [name, body] of Object.entries(all)) test(`${name} (${title})`, () => body(way));
}
