// MQTT clients, as far as the server has some.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { bytes, count, exact } from "./format.js";
import { Empty, Filter, Loading, Panel, Problem, Table, passes, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 3000;
const LIMIT = 1000;

const COLUMNS = [
  { key: "client", label: "Client id", value: (c) => c.mqtt_client ?? "", cell: (c) => html`<code>${c.mqtt_client ?? "–"}</code>` },
  { key: "cid", label: "Connection", isNumber: true, value: (c) => c.cid },
  { key: "address", label: "Address", value: (c) => `${c.ip}:${c.port}` },
  { key: "user", label: "User", value: (c) => c.authorized_user ?? "" },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (c) => c.subscriptions, cell: (c) => exact(c.subscriptions) },
  { key: "pending", label: "Waiting", isNumber: true, value: (c) => c.pending_bytes, cell: (c) => bytes(c.pending_bytes) },
  { key: "in", label: "Msgs in", isNumber: true, value: (c) => c.in_msgs, cell: (c) => count(c.in_msgs) },
  { key: "out", label: "Msgs out", isNumber: true, value: (c) => c.out_msgs, cell: (c) => count(c.out_msgs) },
  { key: "uptime", label: "Up for", value: (c) => c.uptime },
];

const isMqtt = (connection) => connection.mqtt_client !== undefined || connection.type?.startsWith("mqtt");

export function Mqtt() {
  const [filter, setFilter] = useState("");
  const query = { limit: LIMIT, auth: 1 };
  const [told, error] = usePoll("mqtt", POLL_MILLISECONDS, () => ask("connz", { query }));
  const all = (told?.connections ?? []).filter(isMqtt);
  const rows = all.filter((c) => passes(filter, c.mqtt_client, c.ip, c.authorized_user));
  return html`
    <${Panel} title="MQTT sessions" id="mqtt-title" aside=${html`<span class="quiet">${told ? exact(all.length) : ""}</span>`}>
      <${Problem} error=${error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && all.length === 0 && html`
        <${Empty}>Nobody is connected over MQTT. Sessions appear here by their client id when the server has an
        MQTT listener and somebody uses it.<//>`}
      ${all.length > 0 && html`
        <div class="tools"><${Filter} label="Filter by client id, address, user" value=${filter} onChange=${setFilter} /></div>
        <${Table} caption="MQTT sessions" columns=${COLUMNS} rows=${rows} rowKey=${(c) => c.cid} />`}
    <//>`;
}
