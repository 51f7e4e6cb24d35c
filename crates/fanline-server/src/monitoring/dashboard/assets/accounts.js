// Accounts, their exports, and their imports.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { bytes, count, exact } from "./format.js";
import { Empty, Facts, Filter, Loading, Panel, Problem, Table, passes, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 3000;

const COLUMNS = [
  { key: "name", label: "Account", value: (a) => a.name },
  { key: "conns", label: "Connections", isNumber: true, value: (a) => a.conns, cell: (a) => exact(a.conns) },
  { key: "subs", label: "Subscriptions", isNumber: true, value: (a) => a.num_subscriptions, cell: (a) => exact(a.num_subscriptions) },
  { key: "in", label: "Msgs in", isNumber: true, value: (a) => a.received.msgs, cell: (a) => count(a.received.msgs) },
  { key: "out", label: "Msgs out", isNumber: true, value: (a) => a.sent.msgs, cell: (a) => count(a.sent.msgs) },
  { key: "bytes_in", label: "Bytes in", isNumber: true, value: (a) => a.received.bytes, cell: (a) => bytes(a.received.bytes) },
  { key: "bytes_out", label: "Bytes out", isNumber: true, value: (a) => a.sent.bytes, cell: (a) => bytes(a.sent.bytes) },
  { key: "slow", label: "Slow consumers", isNumber: true, value: (a) => a.slow_consumers, cell: (a) => exact(a.slow_consumers) },
];

export function Accounts({ who }) {
  return who.sees_server ? html`<${All} />` : html`<${Own} name=${who.account} />`;
}

function All() {
  const [filter, setFilter] = useState("");
  const [opened, setOpened] = useState(undefined);
  const [told, error] = usePoll("accounts", POLL_MILLISECONDS, () => ask("accstatz", { query: { unused: 1 } }));
  const rows = (told?.account_statz ?? []).filter((account) => passes(filter, account.name));
  return html`
    <${Panel} title="Accounts" id="accounts-title" aside=${html`<span class="quiet">${told ? exact(rows.length) : ""}</span>`}>
      <div class="tools"><${Filter} label="Filter by name" value=${filter} onChange=${setFilter} /></div>
      <${Problem} error=${error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && rows.length === 0 && html`<${Empty}>No account matches.<//>`}
      ${rows.length > 0 && html`
        <${Table} caption="Accounts" columns=${COLUMNS} rows=${rows} rowKey=${(a) => a.name}
          opened=${opened} onOpen=${setOpened} detail=${(a) => html`<${Details} name=${a.name} />`} />`}
    <//>`;
}

function Own({ name }) {
  return html`
    <${Panel} title="Account ${name}" id="accounts-title">
      <p class="quiet">Users of the system account see all accounts.</p>
      <${Details} name=${name} />
    <//>`;
}

function Details({ name }) {
  const [told, error] = usePoll(`account ${name}`, POLL_MILLISECONDS, () => ask("accountz", { query: { acc: name } }));
  const account = told?.account_detail;
  if (!account) return error ? html`<${Problem} error=${error} />` : html`<${Loading} />`;
  const { exports = [], imports = [] } = account;
  return html`
    <${Facts} facts=${[
      ["Connections", exact(account.client_connections)],
      ["Subscriptions", exact(account.subscriptions)],
      ["JetStream", account.jetstream_enabled ? "yes" : "no"],
      account.is_system && ["System account", "yes"],
    ]} />
    ${exports.length > 0 && html`
      <${Table} caption="Exports of ${name}" rows=${exports} rowKey=${(e) => `${e.type} ${e.subject}`} columns=${[
        { key: "subject", label: "Exports", value: (e) => e.subject, cell: (e) => html`<code>${e.subject}</code>` },
        { key: "type", label: "Kind", value: (e) => [e.type, e.response_type].filter(Boolean).join(", ") },
        { key: "to", label: "For", value: (e) => e.approved_accounts?.join(", ") ?? "all accounts" },
      ]} />`}
    ${imports.length > 0 && html`
      <${Table} caption="Imports of ${name}" rows=${imports} rowKey=${(i) => `${i.account} ${i.subject}`} columns=${[
        { key: "subject", label: "Imports", value: (i) => i.subject, cell: (i) => html`<code>${i.subject}</code>` },
        { key: "account", label: "From", value: (i) => i.account },
        { key: "as", label: "As", value: (i) => i.local_subject, cell: (i) => html`<code>${i.local_subject}</code>` },
        { key: "type", label: "Kind", value: (i) => i.type },
      ]} />`}
    ${exports.length + imports.length === 0 && html`<${Empty}>No exports and no imports.<//>`}`;
}
