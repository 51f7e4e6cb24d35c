// Open and closed connections.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { ago, bytes, count, exact, moment, plural } from "./format.js";
import { Confirm, Empty, Facts, Filter, Loading, Panel, Problem, Table, passes, usePoll, useTyped } from "./parts.js";

const POLL_MILLISECONDS = 2000;
/** Most requested connections that match the filter. */
const LIMIT = 500;

/** Columns; their keys are the server's sort options. */
const COLUMNS = [
  { key: "cid", label: "Id", isNumber: true, value: (c) => c.cid },
  { key: "name", label: "Name", isFixed: true, cell: (c) => c.name || c.mqtt_client || html`<span class="quiet">–</span>` },
  { key: "address", label: "Address", isFixed: true, isWhole: true, cell: (c) => (c.ip ? `${c.ip}:${c.port}` : "in-process") },
  { key: "kind", label: "Kind", isFixed: true, cell: (c) => [c.type, c.lang].filter(Boolean).join(" · ") },
  { key: "user", label: "User", isFixed: true, cell: (c) => [c.authorized_user, c.account].filter(Boolean).join(" @ ") || "–" },
  { key: "subs", label: "Subscriptions", isNumber: true, cell: (c) => exact(c.subscriptions) },
  { key: "pending", label: "Pending", isNumber: true, cell: (c) => bytes(c.pending_bytes) },
  { key: "msgs_from", label: "Msgs in", isNumber: true, cell: (c) => count(c.in_msgs) },
  { key: "msgs_to", label: "Msgs out", isNumber: true, cell: (c) => count(c.out_msgs) },
  { key: "bytes_from", label: "Bytes in", isNumber: true, cell: (c) => bytes(c.in_bytes) },
  { key: "bytes_to", label: "Bytes out", isNumber: true, cell: (c) => bytes(c.out_bytes) },
  { key: "rtt", label: "Round trip", isNumber: true, cell: (c) => c.rtt?.replace(/(\.\d)\d+/, "$1") ?? "–" },
  { key: "uptime", label: "Uptime", isNumber: true, cell: (c) => c.uptime },
  { key: "idle", label: "Idle", isNumber: true, cell: (c) => c.idle },
];
const CLOSED = [
  { key: "stop", label: "Closed", isNumber: true, cell: (c) => ago(c.stop) },
  { key: "reason", label: "Reason", cell: (c) => c.reason },
];

export function Connections({ who }) {
  const [state, setState] = useState("open");
  const [sort, setSort] = useState("cid");
  const [filter, setFilter] = useState("");
  const [opened, setOpened] = useState(undefined);
  const [leaving, setLeaving] = useState(undefined);
  const [failed, setFailed] = useState(undefined);
  const find = useTyped(filter);
  const query = { state, sort, limit: LIMIT, auth: 1, find };
  const [told, error, again] = usePoll(`connections ${state} ${sort}`, POLL_MILLISECONDS, () => ask("connz", { query }));
  useEffect(again, [find]);
  const change = (next) => {
    setState(next);
    setSort(next === "closed" ? "stop" : "cid");
    setOpened(undefined);
  };
  const kick = async () => {
    setLeaving(undefined);
    setFailed(undefined);
    await ask("kick", { method: "POST", query: { cid: leaving.cid } }).catch(setFailed);
    again();
  };
  const rows = (told?.connections ?? []).filter((c) =>
    passes(filter, c.cid, c.name, c.mqtt_client, c.ip, c.type, c.lang, c.authorized_user, c.account, c.reason),
  );
  const columns = state === "closed" ? [...CLOSED, ...COLUMNS.slice(0, 10)] : [...COLUMNS];
  if (state === "open" && who.may_kick) {
    const cell = (c) => html`<button class="danger small" onClick=${() => setLeaving(c)} aria-label="Close connection ${c.cid}">Close</button>`;
    columns.push({ key: "kick", label: "Close", isFixed: true, isWhole: true, cell });
  }
  return html`
    <${Panel} title="Connections" id="connections-title" aside=${html`<span class="quiet">${shown(told, rows)}</span>`}>
      <div class="tools">
        <${Filter} label="Filter by name, address, user, account" value=${filter} onChange=${setFilter} />
        <label class="field"><span>State</span>
          <select value=${state} onChange=${(event) => change(event.target.value)}>
            <option value="open">open</option>
            <option value="closed">closed</option>
          </select>
        </label>
      </div>
      <${Problem} error=${failed ?? error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && rows.length === 0 && html`<${Empty}>No connection matches.<//>`}
      ${rows.length > 0 && html`
        <${Table} caption="Connections" columns=${columns} rows=${rows} rowKey=${(c) => c.cid}
          sort=${{ key: sort, isUp: ["cid", "uptime", "reason"].includes(sort) }} onSort=${setSort}
          opened=${opened} onOpen=${setOpened} detail=${(c) => html`<${Details} connection=${c} />`}
          rowClass=${(c) => (c.slow_consumer ? "slow" : undefined)} />`}
    <//>
    ${leaving && html`
      <${Confirm} title="Close connection ${leaving.cid}?" action="Close it" onYes=${kick} onNo=${() => setLeaving(undefined)}>
        <p>${leaving.name || "The client"} at ${leaving.ip}:${leaving.port} is disconnected. Most clients reconnect automatically.</p>
      <//>`}`;
}

function shown(told, rows) {
  if (!told) return "";
  return rows.length === told.total ? `${exact(told.total)}` : `${exact(rows.length)} of ${exact(told.total)}`;
}

function Details({ connection }) {
  const query = { cid: connection.cid, subs: "detail", auth: 1, state: connection.stop ? "closed" : "open" };
  const [told, error] = usePoll(`connection ${connection.cid}`, POLL_MILLISECONDS, () => ask("connz", { query }));
  const one = told?.connections[0];
  const subscriptions = one?.subscriptions_list_detail ?? [];
  const slow = connection.slow_consumer;
  return html`
    <${Problem} error=${error} />
    <${Facts} facts=${[
      ["Opened", moment(connection.start)],
      connection.stop && ["Closed", moment(connection.stop)],
      ["Last activity", moment(connection.last_activity)],
      connection.version && ["Client", `${connection.lang} ${connection.version}`],
      connection.tls_version && ["TLS", `${connection.tls_version} ${connection.tls_cipher_suite}`],
      connection.stalls && ["Held back", plural(connection.stalls, "time")],
      slow && ["Slow", `${bytes(slow.pending_bytes)} pending${slow.waited ? ` for ${slow.waited}` : ""}${slow.subject ? `, mostly on ${slow.subject}` : ""}`],
    ]} />
    ${subscriptions.length > 0 && html`
      <${Table} caption="Subscriptions of connection ${connection.cid}" rows=${subscriptions} rowKey=${(s) => s.sid} columns=${[
        { key: "subject", label: "Subject", value: (s) => s.subject, cell: (s) => html`<code>${s.subject}</code>` },
        { key: "queue", label: "Queue", value: (s) => s.qgroup ?? "" },
        { key: "msgs", label: "Messages", isNumber: true, value: (s) => s.msgs, cell: (s) => exact(s.msgs) },
      ]} />`}
    ${one && subscriptions.length === 0 && html`<${Empty}>No subscriptions.<//>`}`;
}
