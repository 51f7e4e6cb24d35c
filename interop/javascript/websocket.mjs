// The official JavaScript client over WebSocket, as in web pages, with the server under test.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { headers, wsconnect } from "@nats-io/nats-core";
import { check, equal, numbers, rejects, within } from "./checks.mjs";
import { portFree, Server } from "./server.mjs";

const folder = await mkdtemp(path.join(tmpdir(), "interop-websocket-"));
const port = await portFree();
const config = path.join(folder, "server.conf");
await writeFile(
  config,
  `websocket {
  listen: "127.0.0.1:${port}"
  no_tls: true
  compression: true
  user_cookie: "who"
}
`,
);

const connect = (options = {}) => wsconnect({ servers: `ws://127.0.0.1:${port}`, timeout: 10_000, ...options });
const text = (message) => message.string();

const server = await Server.start(["-c", config]);
after(async () => {
  await server.kill();
  await rm(folder, { recursive: true, force: true });
});

async function take(subscription, count) {
  const taken = [];
  const reading = (async () => {
    for await (const message of subscription) {
      taken.push(message);
      if (taken.length === count) break;
    }
  })();
  await within(reading, `${count} messages, only ${taken.length}`);
  return taken;
}

test("publish subscribe", async () => {
  const [sender, receiver] = [await connect(), await connect()];
  const plain = receiver.subscribe("ws.plain");
  await receiver.flush();
  for (const n of numbers(2000)) sender.publish("ws.plain", `${n}`);
  equal((await take(plain, 2000)).map(text), numbers(2000).map(String), "payloads in order");
  await sender.close();
  await receiver.close();
});

test("sizes", async () => {
  const client = await connect();
  for (const size of [0, 1, 63, 64, 125, 126, 4096, 65_535, 65_536, 1_000_000]) {
    const heard = client.subscribe("ws.size");
    const payload = Uint8Array.from({ length: size }, (_, n) => (n * 31 + (n >> 8)) & 255);
    client.publish("ws.size", payload);
    const [message] = await take(heard, 1);
    check(Buffer.compare(message.data, payload) === 0, `${size} bytes came back otherwise`);
  }
  await client.close();
});

test("requests and headers", async () => {
  const [service, client] = [await connect(), await connect()];
  service.subscribe("ws.echo", {
    callback: (_, message) => message.respond(message.data, { headers: message.headers }),
  });
  await service.flush();
  const sent = headers();
  sent.set("who", "me");
  const answer = await client.request("ws.echo", "hello", { headers: sent, timeout: 10_000 });
  equal([text(answer), answer.headers.get("who")], ["hello", "me"], "the answer");
  await rejects(client.request("ws.nobody", "", { timeout: 10_000 }), "a request that nobody answers");
  await service.close();
  await client.close();
});

test("beside TCP", async () => {
  const { connect: dial } = await import("@nats-io/transport-node");
  const tcp = await dial({ servers: `127.0.0.1:${server.port}`, timeout: 10_000 });
  const page = await connect();
  const heard = page.subscribe("ws.from.tcp");
  const back = tcp.subscribe("ws.from.page");
  await page.flush();
  await tcp.flush();
  tcp.publish("ws.from.tcp", "a");
  page.publish("ws.from.page", "b");
  equal([text((await take(heard, 1))[0]), text((await take(back, 1))[0])], ["a", "b"], "both ways");
  await tcp.close();
  await page.close();
});

test("what is told of the listener", async () => {
  const client = await connect();
  equal(client.info.port, port, "the port in INFO");
  check((await client.rtt()) >= 0, "no round trip");
  await client.close();
});

test("drain", async () => {
  const [sender, receiver] = [await connect(), await connect()];
  let heard = 0;
  receiver.subscribe("ws.drain", { callback: () => (heard += 1) });
  await receiver.flush();
  for (const _ of numbers(500)) sender.publish("ws.drain", "x");
  await sender.drain();
  await receiver.drain();
  equal(heard, 500, "messages before the end");
});

test("many pages", async () => {
  const pages = await Promise.all(numbers(50).map(() => connect()));
  const all = pages.map((page) => page.subscribe("ws.all"));
  await Promise.all(pages.map((page) => page.flush()));
  for (const [n, page] of pages.entries()) page.publish("ws.all", `${n}`);
  for (const one of all) {
    const found = (await take(one, 50)).map((message) => Number(text(message)));
    equal(found.sort((a, b) => a - b), numbers(50), "heard by one of them");
  }
  await Promise.all(pages.map((page) => page.close()));
});
