// A minimal MQTT 3.1.1 client, whose session outlives its connection.

import { once } from "node:events";
import net from "node:net";

const CONNECT = 0x10;
const SUBSCRIBE = 0x82;
const DISCONNECT = 0xe0;
const KEEP_ALIVE_SECONDS = 60;

/** A text with its length before it. All texts are shorter than 256 bytes. */
const text = (value) => Buffer.from([0, value.length, ...Buffer.from(value)]);

function packet(kind, ...parts) {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([kind, body.length]), body]);
}

/** Connects with a client identifier and subscribes with QoS 1. Returns a function that closes the connection and
 *  leaves the session. */
export async function keepSession(port, id, filter) {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const answer = async (sent) => {
    socket.write(sent);
    await once(socket, "data");
  };
  await answer(packet(CONNECT, text("MQTT"), Buffer.from([4, 0, 0, KEEP_ALIVE_SECONDS]), text(id)));
  await answer(packet(SUBSCRIBE, Buffer.from([0, 1]), text(filter), Buffer.from([1])));
  return async () => {
    socket.end(packet(DISCONNECT));
    await once(socket, "close");
  };
}
