// MQTT sessions of connected and of disconnected clients.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { ago, bytes, count, exact, seconds } from "./format.js";
import { records } from "./jetstream.js";
import { text } from "./message.js";
import { Empty, Filter, Loading, Panel, Problem, Table, passes, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 3000;
const LIMIT = 1000;
/** Stream with the sessions that outlive their connections, one message each. */
const SESSIONS_STREAM = "$MQTT_sess";
const SESSIONS_POLL_MILLISECONDS = 10_000;
/** Most sessions to read. */
const SESSIONS_MAX = 200;
/** Error code of JetStream's API if JetStream is disabled. */
const UNAVAILABLE = 503;

/** How long a session outlives its connection: seconds, or unlimited. */
function outlives(expiry) {
  if (expiry === undefined) return "unlimited";
  return expiry === 0 ? "no" : seconds(expiry);
}

const upFor = (c) => Date.now() - Date.parse(c.start);

const COLUMNS = [
  { key: "client", label: "Client id", value: (c) => c.mqtt_client ?? "", cell: (c) => html`<code>${c.mqtt_client ?? "–"}</code>` },
  { key: "version", label: "MQTT", value: (c) => c.mqtt_session?.version ?? "–" },
  { key: "cid", label: "Connection", isNumber: true, value: (c) => c.cid },
  { key: "address", label: "Address", isWhole: true, value: (c) => `${c.ip}:${c.port}` },
  { key: "user", label: "User", value: (c) => c.authorized_user ?? "", cell: (c) => c.authorized_user ?? "–" },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (c) => c.subscriptions, cell: (c) => exact(c.subscriptions) },
  { key: "flight", label: "In flight", isNumber: true, value: (c) => c.mqtt_session?.in_flight ?? 0, cell: (c) => exact(c.mqtt_session?.in_flight) },
  { key: "queued", label: "Queued", isNumber: true, value: (c) => c.mqtt_session?.waiting ?? 0, cell: (c) => exact(c.mqtt_session?.waiting) },
  { key: "pending", label: "Pending", isNumber: true, value: (c) => c.pending_bytes, cell: (c) => bytes(c.pending_bytes) },
  { key: "in", label: "Msgs in", isNumber: true, value: (c) => c.in_msgs, cell: (c) => count(c.in_msgs) },
  { key: "out", label: "Msgs out", isNumber: true, value: (c) => c.out_msgs, cell: (c) => count(c.out_msgs) },
  { key: "kept", label: "Session expiry", value: (c) => outlives(c.mqtt_session?.expiry), cell: (c) => (c.mqtt_session ? outlives(c.mqtt_session.expiry) : "–") },
  { key: "uptime", label: "Uptime", isNumber: true, value: upFor, cell: (c) => c.uptime },
];

const subscriptions = ({ subs = {} }) => Object.entries(subs).map(([filter, qos]) => `${filter} (QoS ${qos})`).join(", ");
const since = ({ ended_at: end }) => (end === undefined ? "" : new Date(end * 1000).toISOString());

const ABSENT_COLUMNS = [
  { key: "client", label: "Client id", value: (s) => s.id, cell: (s) => html`<code>${s.id}</code>` },
  { key: "version", label: "MQTT", value: (s) => (s.version === 5 ? "5.0" : "3.1.1") },
  { key: "since", label: "Disconnected", value: since, cell: (s) => (s.ended_at === undefined ? "–" : ago(since(s))) },
  { key: "kept", label: "Session expiry", value: (s) => outlives(s.expiry) },
  { key: "subs", label: "Subscriptions", value: subscriptions, cell: (s) => html`<code>${subscriptions(s) || "none"}</code>` },
];

const isMqtt = (connection) => connection.mqtt_client !== undefined || connection.type?.startsWith("mqtt");

/** The session in a message; `undefined` if it is invalid. */
function session({ data }) {
  try {
    return JSON.parse(text(data));
  } catch {
    return undefined;
  }
}

async function kept() {
  const found = await records(SESSIONS_STREAM, 1, ">", SESSIONS_MAX).catch((error) => {
    // An account without JetStream has no sessions.
    if (error.code === UNAVAILABLE) return [];
    throw error;
  });
  return found.map(session).filter((one) => typeof one?.id === "string");
}

export function Mqtt({ who }) {
  const [filter, setFilter] = useState("");
  // Select MQTT connections, as there may be more others than the limit.
  const query = { limit: LIMIT, auth: 1, find: "mqtt" };
  const [told, error] = usePoll("mqtt", POLL_MILLISECONDS, () => ask("connz", { query }));
  const all = (told?.connections ?? []).filter(isMqtt);
  const rows = all.filter((c) => passes(filter, c.mqtt_client, c.ip, c.authorized_user));
  return html`
    <${Panel} title="MQTT sessions" id="mqtt-title" aside=${html`<span class="quiet">${told ? exact(all.length) : ""}</span>`}>
      <${Problem} error=${error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && all.length === 0 && html`
        <${Empty}>No MQTT client is connected. Sessions appear here by client id if the server has an MQTT
        listener.<//>`}
      ${all.length > 0 && html`
        <div class="tools"><${Filter} label="Filter by client id, address, user" value=${filter} onChange=${setFilter} /></div>
        <${Table} caption="MQTT sessions" columns=${COLUMNS} rows=${rows} rowKey=${(c) => c.cid} />`}
      ${told?.num_connections === LIMIT && html`<p class="quiet">The first ${exact(LIMIT)} were read.</p>`}
    <//>
    ${who.jetstream && html`<${Absent} present=${new Set(all.map((c) => c.mqtt_client))} />`}`;
}

/** Sessions of disconnected clients in this account. */
function Absent({ present }) {
  const [told, error] = usePoll("mqtt sessions", SESSIONS_POLL_MILLISECONDS, kept);
  const rows = (told ?? []).filter(({ id }) => !present.has(id));
  return html`
    <${Panel} title="Sessions of disconnected clients" id="absent-title" aside=${html`<span class="quiet">${told ? exact(rows.length) : ""}</span>`}>
      <${Problem} error=${error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && rows.length === 0 && html`<${Empty}>None: all clients with a stored session are connected.<//>`}
      ${rows.length > 0 && html`<${Table} caption="Sessions of disconnected clients" columns=${ABSENT_COLUMNS} rows=${rows} rowKey=${(s) => s.id} />`}
      ${told?.length === SESSIONS_MAX && html`<p class="quiet">The first ${exact(SESSIONS_MAX)} sessions were read.</p>`}
    <//>`;
}
