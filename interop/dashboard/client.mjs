// A minimal NATS client: enough to make load, streams, and consumers.

import { once } from "node:events";
import net from "node:net";

export class Client {
  static async connect(port, options = {}) {
    const client = new Client();
    client.socket = net.connect(port, "127.0.0.1");
    client.heard = "";
    client.waiting = [];
    client.socket.on("data", (data) => client.hear(data.toString("latin1")));
    client.socket.on("error", () => {});
    client.closed = once(client.socket, "close");
    await once(client.socket, "connect");
    const connect = { verbose: false, headers: true, no_responders: true, ...options };
    client.say(`CONNECT ${JSON.stringify(connect)}\r\n`);
    await client.flush();
    return client;
  }

  say(text) {
    this.socket.write(text);
  }

  hear(text) {
    this.heard += text;
    this.waiting = this.waiting.filter((look) => !look());
  }

  /** Waits for text that matches, and removes everything up to its end. */
  until(pattern) {
    return new Promise((resolve) => {
      const look = () => {
        const found = pattern.exec(this.heard);
        if (found) {
          this.heard = this.heard.slice(found.index + found[0].length);
          resolve(found);
        }
        return found !== null;
      };
      if (!look()) this.waiting.push(look);
    });
  }

  publish(subject, payload, headers) {
    if (!headers) {
      this.say(`PUB ${subject} ${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
      return;
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `NATS/1.0\r\n${lines.join("")}\r\n`;
    this.say(`HPUB ${subject} ${head.length} ${head.length + Buffer.byteLength(payload)}\r\n${head}${payload}\r\n`);
  }

  async flush() {
    this.say("PING\r\n");
    await this.until(/PONG\r\n/);
  }

  /** Sends a JetStream request, and fails if the response is an error. */
  async api(name, body) {
    const inbox = `answers.${Math.random().toString(36).slice(2)}`;
    const text = body ? JSON.stringify(body) : "";
    this.say(`SUB ${inbox} 99\r\nUNSUB 99 1\r\nPUB $JS.API.${name} ${inbox} ${Buffer.byteLength(text)}\r\n${text}\r\n`);
    const [, answer] = await this.until(new RegExp(`MSG ${inbox} 99 \\d+\\r\\n(.*)\\r\\n`));
    const parsed = JSON.parse(answer);
    if (parsed.error) throw new Error(`${name}: ${parsed.error.description}`);
    return parsed;
  }

  async close() {
    this.socket.destroy();
    await this.closed;
  }
}
