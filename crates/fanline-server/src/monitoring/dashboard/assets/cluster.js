// The other servers of the cluster, the routes to them, and the gateways to other clusters.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { ago, bytes, count, exact, plural } from "./format.js";
import { Gateways } from "./gateways.js";
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

/** Subscriptions that this server has announced to others, and what those have counted. */
const INTEREST = [
  { key: "name", label: "Server", value: (i) => i.remote_name },
  { key: "announced", label: "Announced to it", isNumber: true, value: (i) => i.announced ?? -1, cell: (i) => exact(i.announced) },
  { key: "counted", label: "Counted by it", isNumber: true, value: (i) => i.counted ?? -1, cell: (i) => exact(i.counted) },
  { key: "difference", label: "Difference", isNumber: true, value: (i) => i.difference ?? 0, cell: (i) => exact(i.difference) },
  { key: "state", label: "State", value: state },
  { key: "compared", label: "Compared", value: (i) => i.compared, cell: (i) => ago(i.compared) },
];

function state({ problem, drift, difference }) {
  if (problem === "permissions") return "not compared: the server has permissions";
  if (problem) return problem;
  if (drift) return "differs for long";
  return difference ? "in flight" : "equal";
}

function Warning({ server }) {
  const { remote_name: name, drift } = server;
  const what = drift > 0
    ? `has not counted ${plural(drift, "subscription")} that this server has announced to it, so it may not send the messages`
    : `counts ${plural(-drift, "subscription")} more than this server has announced to it, so it may send messages for nothing`;
  return html`<p class="problem" role="alert" data-drift=${name}>${name} ${what}. This lasts for several comparisons.</p>`;
}

function Interest({ servers }) {
  return html`
    <${Panel} title="Interest" id="interest-title">
      ${servers.filter(({ drift }) => drift).map((server) => html`<${Warning} key=${server.remote_id} server=${server} />`)}
      <${Table} caption="Interest" columns=${INTEREST} rows=${servers} rowKey=${(i) => i.remote_id}
        rowClass=${(i) => (i.drift ? "slow" : undefined)} />
    <//>`;
}

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
    ${found?.interest && html`<${Interest} servers=${found.interest} />`}
    ${who.sees_server && html`<${Gateways} />`}`;
}
