// Starts, restarts, and stops one server process on the loopback interface.

import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";

const binary = process.env.SERVER;
if (!binary) throw new Error("SERVER must name the server to test");

// Below the range that the kernel uses for outgoing connections. When a server is killed and restarted on its
// port, no client can have taken this port.
const PORT_MIN = 12_000;
const PORT_MAX = 31_000;
const START_TRIES_MAX = 500;

export async function portFree() {
  for (let tries = 0; tries < 200; tries += 1) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN));
    const probe = net.createServer();
    try {
      probe.listen(port, "127.0.0.1");
      await once(probe, "listening");
      return port;
    } catch {
      // In use: try another one.
    } finally {
      probe.close();
    }
  }
  throw new Error("no free port");
}

export class Server {
  static async start(flags) {
    const server = new Server();
    server.flags = flags;
    server.port = await portFree();
    await server.launch();
    return server;
  }

  async launch() {
    const command = ["-a", "127.0.0.1", "-p", `${this.port}`, ...this.flags];
    this.process = spawn(binary, command, { stdio: "ignore" });
    this.exited = once(this.process, "exit");
    for (let tries = 0; tries < START_TRIES_MAX; tries += 1) {
      if (this.process.exitCode !== null) throw new Error(`server ended with ${this.process.exitCode}`);
      const socket = net.connect(this.port, "127.0.0.1");
      try {
        await once(socket, "connect");
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      } finally {
        socket.destroy();
      }
    }
    throw new Error(`server does not listen on ${this.port}`);
  }

  signal(name) {
    this.process.kill(name);
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.exited;
  }
}
