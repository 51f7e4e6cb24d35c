// The dashboard in a headless Chromium, with the server under test.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { check, equal } from "../javascript/checks.mjs";
import { portFree, Server } from "../javascript/server.mjs";
import { accessible, figure, launch, quiet, until, visit } from "./browser.mjs";
import { Client } from "./client.mjs";
import { userKey } from "./keys.mjs";
import { keepSession } from "./mqtt.mjs";

const VIEWS = ["overview", "connections", "subscriptions", "streams", "streams/$G/ORDERS", "live", "accounts", "mqtt", "cluster"];
const BYTES_MAX = 300 * 1024;
/** A minute: servers compare their interest every five seconds, and warn after three comparisons. */
const LASTING_TRIES_MAX = 600;

const KEY = userKey();

const folder = await mkdtemp(path.join(tmpdir(), "interop-dashboard-"));

async function start(name, text) {
  const port = await portFree();
  const file = path.join(folder, `${name}.conf`);
  await writeFile(file, `http: "127.0.0.1:${port}"\n${text}\n`);
  const server = await Server.start(["-c", file]);
  return Object.assign(server, { address: `http://127.0.0.1:${port}/` });
}

const mqttPort = await portFree();
const store = `jetstream { store_dir: "${folder}/store" }`;
const mqtt = `mqtt { host: "127.0.0.1", port: ${mqttPort} }`;
const open = await start("open", `dashboard: write\n${store}\n${mqtt}`);
const shown = await start("shown", "dashboard: read");
const guarded = await start(
  "guarded",
  `accounts { A: { users: [{ user: ada, password: s3cret }, { user: bob, password: s3cret, permissions: { subscribe: ["news.>", "_INBOX.>"] } }] }, $SYS: { users: [{ user: root, password: r00t }] } }`,
);
const routePort = await portFree();
const gatewayPort = await portFree();
const first = await start(
  "first",
  `server_name: first\ncluster { name: c, listen: "127.0.0.1:${routePort}" }\ngateway { name: c, listen: "127.0.0.1:${gatewayPort}" }`,
);
const second = await start("second", `server_name: second\ncluster { name: c, listen: "127.0.0.1:-1", routes: ["nats://127.0.0.1:${routePort}"] }`);
const west = await start(
  "west",
  `server_name: west\ngateway { name: west, listen: "127.0.0.1:-1", gateways: [{ name: c, url: "nats://127.0.0.1:${gatewayPort}" }] }`,
);
const lackingPort = await portFree();
const system = `$SYS: { users: [{ user: root, password: r00t }] }`;
const announcing = await start(
  "announcing",
  `server_name: announcing\ncluster { name: d, listen: "127.0.0.1:${lackingPort}" }\naccounts { MORE: { users: [{ user: m, password: m }] }, ${system} }`,
);
const lacking = await start(
  "lacking",
  `server_name: lacking\ncluster { name: d, listen: "127.0.0.1:-1", routes: ["nats://127.0.0.1:${lackingPort}"] }\naccounts { ${system} }`,
);
const keyed = await start("keyed", `accounts { A: { users: [{ nkey: "${KEY.nkey}" }] } }`);
const browser = await launch();

/** Creates a stream of orders, with a consumer that has not read them. */
async function fill() {
  const client = await Client.connect(open.port, { name: "filler" });
  await client.api("STREAM.CREATE.ORDERS", { name: "ORDERS", subjects: ["orders.>"], storage: "file" });
  const config = { durable_name: "billing", ack_policy: "explicit", filter_subject: "orders.new" };
  await client.api("CONSUMER.CREATE.ORDERS.billing.orders.new", { stream_name: "ORDERS", config });
  for (let n = 1; n <= 60; n += 1) {
    client.publish(n % 3 === 0 ? "orders.done" : "orders.new", JSON.stringify({ number: n, item: "coffee" }), { Who: `guest ${n}` });
  }
  await client.flush();
  await until(async () => (await client.api("STREAM.INFO.ORDERS")).state.messages === 60, "all orders are kept");
  return client;
}

