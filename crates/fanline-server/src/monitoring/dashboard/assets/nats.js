// A NATS client over WebSocket with the features that the dashboard needs.

import { ask } from "./api.js";

const REQUEST_MILLISECONDS_MAX = 5000;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

let current = null;

/** The connection of this page, opened on first use. */
export function connected() {
  if (!current) {
    const opening = open();
    current = opening;
    const forget = () => {
      if (current === opening) current = null;
    };
    opening.then((connection) => connection.closed.then(forget), forget);
  }
  return current;
}

export function disconnect() {
  current?.then((connection) => connection.socket.close(), () => {});
  current = null;
}

async function open() {
  const { ticket } = await ask("ticket", { method: "POST" });
  const address = new URL("dashboard/ws", document.baseURI);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("ticket", ticket);
  const connection = new Connection(new WebSocket(address));
  await connection.ready;
  return connection;
}

class Connection {
  constructor(socket) {
    this.socket = socket;
    this.inbox = `_INBOX.dashboard${crypto.getRandomValues(new Uint32Array(3)).join("")}`;
    this.subscriptions = new Map();
    this.requests = new Map();
    this.pongs = [];
    this.next = 1;
    this.rest = new Uint8Array(0);
    this.lastError = "";
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => this.receive(new Uint8Array(event.data));
    this.ready = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.closed = new Promise((resolve) => {
      socket.onclose = () => {
        const error = new Error(this.lastError || "The connection to the server was closed.");
        this.reject(error);
        for (const { reject } of this.requests.values()) reject(error);
        for (const { reject } of this.pongs) reject(error);
        for (const { onError } of this.subscriptions.values()) onError?.(error);
        resolve(error);
      };
    });
  }

  send(...parts) {
    const all = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
    this.socket.send(new Blob(all));
  }

  /**
   * Calls back for each message, at most `max` of them. One that takes the place of another (`after`)
   * begins where that one ends.
   */
  subscribe(subject, onMessage, { onError, max, after } = {}) {
    const sid = this.next++;
    this.subscriptions.set(sid, { subject, onMessage, onError });
    const end = after ? `UNSUB ${after}\r\n` : "";
    this.send(`${end}SUB ${subject} ${sid}\r\n`, max ? `UNSUB ${sid} ${max}\r\n` : "");
    return sid;
  }

  unsubscribe(sid) {
    if (this.subscriptions.delete(sid) && this.socket.readyState === WebSocket.OPEN) this.send(`UNSUB ${sid}\r\n`);
  }

  publish(subject, payload = "", { reply = "", headers = [] } = {}) {
    const body = typeof payload === "string" ? encoder.encode(payload) : payload;
    const to = reply ? `${subject} ${reply}` : subject;
    if (headers.length === 0) {
      this.send(`PUB ${to} ${body.length}\r\n`, body, "\r\n");
      return;
    }
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const head = encoder.encode(`NATS/1.0\r\n${lines}\r\n`);
    this.send(`HPUB ${to} ${head.length} ${head.length + body.length}\r\n`, head, body, "\r\n");
  }

  /** Publishes a request and waits for its response. */
  async request(subject, payload = "", { headers, timeout = REQUEST_MILLISECONDS_MAX } = {}) {
    if (!this.answers) this.answers = this.subscribe(`${this.inbox}.*`, (message) => this.answered(message));
    const reply = `${this.inbox}.${this.next++}`;
    let timer;
    const answer = new Promise((resolve, reject) => {
      this.requests.set(reply, { subject, resolve, reject });
      timer = setTimeout(() => reject(new Error(`Nobody has answered a request to ${subject}.`)), timeout);
    });
    this.publish(subject, payload, { reply, headers });
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      this.requests.delete(reply);
    }
  }

  answered(message) {
    const request = this.requests.get(message.subject);
    if (message.status === 503) request?.reject(new Error(`No responders on ${request.subject}.`));
    else request?.resolve(message);
  }

  /** Returns once the server has received everything sent so far. */
  flush() {
    return new Promise((resolve, reject) => {
      this.pongs.push({ resolve, reject });
      this.send("PING\r\n");
    });
  }

  receive(bytes) {
    const all = new Uint8Array(this.rest.length + bytes.length);
    all.set(this.rest);
    all.set(bytes, this.rest.length);
    let from = 0;
    for (;;) {
      const end = all.indexOf(10, from);
      if (end < 0) break;
      const line = decoder.decode(all.subarray(from, end - 1));
      const taken = this.line(line, all, end + 1);
      if (taken < 0) break;
      from = taken;
    }
    this.rest = all.slice(from);
  }

  /** Parses a line with its payload. Returns the offset of the next one, or -1 if it is incomplete. */
  line(line, all, from) {
    const [verb, ...words] = line.split(" ");
    switch (verb) {
      case "INFO":
        this.info = JSON.parse(line.slice(5));
        if (!this.greeted) this.greet();
        return from;
      case "PING":
        this.send("PONG\r\n");
        return from;
      case "PONG":
        this.resolve(this);
        this.pongs.shift()?.resolve();
        return from;
      case "-ERR":
        this.failed(line.slice(6, -1));
        return from;
      case "MSG":
      case "HMSG":
        return this.message(verb, words, all, from);
      default:
        return from;
    }
  }

  greet() {
    this.greeted = true;
    const options = {
      verbose: false,
      pedantic: false,
      protocol: 1,
      headers: true,
      no_responders: true,
      name: "Fanline dashboard",
      lang: "dashboard",
      version: this.info.fanline ?? this.info.version,
    };
    this.send(`CONNECT ${JSON.stringify(options)}\r\nPING\r\n`);
  }

  failed(text) {
    this.lastError = text;
    const about = /"([^" ]*)"/.exec(text)?.[1];
    for (const request of this.requests.values()) {
      if (request.subject === about) request.reject(new Error(text));
    }
    for (const [sid, { subject, onError }] of this.subscriptions) {
      if (subject === about && text.includes("Subscription")) {
        this.subscriptions.delete(sid);
        onError?.(new Error(text));
      }
    }
    for (const listener of errorListeners) listener(text);
  }

  message(verb, words, all, from) {
    const sizes = verb === "HMSG" ? 2 : 1;
    const [headBytes, total] = sizes === 2 ? words.slice(-2).map(Number) : [0, Number(words.at(-1))];
    if (all.length < from + total + 2) return -1;
    const [subject, sid, reply] = [words[0], Number(words[1]), words.length === 3 + sizes ? words[2] : ""];
    const { headers, status, description } = parseHeaders(decoder.decode(all.subarray(from, from + headBytes)));
    const data = all.slice(from + headBytes, from + total);
    this.subscriptions.get(sid)?.onMessage({ subject, reply, headers, status, description, data });
    return from + total + 2;
  }
}

const errorListeners = new Set();

/** Calls back for each error from the server. Returns a function that stops that. */
export function onError(listener) {
  errorListeners.add(listener);
  return () => errorListeners.delete(listener);
}

/** Parses a header block: names and values, and the status of the first line. */
export function parseHeaders(text) {
  const [first, ...lines] = text.split("\r\n");
  const [, status, description = ""] = /^NATS\/1\.0 (\d{3}) ?(.*)$/.exec(first) ?? [];
  const headers = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.push([line.slice(0, colon), line.slice(colon + 1).trim()]);
  }
  return { headers, status: status && Number(status), description };
}
