// JetStream requests of the dashboard, over its WebSocket.

import { connected, parseHeaders } from "./nats.js";

/** Most streams whose consumers are requested. */
const STREAMS_WITH_CONSUMERS_MAX = 100;

export class JetStreamError extends Error {
  constructor({ code, err_code: number, description }) {
    super(description);
    this.code = code;
    this.number = number;
  }
}

async function ask(name, body) {
  const connection = await connected();
  const message = await connection.request(`$JS.API.${name}`, body ? JSON.stringify(body) : "");
  const answer = JSON.parse(new TextDecoder().decode(message.data));
  if (answer.error) throw new JetStreamError(answer.error);
  return answer;
}

/** All pages of a list. */
async function all(name, key) {
  const found = [];
  for (;;) {
    const page = await ask(name, { offset: found.length });
    const items = page[key] ?? [];
    found.push(...items);
    if (items.length === 0 || found.length >= page.total) return found;
  }
}

/** The streams of this account, each with its consumers. */
export async function streams() {
  const found = await all("STREAM.LIST", "streams");
  const withConsumers = found.slice(0, STREAMS_WITH_CONSUMERS_MAX).map(async (stream) => {
    const name = stream.config.name;
    const has = stream.state.consumer_count > 0;
    return { ...stream, consumers: has ? await all(`CONSUMER.LIST.${name}`, "consumers") : [] };
  });
  return [...(await Promise.all(withConsumers)), ...found.slice(STREAMS_WITH_CONSUMERS_MAX)];
}

/** The number of messages per subject. */
export async function subjects(stream, filter) {
  const info = await ask(`STREAM.INFO.${stream}`, { subjects_filter: filter });
  return Object.entries(info.state.subjects ?? {});
}

/** One message: `{ seq }`, `{ seq, next_by_subj }`, or `{ last_by_subj }`. `null` if there is none. */
export async function record(stream, wanted) {
  try {
    const { message } = await ask(`STREAM.MSG.GET.${stream}`, wanted);
    const headers = message.hdrs ? parseHeaders(new TextDecoder().decode(unpack(message.hdrs))).headers : [];
    const { subject, seq, time } = message;
    return { subject, seq, time, headers, data: message.data ? unpack(message.data) : new Uint8Array(0) };
  } catch (error) {
    if (error.code === 404) return null;
    throw error;
  }
}

/** Up to `most` messages that match a filter, from one sequence up to another one. */
export async function records(stream, from, filter, most, end = Infinity) {
  const found = [];
  let seq = from;
  while (found.length < most) {
    const next = await record(stream, { seq, next_by_subj: filter });
    if (!next || next.seq >= end) break;
    found.push(next);
    seq = next.seq + 1;
  }
  return found;
}

/**
 * Up to `most` messages that match a filter, the last ones before a sequence. The API only searches forwards, so
 * this reads parts of the stream backwards: larger parts while they have few matches, and half of one with too many.
 */
export async function recordsBefore(stream, end, first, filter, most) {
  let [found, reach] = [[], most];
  while (found.length < most && end > first) {
    const start = Math.max(first, end - reach);
    const part = await records(stream, start, filter, most + 1, end);
    if (part.length > most) {
      reach = Math.ceil((end - start) / 2);
      continue;
    }
    found = [...part, ...found];
    end = start;
    reach *= 2;
  }
  return found.slice(-most);
}

function unpack(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