/** Publishes to a subscriber until the returned function is called. */
async function load() {
  const [sender, receiver] = [
    await Client.connect(open.port, { name: "sender" }),
    await Client.connect(open.port, { name: "receiver" }),
  ];
  receiver.say("SUB load.> 1\r\n");
  await receiver.flush();
  receiver.socket.removeAllListeners("data");
  receiver.socket.resume();
  const timer = setInterval(() => sender.say("PUB load.a 4\r\nload\r\n".repeat(100)), 10);
  return async () => {
    clearInterval(timer);
    await sender.close();
    await receiver.close();
  };
}

async function at(view, server = open, options = {}) {
  const page = await visit(browser, server.address, options);
  await show(page, view);
  return page;
}

/** Opens a view and waits until it is loaded. */
async function show(page, view) {
  await page.evaluate((view) => (location.hash = `#/${view}`), view);
  await page.locator(`nav a[href="#/${view.split("/")[0]}"][aria-current]`).waitFor();
  await page.locator("main .panel h3").first().waitFor();
  await until(async () => !(await page.getByText("Loading…").first().isVisible().catch(() => false)), `${view} is loaded`);
}

const end = (page) => page.context().close();

const CASES = {
  async "loads, small and from here alone"() {
    const page = await visit(browser, open.address);
    await page.getByRole("heading", { name: "Traffic" }).waitFor();
    check(page.notes.bytes > 20_000 && page.notes.bytes < BYTES_MAX, `${page.notes.bytes} bytes`);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`note  dashboard: first paint after ${Math.round(paint)} ms, ${page.notes.bytes} bytes`);
    quiet(page);
    await end(page);
  },
  async "live numbers move under load"() {
    const page = await at("overview");
    const stop = await load();
    await until(async () => (await figure(page, "messages-in")) > 1000, "messages arrive");
    await until(async () => (await figure(page, "messages-out")) > 1000, "messages leave");
    await until(async () => (await figure(page, "bytes-in")) > 0, "bytes arrive");
    await until(async () => (await figure(page, "connections")) >= 2, "connections are counted");
    check((await figure(page, "memory")) > 1, "memory");
    await stop();
    await until(async () => (await figure(page, "messages-in")) === 0, "it is quiet again");
    check(Number.isFinite(await figure(page, "sync")), "how long syncs take");
    quiet(page);
    await end(page);
  },
  async "a page that nobody looks at asks for nothing"() {
    const page = await at("overview");
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForTimeout(1500);
    const before = page.notes.requests;
    await page.waitForTimeout(2500);
    equal(page.notes.requests, before, "requests of a hidden page");
    await page.evaluate(() => {
      delete document.hidden;
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await until(() => page.notes.requests > before, "it goes on");
    await end(page);
  },
  async "connections: sort, filter, details, close"() {
    const many = await Client.connect(open.port, { name: "many" });
    for (let n = 1; n <= 5; n += 1) many.say(`SUB many.${n} ${n}\r\n`);
    await many.flush();
    const page = await at("connections");
    await page.getByRole("button", { name: "Subscriptions" }).click();
    await until(async () => (await page.locator("tbody tr").first().innerText()).includes("many"), "the most first");
    await page.locator("[data-filter]").fill("many");
    equal(await page.locator("tbody tr").count(), 1, "rows that fit");
    await page.getByRole("button", { name: /Details of/ }).click();
    await page.getByText("many.3").waitFor();
    await page.getByRole("button", { name: /Close connection/ }).click();
    await page.getByRole("button", { name: "Close it" }).click();
    await many.closed;
    await page.getByText("No connection matches.").waitFor();
    await page.getByLabel("State").selectOption("closed");
    await page.getByText("Kicked").waitFor();
    quiet(page);
    await end(page);
  },
  async "filters look through all, not through what is shown"() {
    const many = [];
    for (let n = 0; n < 1010; n += 1) many.push(net.connect(open.port, "127.0.0.1").on("error", () => {}).resume());
    many.forEach((socket, n) => socket.write(`CONNECT {"name":"crowd ${n}"}\r\nSUB crowd.${n} 1\r\n`));
    const last = await Client.connect(open.port, { name: "needle" });
    last.say("SUB needle.here 1\r\n");
    await last.flush();
    const page = await at("connections");
    for (const view of ["connections", "subscriptions"]) {
      await show(page, view);
      await page.locator("tbody tr").first().waitFor();
      await page.locator("[data-filter]").fill("needle");
      await until(async () => (await page.locator("tbody tr").count()) === 1, `one of the ${view} fits`);
      check((await page.locator("tbody").innerText()).includes("needle"), "it is the one");
    }
    quiet(page);
    await end(page);
    await last.close();
    many.forEach((socket) => socket.destroy());
  },
  async "subscriptions: by subject, and who gets a message"() {
    const client = await Client.connect(open.port, { name: "subscriber" });
    client.say("SUB shop.* 1\r\nSUB shop.> 2\r\nSUB jobs workers 3\r\n");
    await client.flush();
    const page = await at("subscriptions");
    await page.getByText("workers (1)").waitFor();
    await page.getByLabel("Receivers of a message on").fill("shop.a.b");
    await page.keyboard.press("Enter");
    await until(async () => (await page.locator("tbody tr").count()) === 1, "one subject fits");
    equal(await page.locator("tbody code").innerText(), "shop.>", "what fits");
    quiet(page);
    await end(page);
    await client.close();
  },
  async "streams: lag of consumers"() {
    const page = await at("streams");
    await page.getByRole("link", { name: "ORDERS" }).click();
    await page.getByText("billing").waitFor();
    equal(await figure(page, "lag"), 40, "what billing has not read");
    await page.getByRole("button", { name: "Details of billing" }).click();
    await page.getByText("Ack wait").waitFor();
    quiet(page);
    await end(page);
  },
  async "message browser: pages, filter, headers, JSON"() {
    const page = await at("streams/$G/ORDERS");
    const table = page.getByRole("region", { name: "Messages of ORDERS" });
    await table.waitFor();
    check((await table.innerText()).includes('"number":60'), "the latest is shown");
    await page.getByRole("button", { name: "First" }).click();
    await until(async () => (await table.innerText()).includes('"number":1,'), "the first is shown");
    await page.getByRole("button", { name: "Newer" }).click();
    await until(async () => (await table.innerText()).includes('"number":26,'), "the next page");
    await page.getByLabel("Subject (wildcards allowed)").fill("orders.done");
    await page.keyboard.press("Enter");
    await until(async () => !(await table.innerText()).includes("orders.new"), "one subject alone");
    await page.getByRole("button", { name: "First" }).click();
    await page.getByRole("button", { name: "Details of 3", exact: true }).click();
    const message = page.getByRole("article");
    equal(await message.locator("pre").innerText(), '{\n  "number": 3,\n  "item": "coffee"\n}', "JSON");
    check((await message.innerText()).includes("guest 3"), "headers");
    await page.getByRole("button", { name: "Count messages by subject" }).click();
    await page.getByRole("region", { name: "Subjects of ORDERS" }).getByText("20").waitFor();
    quiet(page);
    await end(page);
  },
  async "message browser: few among many, and numbers of many digits"() {
    const client = await Client.connect(open.port);
    await client.api("STREAM.CREATE.SPARSE", { name: "SPARSE", subjects: ["sparse.>"], storage: "memory" });
    for (let n = 1; n <= 900; n += 1) client.publish(n % 30 === 1 ? "sparse.rare" : "sparse.often", `{"id":12345678901234567890,"price":1.50,"n":${n}}`);
    await client.flush();
    await until(async () => (await client.api("STREAM.INFO.SPARSE")).state.messages === 900, "all are kept");
    const page = await at("streams/$G/SPARSE");
    const table = page.getByRole("region", { name: "Messages of SPARSE" });
    await page.getByLabel("Subject (wildcards allowed)").fill("sparse.rare");
    await page.keyboard.press("Enter");
    // Of 900 messages 30 match: the last 25 are shown first, then the 5 before them.
    await until(async () => (await table.innerText()).includes('"n":871') && (await table.innerText()).includes('"n":151'), "the latest of them");
    equal(await table.locator("tbody tr").count(), 25, "a whole page");
    await page.getByRole("button", { name: "Older" }).click();
    await until(async () => (await table.innerText()).includes('"n":1}'), "those before");
    equal(await table.locator("tbody tr").count(), 5, "what there is before");
    check(await page.getByRole("button", { name: "Older" }).isDisabled(), "nothing is older");
    await page.getByRole("button", { name: "Details of 31", exact: true }).click();
    equal(await page.getByRole("article").locator("pre").innerText(), '{\n  "id": 12345678901234567890,\n  "price": 1.50,\n  "n": 31\n}', "numbers as written");
    quiet(page);
    await end(page);
    await client.api("STREAM.DELETE.SPARSE");
    await client.close();
  },
  async "an address that is none shows something all the same"() {
    const page = await at("overview");
    for (const address of ["#/streams/%", "#/%E0%A4%A", "#/nowhere/at/all"]) {
      await page.goto(`${open.address}${address}`);
      await page.reload();
      await page.locator("nav a[aria-current]").waitFor();
    }
    quiet(page);
    await end(page);
  },
  async "MQTT: sessions of clients that are there, and of those that are not"() {
    const leave = await keepSession(mqttPort, "thermometer", "rooms/+/target");
    const page = await at("mqtt");
    const [here, away] = ["MQTT sessions", "Sessions of disconnected clients"].map((name) => page.getByRole("region", { name: `${name}, table` }));
    await until(async () => (await here.innerText().catch(() => "")).includes("thermometer"), "who is connected is shown");
    check((await here.innerText()).includes("3.1.1"), "its version");
    equal(await away.count(), 0, "sessions that wait");
    await leave();
    await until(async () => (await away.innerText().catch(() => "")).includes("rooms/+/target (QoS 1)"), "the session waits");
    quiet(page);
    await end(page);
  },
  async "cluster: the routes to the other servers"() {
    const page = await at("cluster", first);
    const table = page.getByRole("region", { name: "Routes, table" });
    await until(async () => (await table.innerText().catch(() => "")).includes("second"), "the other server is shown");
    equal(await page.locator('[data-figure="servers"]').innerText(), "2", "the number of servers");
    const interest = page.getByRole("region", { name: "Interest, table" });
    await until(async () => (await interest.innerText().catch(() => "")).includes("equal"), "the interest is compared");
    equal(await page.locator("[data-drift]").count(), 0, "warnings");
    await page.getByLabel("Filter by server").fill("nobody");
    await page.getByText("No route matches.").waitFor();
    quiet(page);
    await end(page);
  },
  async "cluster: the gateways to other clusters"() {
    const page = await at("cluster", first);
    const table = page.getByRole("region", { name: "Gateways, table" });
    const directions = async () => {
      const text = await table.innerText().catch(() => "");
      return ["outbound", "inbound"].every((direction) => text.includes(direction)) && text.includes("west");
    };
    await until(directions, "both connections are shown");
    equal(await page.locator('[data-figure="clusters"]').innerText(), "2", "the number of clusters");
    await table.getByRole("button", { name: /Details of/ }).first().click();
    const accounts = page.getByRole("region", { name: "Accounts of the gateway to west, table" });
    await until(async () => (await accounts.innerText().catch(() => "")).includes("Interest-Only"), "the accounts are shown");
    const interest = page.getByRole("region", { name: "Interest of other clusters, table" });
    await until(async () => /west \(west\)[^]*equal/.test(await interest.innerText().catch(() => "")), "the interest is compared");
    await accessible(page, "the gateways");
    quiet(page);
    await end(page);
  },
  async "cluster: a server that lacks interest"() {
    const client = await Client.connect(announcing.port, { user: "m", pass: "m" });
    client.say("SUB one 1\r\nSUB two 2\r\n");
    await client.flush();
    const page = await visit(browser, announcing.address);
    await page.getByLabel("User").fill("root");
    await page.getByLabel("Password").fill("r00t");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Process", exact: true }).waitFor();
    await show(page, "cluster");
    const warning = page.locator('[data-drift="lacking"]');
    await until(async () => (await warning.count()) === 1, "the warning", LASTING_TRIES_MAX);
    check((await warning.innerText()).includes("2 subscriptions"), await warning.innerText());
    await accessible(page, "the warning");
    await client.close();
    await until(async () => (await warning.count()) === 0, "the end of the warning", LASTING_TRIES_MAX);
    quiet(page);
    await end(page);
  },
  async "publish, and be acknowledged"() {
    const client = await Client.connect(open.port);
    client.say("SUB said.* 1\r\n");
    await client.flush();
    const page = await at("live");
    const form = page.getByRole("form", { name: "Publish" });
    await form.getByLabel("Subject").fill("said.here");
    await form.getByLabel("Headers, one per line").fill("From: the page");
    await form.getByLabel("Content").fill("grüße");
    await form.getByRole("button", { name: "Publish" }).click();
    await page.getByText("Published to said.here.").waitFor();
    await client.until(/HMSG said\.here 1 \d+ \d+\r\nNATS\/1\.0\r\nFrom: the page\r\n\r\n/);
    await form.getByLabel("Subject").fill("orders.new");
    await form.getByLabel(/Wait for a response/).check();
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByText('"stream": "ORDERS"').waitFor();
    await form.getByLabel("Subject").fill("nobody.there");
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByText("No responders on nobody.there.").waitFor();
    quiet(page);
    await end(page);
    await client.close();
  },
  async "live: what is published appears, and a flood does not drown the page"() {
    const client = await Client.connect(open.port);
    const page = await at("live");
    const tools = page.locator("form.tools");
    await tools.getByLabel("Subject (wildcards allowed)").fill("news.>");
    await tools.getByRole("button", { name: "Subscribe" }).click();
    await page.getByText("Subscribed to news.>.").waitFor();
    client.publish("news.today", '{"headline":"rain"}', { Source: "window" });
    client.publish("other.today", "not this");
    await page.getByRole("button", { name: "Details of 1" }).click();
    await page.getByText('"headline": "rain"').waitFor();
    await page.getByText("window").waitFor();
    check(!(await page.innerText("main")).includes("not this"), "what is not listened to");
    await tools.getByRole("button", { name: "Stop" }).click();
    await tools.getByLabel("Subject (wildcards allowed)").fill("load.>");
    await tools.getByRole("button", { name: "Subscribe" }).click();
    const stop = await load();
    await page.getByText("not all are shown").waitFor();
    await until(async () => (await figure(page, "heard")) > 600, "more comes each second");
    const details = page.getByRole("button", { name: /^Details of/ }).first();
    await details.click();
    await page.getByText("Paused while a message is open.").waitFor();
    await page.waitForTimeout(1200);
    await page.locator("article.message").waitFor();
    const heard = await figure(page, "heard");
    await page.locator('button[aria-expanded="true"]').click();
    await until(async () => (await figure(page, "heard")) > heard, "it goes on when the message is closed");
    await stop();
    quiet(page);
    await end(page);
    await client.close();
  },
  async "nothing is shown before one has signed in"() {
    const page = await visit(browser, guarded.address);
    const bodies = [];
    // Scripts of the page contain names of figures, but no data.
    page.on("response", async (response) => {
      if (!response.url().endsWith(".js")) bodies.push(await response.text().catch(() => ""));
    });
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    equal(await page.locator("nav, .figure, table").count(), 0, "parts of the dashboard");
    await until(() => page.evaluate(() => document.activeElement.name === "user"), "one types there");
    await page.getByLabel("User").fill("ada");
    await page.getByLabel("Password").fill("wrong");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText("these credentials are not known").waitFor();
    check(!bodies.join("").includes("uptime"), "figures were sent");
    await page.getByLabel("Password").fill("s3cret");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Traffic" }).waitFor();
    await page.getByText("You see the account A.").waitFor();
    equal(await page.getByRole("heading", { name: "Process", exact: true }).count(), 0, "what is not Ada's");
    await page.reload();
    await page.getByRole("heading", { name: "Traffic" }).waitFor();
    await page.getByRole("button", { name: /Sign out/ }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    // The browser logs the response 401 to a wrong password.
    quiet(page, ["401"]);
    await end(page);
  },
  async "who may not listen is told so"() {
    const page = await visit(browser, guarded.address);
    await page.getByLabel("User").fill("bob");
    await page.getByLabel("Password").fill("s3cret");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Traffic" }).waitFor();
    await show(page, "live");
    const tools = page.locator("form.tools");
    const listen = async (subject) => {
      await tools.getByLabel("Subject (wildcards allowed)").fill(subject);
      await tools.getByRole("button", { name: "Subscribe" }).click();
    };
    await listen("secret.>");
    await page.getByRole("alert").getByText('Permissions Violation for Subscription to "secret.>"').waitFor();
    await page.waitForTimeout(300);
    check(!(await page.innerText("main")).includes("Subscribed to"), "it does not listen");
    await tools.getByRole("button", { name: "Stop" }).click();
    await listen("news.*");
    await page.getByText("Subscribed to news.*.").waitFor();
    equal(await page.getByRole("alert").count(), 0, "what is wrong");
    quiet(page);
    await end(page);
  },
  async "a key signs in, and stays in the page"() {
    const page = await visit(browser, keyed.address);
    const sent = [];
    page.on("request", (request) => sent.push(request.postData() ?? ""));
    await page.getByRole("button", { name: "Use a key" }).click();
    const seed = page.getByLabel("Seed, or content of a .creds file");
    // Two bits of the last letter are unused. E and A differ in a bit that is used.
    await seed.fill(KEY.seed.replace(/.$/, KEY.seed.endsWith("A") ? "E" : "A"));
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText("This is neither the seed of a user").waitFor();
    await seed.fill(KEY.seed);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Traffic" }).waitFor();
    check(sent.some((body) => body.includes(KEY.nkey)), "it is shown who signs");
    check(!sent.some((body) => body.includes(KEY.seed.slice(2, -4))), "the seed was sent");
    quiet(page);
    await end(page);
  },
  async "the system account sees the whole server"() {
    const page = await visit(browser, guarded.address);
    await page.getByLabel("User").fill("root");
    await page.getByLabel("Password").fill("r00t");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Process", exact: true }).waitFor();
    await show(page, "accounts");
    await page.getByRole("button", { name: "Details of A", exact: true }).waitFor();
    quiet(page);
    await end(page);
  },
  async "what only shows has nothing to write with"() {
    const page = await at("live", shown);
    await page.getByText("This dashboard is read-only.").first().waitFor();
    equal(await page.getByRole("form", { name: "Publish" }).count(), 0, "forms to publish");
    await show(page, "connections");
    equal(await page.getByRole("button", { name: /Close connection/ }).count(), 0, "buttons to close");
    quiet(page);
    await end(page);
  },
  async "keys, theme and help"() {
    const page = await at("overview");
    await page.keyboard.press("2");
    await page.getByRole("heading", { name: "Connections", level: 3 }).waitFor();
    await page.keyboard.press("/");
    equal(await page.evaluate(() => document.activeElement.type), "search", "where one types");
    await page.keyboard.type("3");
    await page.getByRole("heading", { name: "Connections", level: 3 }).waitFor();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("t");
    // The theme is switched at the next frame.
    await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
    await page.keyboard.press("t");
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    await page.reload();
    await page.locator("main .panel").first().waitFor();
    equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark", "the theme that was chosen");
    await page.keyboard.press("Tab");
    equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content", "where Tab goes first");
    quiet(page);
    await end(page);
  },
};

for (const colorScheme of ["light", "dark"]) {
  for (const view of VIEWS) {
    CASES[`accessible: ${view}, ${colorScheme}`] = async () => {
      const page = await at(view, open, { colorScheme });
      if (view === "live") {
        await page.getByRole("button", { name: "Subscribe" }).click();
        await page.getByText("Subscribed to").waitFor();
      }
      await page.getByRole("button", { name: /Details of/ }).first().click({ timeout: 1000 }).catch(() => {});
      await accessible(page, view);
      await end(page);
    };
  }
  CASES[`accessible: sign-in and help, ${colorScheme}`] = async () => {
    const wall = await visit(browser, guarded.address, { colorScheme });
    await wall.getByRole("heading", { name: "Sign in" }).waitFor();
    await accessible(wall, "the sign-in");
    await end(wall);
    const page = await at("overview", open, { colorScheme });
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await accessible(page, "the help");
    await end(page);
  };
}

CASES["readable on a phone"] = async () => {
  const page = await at("overview", open, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  for (const view of VIEWS) {
    await show(page, view);
    const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(width <= room && room <= 360, `${view} is ${width} wide where there are ${room}`);
    await accessible(page, `${view} on a phone`);
  }
  await end(page);
};

const filler = await fill();
for (const [name, body] of Object.entries(CASES)) test(name, body);
after(async () => {
  await browser.close();
  await filler.close();
  for (const server of [open, shown, guarded, first, second, west, announcing, lacking, keyed]) await server.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});
