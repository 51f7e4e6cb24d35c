// The official JavaScript client in a headless Chromium, over WebSocket, with the server under test. This program
// serves a page, which runs the cases and sends back their results.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { check, within } from "./checks.mjs";
import { portFree, Server } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const chromium = process.env.CHROMIUM ?? "chromium";
const folder = await mkdtemp(path.join(tmpdir(), "interop-browser-"));
const require = createRequire(import.meta.url);

/** Returns the file of a module as Node resolves it, below node_modules. */
function resolve(name, from) {
  const file = require.resolve(name, { paths: [from ? path.dirname(path.join(here, from)) : here] });
  return path.relative(here, file);
}

/** Serves the page and its modules, and waits for the page's results. */
async function serve(websocketPort) {
  let tell;
  const told = new Promise((resolve) => (tell = resolve));
  const pages = http.createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    try {
      if (request.method === "POST") {
        let body = "";
        for await (const piece of request) body += piece;
        tell(JSON.parse(body));
        response.end();
      } else if (url.pathname === "/module") {
        const file = resolve(url.searchParams.get("name"), url.searchParams.get("from"));
        const source = await readFile(path.join(here, file), "utf8");
        response.end(JSON.stringify({ file, source }));
      } else {
        const page = await readFile(path.join(here, "browser.html"), "utf8");
        response.setHeader("content-type", "text/html");
        response.end(page.replace("WEBSOCKET_PORT", `${websocketPort}`));
      }
    } catch (error) {
      response.statusCode = 404;
      response.end(`${error}`);
    }
  });
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  return { told, pages, address: `http://127.0.0.1:${pages.address().port}/` };
}

const port = await portFree();
const config = path.join(folder, "server.conf");
await writeFile(config, `websocket { listen: "127.0.0.1:${port}", no_tls: true, compression: true }\n`);
const server = await Server.start(["-c", config]);
const { told, pages, address } = await serve(port);
const browser = spawn(
  chromium,
  ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${folder}/profile`, address],
  { stdio: "ignore" },
);
const ended = once(browser, "exit");
const outcomes = await within(told, "word from the page").catch((error) => ({ page: `${error.message}` }));

check(Object.keys(outcomes).length > 0, "the page has no case");
for (const [name, wrong] of Object.entries(outcomes)) {
  test(name, () => check(!wrong, wrong));
}
after(async () => {
  browser.kill("SIGKILL");
  await ended;
  pages.close();
  await server.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});
