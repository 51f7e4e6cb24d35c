// First paint and cost of the dashboard, as figures: see `measure`.

import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { portFree, Server } from "../javascript/server.mjs";
import { launch } from "./browser.mjs";
import { Client } from "./client.mjs";

const PAINTS = 21;
const ROUNDS = 6;
const WINDOW_MILLISECONDS = 5_000;
// The load: a burst of messages at each interval, the same with and without a page.
const BURST = 4_000;
const BURST_MILLISECONDS = 20;
const PAINT_BAR_MILLISECONDS = 300;
const COST_BAR_PERCENT = 2;

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];
const spread = (numbers, digits) => `${median(numbers).toFixed(digits)} (${sorted(numbers)[0].toFixed(digits)} to ${sorted(numbers).at(-1).toFixed(digits)})`;

/** Returns the nanoseconds that the threads of a process have run, by thread name. */
async function busy(pid) {
  const threads = new Map();
  for (const id of await readdir(`/proc/${pid}/task`)) {
    const told = ["comm", "schedstat"].map((file) => readFile(`/proc/${pid}/task/${id}/${file}`, "utf8"));
    // Threads of the blocking pool may end between the two reads.
    const [name, stat] = await Promise.all(told).catch(() => []);
    if (name === undefined) continue;
    threads.set(name.trim(), (threads.get(name.trim()) ?? 0) + Number(stat.split(" ")[0]));
  }
  return threads;
}

/** Returns how busy all threads, and the control thread, are during a window, in percent of a core. */
async function shares(pid) {
  const [before, began] = [await busy(pid), performance.now()];
  await sleep(WINDOW_MILLISECONDS);
  const { exitCode, signalCode } = server.process;
  if ((exitCode ?? signalCode) !== null) throw new Error(`the server has ended with ${exitCode ?? signalCode}`);
  const [after, took] = [await busy(pid), performance.now() - began];
  const share = (name) => ((after.get(name) ?? 0) - (before.get(name) ?? 0)) / 1e6 / took * 100;
  return { all: [...after.keys()].reduce((sum, name) => sum + share(name), 0), control: share("control") };
}

async function load(port) {
  const [sender, receiver] = [await Client.connect(port), await Client.connect(port)];
  receiver.say("SUB load.> 1\r\n");
  await receiver.flush();
  receiver.socket.removeAllListeners("data");
  receiver.socket.resume();
  const burst = "PUB load.a 16\r\n0123456789abcdef\r\n".repeat(BURST);
  const timer = setInterval(() => sender.say(burst), BURST_MILLISECONDS);
  return async () => {
    clearInterval(timer);
    await sender.close();
    await receiver.close();
  };
}

async function open(browser, address) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const began = performance.now();
  await page.goto(address);
  await page.getByRole("heading", { name: "Traffic" }).waitFor();
  const figures = performance.now() - began;
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  return { context, paint, figures };
}

const folder = await mkdtemp(path.join(tmpdir(), "measure-dashboard-"));
const monitoring = await portFree();
const file = path.join(folder, "server.conf");
await writeFile(file, `http: "127.0.0.1:${monitoring}"\njetstream { store_dir: "${folder}/store" }\n`);
const server = await Server.start(["-c", file]);
const address = `http://127.0.0.1:${monitoring}/`;
const browser = await launch();
try {
  const opened = [];
  for (let n = 0; n < PAINTS; n += 1) {
    const { context, ...times } = await open(browser, address);
    opened.push(times);
    await context.close();
  }
  const paints = opened.map(({ paint }) => paint);
  const verdict = (isMet) => (isMet ? "met" : "MISSED");
  console.log(`first paint       ${spread(paints, 0)} ms, bar < ${PAINT_BAR_MILLISECONDS} ms: ${verdict(median(paints) < PAINT_BAR_MILLISECONDS)}`);
  console.log(`first figures     ${spread(opened.map(({ figures }) => figures), 0)} ms`);

  const stop = await load(server.port);
  const pid = server.process.pid;
  const [without, shown] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    without.push(await shares(pid));
    const { context } = await open(browser, address);
    await sleep(1_000);
    shown.push(await shares(pid));
    await context.close();
  }
  await stop();
  const of = (samples, what) => samples.map((sample) => sample[what]);
  console.log(`server, loaded    ${spread(of(without, "all"), 1)} % of a core without a page, ${spread(of(shown, "all"), 1)} % with one`);
  const cost = shown.map((sample, n) => sample.control - without[n].control);
  console.log(`cost of a page    ${spread(cost, 2)} % of a core on the control thread, bar < ${COST_BAR_PERCENT} %: ${verdict(median(cost) < COST_BAR_PERCENT)}`);
} finally {
  await browser.close();
  await server.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
