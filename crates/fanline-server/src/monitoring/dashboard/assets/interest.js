// Whether other servers have counted the interest that this server has announced to them.

import { html } from "./vendor/preact-htm.js";
import { ago, exact, plural } from "./format.js";
import { Panel, Table } from "./parts.js";

/** Subscriptions that this server has announced to others, and what those have counted. */
const INTEREST = [
  { key: "name", label: "Server", value: name },
  { key: "announced", label: "Announced to it", isNumber: true, value: (i) => i.announced ?? -1, cell: (i) => exact(i.announced) },
  { key: "counted", label: "Counted by it", isNumber: true, value: (i) => i.counted ?? -1, cell: (i) => exact(i.counted) },
  { key: "difference", label: "Difference", isNumber: true, value: (i) => i.difference ?? 0, cell: (i) => exact(i.difference) },
  { key: "state", label: "State", value: state },
  { key: "compared", label: "Compared", value: (i) => i.compared, cell: (i) => ago(i.compared) },
];

function name({ remote_name: server, gateway }) {
  return gateway ? `${server} (${gateway})` : server;
}

function state({ problem, drift, difference }) {
  if (problem === "permissions") return "not compared: the server has permissions";
  if (problem) return problem;
  if (drift) return "differs for long";
  return difference ? "in flight" : "equal";
}

function Warning({ server }) {
  const { remote_name, drift } = server;
  const what = drift > 0
    ? `has not counted ${plural(drift, "subscription")} that this server has announced to it, so it may not send the messages`
    : `counts ${plural(-drift, "subscription")} more than this server has announced to it, so it may send messages for nothing`;
  return html`<p class="problem" role="alert" data-drift=${remote_name}>${name(server)} ${what}. This lasts for several comparisons.</p>`;
}

export function Interest({ title, servers }) {
  return html`
    <${Panel} title=${title} id="${title.toLowerCase().replaceAll(" ", "-")}-title">
      ${servers.filter(({ drift }) => drift).map((server) => html`<${Warning} key=${server.remote_id} server=${server} />`)}
      <${Table} caption=${title} columns=${INTEREST} rows=${servers} rowKey=${(i) => i.remote_id}
        rowClass=${(i) => (i.drift ? "slow" : undefined)} />
    <//>`;
}
