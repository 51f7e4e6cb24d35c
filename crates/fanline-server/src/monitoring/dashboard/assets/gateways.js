// The connections to other clusters.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { bytes, count, exact } from "./format.js";
import { Interest } from "./interest.js";
import { Empty, Loading, Panel, Problem, Table, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 2000;

const short = (duration) => duration?.replace(/(\.\d)\d+/, "$1") ?? "–";

const COLUMNS = [
  { key: "cluster", label: "Cluster", value: (g) => g.cluster },
  { key: "direction", label: "Direction", value: (g) => g.direction },
  { key: "address", label: "Address", isWhole: true, value: (g) => `${g.ip}:${g.port}` },
  { key: "known", label: "Known by", value: (g) => (g.configured ? "configuration" : "discovery") },
  { key: "rtt", label: "Round trip", isNumber: true, value: (g) => parseFloat(g.rtt ?? 0), cell: (g) => short(g.rtt) },
  { key: "pending", label: "Pending", isNumber: true, value: (g) => g.pending_bytes, cell: (g) => bytes(g.pending_bytes) },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (g) => g.subscriptions, cell: (g) => exact(g.subscriptions) },
  { key: "in", label: "Msgs in", isNumber: true, value: (g) => g.in_msgs, cell: (g) => count(g.in_msgs) },
  { key: "out", label: "Msgs out", isNumber: true, value: (g) => g.out_msgs, cell: (g) => count(g.out_msgs) },
  { key: "bytes_in", label: "Bytes in", isNumber: true, value: (g) => g.in_bytes, cell: (g) => bytes(g.in_bytes) },
  { key: "bytes_out", label: "Bytes out", isNumber: true, value: (g) => g.out_bytes, cell: (g) => bytes(g.out_bytes) },
  { key: "uptime", label: "Uptime", isNumber: true, value: (g) => -Date.parse(g.start), cell: (g) => g.uptime },
];

const ACCOUNTS = [
  { key: "name", label: "Account", value: (a) => a.name },
  { key: "mode", label: "Mode", value: (a) => a.interest_mode },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (a) => a.num_subs ?? 0 },
  { key: "queues", label: "Queue subscriptions", isNumber: true, value: (a) => a.num_queue_subs ?? 0 },
  { key: "refused", label: "Subjects without interest", isNumber: true, value: (a) => a.no_interest_count ?? 0 },
];

/** The connections of a response: the dialed ones first. */
function connections({ outbound_gateways: outbound, inbound_gateways: inbound }) {
  const row = (direction, cluster, { configured, connection, accounts }) => ({ ...connection, accounts, cluster, direction, configured });
  return [
    ...Object.entries(outbound).map(([cluster, one]) => row("outbound", cluster, one)),
    ...Object.entries(inbound).flatMap(([cluster, all]) => all.map((one) => row("inbound", cluster, one))),
  ];
}

/** The accounts of one connection. Only they are requested, because there may be very many. */
function Accounts({ cid, cluster }) {
  const query = { accs: 1, gw_name: cluster };
  const [found, error] = usePoll(`gateway ${cid}`, POLL_MILLISECONDS, () => ask("gatewayz", { query }));
  const accounts = found && connections(found).find((one) => one.cid === cid)?.accounts;
  return html`
    <${Problem} error=${error} />
    ${!found && !error && html`<${Loading} />`}
    ${found && !accounts && html`<${Empty}>No accounts.<//>`}
    ${accounts && html`<${Table} caption="Accounts of the gateway to ${cluster}" columns=${ACCOUNTS} rows=${accounts} rowKey=${(a) => a.name} />`}`;
}

/** A panel that is shown if the server has gateways. */
export function Gateways() {
  const [opened, setOpened] = useState(undefined);
  const [found, error] = usePoll("gateways", POLL_MILLISECONDS, () => ask("gatewayz"));
  const rows = found ? connections(found) : [];
  if (!error && !found?.name) return null;
  const clusters = new Set(rows.map(({ cluster }) => cluster)).size;
  return html`
    <${Panel} title="Gateways" id="gateways-title"
      aside=${html`<span class="quiet" data-figure="clusters">${exact(clusters + 1)}</span>`}>
      <${Problem} error=${error} />
      ${found && rows.length === 0 && html`<${Empty}>This server has no connections to other clusters.<//>`}
      ${rows.length > 0 && html`
        <${Table} caption="Gateways" columns=${COLUMNS} rows=${rows} rowKey=${(g) => g.cid} opened=${opened} onOpen=${setOpened}
          detail=${(g) => html`<${Accounts} cid=${g.cid} cluster=${g.cluster} />`} />`}
    <//>
    ${found?.interest && html`<${Interest} title="Interest of other clusters" servers=${found.interest} />`}`;
}
