// The other servers of the cluster, the routes to them, and the gateways to other clusters.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { bytes, count, exact } from "./format.js";
import { Gateways } from "./gateways.js";
import { Interest } from "./interest.js";
import { Empty, Filter, Loading, Panel, Problem, Table, passes, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 2000;

const short = (duration) => duration?.replace(/(\.\d)\d+/, "$1") ?? "–";

const COLUMNS = [
  { key: "name", label: "Server", value: (r) => r.remote_name },
  { key: "address", label: "Address", isWhole: true, value: (r) => `${r.ip}:${r.port}` },
  { key: "known", label: "Known by", value: (r) => (r.is_configured ? "configuration" : "gossip") },
  { key: "dialed", label: "Dialed by", value: (r) => (r.did_solicit ? "this server" : "the other one") },
  { key: "rtt", label: "Round trip", isNumber: true, value: (r) => parseFloat(r.rtt ?? 0), cell: (r) => short(r.rtt) },
  { key: "pending", label: "Pending", isNumber: true, value: (r) => r.pending_size, cell: (r) => bytes(r.pending_size) },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (r) => r.subscriptions, cell: (r) => exact(r.subscriptions) },
  { key: "in", label: "Msgs in", isNumber: true, value: (r) => r.in_msgs, cell: (r) => count(r.in_msgs) },
  { key: "out", label: "Msgs out", isNumber: true, value: (r) => r.out_msgs, cell: (r) => count(r.out_msgs) },
  { key: "bytes_in", label: "Bytes in", isNumber: true, value: (r) => r.in_bytes, cell: (r) => bytes(r.in_bytes) },
  { key: "bytes_out", label: "Bytes out", isNumber: true, value: (r) => r.out_bytes, cell: (r) => bytes(r.out_bytes) },
  { key: "uptime", label: "Uptime", isNumber: true, value: (r) => -Date.parse(r.start), cell: (r) => r.uptime },
];

export function Cluster({ who }) {
  const [filter, setFilter] = useState("");
  const load = () => (who.sees_server ? ask("routez") : Promise.resolve({ routes: [] }));
  const [found, error] = usePoll("cluster", POLL_MILLISECONDS, load);
  const all = found?.routes ?? [];
  const rows = all.filter((route) => passes(filter, route.remote_name, route.remote_id, route.ip));
  const servers = new Set(all.map((route) => route.remote_id)).size;
  const none = who.sees_server
    ? "This server has no routes to others."
    : "Users of the system account see the cluster.";
  return html`
    <${Panel} title="Cluster" id="cluster-title"
      aside=${html`<span class="quiet" data-figure="servers">${found ? exact(servers + 1) : ""}</span>`}>
      <div class="tools"><${Filter} label="Filter by server" value=${filter} onChange=${setFilter} /></div>
      <${Problem} error=${error} />
      ${!found && !error && html`<${Loading} />`}
      ${found && rows.length === 0 && html`<${Empty}>${all.length ? "No route matches." : none}<//>`}
      ${rows.length > 0 && html`<${Table} caption="Routes" columns=${COLUMNS} rows=${rows} rowKey=${(r) => r.rid} />`}
    <//>
    ${found?.interest && html`<${Interest} title="Interest" servers=${found.interest} />`}
    ${who.sees_server && html`<${Gateways} />`}`;
}
