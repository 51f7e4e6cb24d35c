// A headless Chromium, and pages that record errors in them.

import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { check, equal } from "../javascript/checks.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Opens a page in a new browser context. `notes.wrong` collects errors of the console. */
export async function visit(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const notes = { wrong: [], foreign: [], bytes: 0, requests: 0 };
  page.on("console", (message) => {
    if (message.type() === "error") notes.wrong.push(message.text());
  });
  page.on("pageerror", (error) => notes.wrong.push(`${error}`));
  page.on("request", (request) => {
    notes.requests += 1;
    if (!request.url().startsWith(address)) notes.foreign.push(request.url());
  });
  page.on("response", async (response) => {
    const body = await response.body().catch(() => Buffer.alloc(0));
    if (!response.url().includes("/api/")) notes.bytes += body.length;
  });
  await page.goto(address);
  return Object.assign(page, { notes });
}

/** Checks at the end of a case that the page had no errors except `expected` ones, and no foreign requests. */
export function quiet(page, expected = []) {
  const wrong = page.notes.wrong.filter((text) => !expected.some((part) => text.includes(part)));
  equal(wrong, [], "complaints in the console");
  equal(page.notes.foreign, [], "requests to other hosts");
}

/** Fails if axe finds accessibility problems. */
export async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate((values) => window.axe.run(document, { runOnly: { type: "tag", values } }), RULES);
  const problems = found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 120)).join(" | ")}`);
  equal(problems, [], `accessibility of ${what}`);
  check(found.passes.length > 5, "axe looked at nothing");
}

/** Returns a displayed number without separators and unit. */
export async function figure(page, name) {
  const text = await page.locator(`[data-figure="${name}"]`).first().innerText();
  const [, digits, unit = ""] = /([\d.,]+)\s*([KMB]?)/.exec(text) ?? [];
  return Number(digits?.replaceAll(",", "")) * { "": 1, K: 1e3, M: 1e6, B: 1 }[unit];
}

/** Waits until a condition is true. */
export async function until(holds, what, triesMax = 150) {
  for (let tries = 0; tries < triesMax; tries += 1) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`never: ${what}`);
}
