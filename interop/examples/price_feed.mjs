// Tests the price feed example as its README describes it: the program, its page in a headless Chromium, and its
// Python client. EXAMPLE is the program, PYTHON a Python with nats-py.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { check, equal } from "../javascript/checks.mjs";
import { launch, quiet, until, visit } from "../dashboard/browser.mjs";
import { Client } from "../dashboard/client.mjs";

const SYMBOLS = ["CUP", "MUG", "POT"];
const folder = new URL("../../crates/fanline-server/examples/price_feed/", import.meta.url);
// A paused program sends nothing for this long. Otherwise it would send ten rounds of prices.
const SILENCE_MILLISECONDS = 1_000;

const program = spawn(process.env.EXAMPLE, ["0", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
const address = async (name) => {
  const { value = "" } = await lines.next();
  const found = new RegExp(`^${name} +(\\w+://\\S+)$`).exec(value);
  check(found, `${name} is not told: ${value}`);
  return found[1];
};
const nats = await address("NATS");
const websocket = await address("WebSocket");
const page = new URL(`page.html?server=${encodeURIComponent(websocket)}`, folder);
const browser = await launch();

/** Waits until each symbol has a price, and returns them. */
async function prices(view) {
  await until(async () => (await view.locator("#prices tr").count()) === SYMBOLS.length, "a price for each symbol");
  const rows = await view.locator("#prices tr").allInnerTexts();
  return rows.map((row) => row.trim().split(/\s+/)).sort();
}

/** Counts ticks that another client receives. */
async function listen() {
  const client = await Client.connect(new URL(nats).port);
  const heard = { ticks: 0 };
  client.say("SUB ticks.* 1\r\n");
  await client.flush();
  client.socket.on("data", (data) => (heard.ticks += data.toString("latin1").split("MSG ticks.").length - 1));
  return { heard, close: () => client.close() };
}

async function silent(heard) {
  await until(async () => {
    const before = heard.ticks;
    await new Promise((resolve) => setTimeout(resolve, SILENCE_MILLISECONDS));
    return heard.ticks === before;
  }, "the feed pauses");
}

const CASES = {
  async "the page shows prices that move, and orders"() {
    const view = await visit(browser, page.href);
    await view.getByText(`connected to ${websocket}`).waitFor();
    const first = await prices(view);
    equal(first.map(([symbol]) => symbol), SYMBOLS, "symbols");
    check(first.every(([, price]) => /^\d+\.\d\d$/.test(price)), `prices: ${first}`);
    await until(async () => `${await prices(view)}` !== `${first}`, "a price moves");
    await until(async () => (await view.locator("#orders li").count()) > 0, "the strategy orders");
    const order = await view.locator("#orders li").first().innerText();
    check(/^(buy|sell) (CUP|MUG|POT) at \d+\.\d\d$/.test(order), order);
    quiet(view);
    await view.context().close();
  },
  async "the page pauses the program, and who comes meanwhile gets the newest prices"() {
    const [view, { heard, close }] = [await visit(browser, page.href), await listen()];
    await prices(view);
    await view.getByRole("button", { name: "Pause" }).click();
    await silent(heard);
    const late = await visit(browser, page.href);
    equal(await prices(late), await prices(view), "prices from the program's memory");
    const before = heard.ticks;
    await view.getByRole("button", { name: "Go on" }).click();
    await until(() => heard.ticks > before, "the feed goes on");
    quiet(view);
    quiet(late);
    await late.context().close();
    await view.context().close();
    await close();
  },
  async "the Python client prints the last tick, ticks and orders"() {
    const client = fileURLToPath(new URL("client.py", folder));
    const python = spawn(process.env.PYTHON, [client, nats, "30"], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [python.stdout, python.stderr]) stream.on("data", (data) => (said += data));
    const [code] = await once(python, "close");
    equal(code, 0, `exit code; it said ${said}`);
    check(/^last: \{.*'symbol': '(CUP|MUG|POT)'.*\}$/m.test(said), `no last tick: ${said}`);
    equal(said.match(/^ticks\.(CUP|MUG|POT) {2}\d+\.\d\d$/gm)?.length, 30, "ticks");
  },
};

for (const [name, body] of Object.entries(CASES)) test(name, body);
after(async () => {
  await browser.close();
  program.kill("SIGKILL");
});
