// Streams and the progress of their consumers.

import { html, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { Browser } from "./browser.js";
import { ago, bytes, count, exact, moment, nanos } from "./format.js";
import { streams as ownStreams } from "./jetstream.js";
import { Empty, Facts, Filter, Loading, Panel, Problem, Table, passes, usePoll } from "./parts.js";
import { Publish } from "./publish.js";

const POLL_MILLISECONDS = 3000;

/** All streams visible to this session: `{ account, config, state, consumers }`. */
async function load(who) {
  if (!who.jetstream) return [];
  if (!who.sees_server) {
    return (await ownStreams()).map((stream) => ({ ...stream, account: who.account }));
  }
  const told = await ask("jsz", { query: { streams: 1, consumers: 1, config: 1 } });
  return (told.account_details ?? []).flatMap(({ name: account, stream_detail: streams = [] }) =>
    streams.map(({ consumer_detail: consumers = [], ...stream }) => ({ ...stream, account, consumers })),
  );
}

const sum = (stream, pick) => (stream.consumers ?? []).reduce((all, consumer) => all + pick(consumer), 0);
const address = ({ account, config }) => `#/streams/${encodeURIComponent(account)}/${encodeURIComponent(config.name)}`;

function columns(hasAccounts) {
  return [
    { key: "name", label: "Stream", value: (s) => s.config.name, cell: (s) => html`<a href=${address(s)}>${s.config.name}</a>` },
    hasAccounts && { key: "account", label: "Account", value: (s) => s.account },
    { key: "subjects", label: "Subjects", value: (s) => `${s.config.subjects ?? ""}`, cell: (s) => html`<code>${(s.config.subjects ?? [from(s.config)]).join(", ")}</code>` },
    { key: "storage", label: "Storage", value: (s) => s.config.storage },
    { key: "messages", label: "Messages", isNumber: true, value: (s) => s.state.messages, cell: (s) => count(s.state.messages) },
    { key: "bytes", label: "Size", isNumber: true, value: (s) => s.state.bytes, cell: (s) => bytes(s.state.bytes) },
    { key: "last", label: "Newest", value: (s) => s.state.last_ts, cell: (s) => (s.state.messages ? ago(s.state.last_ts) : "–") },
    { key: "consumers", label: "Consumers", isNumber: true, value: (s) => s.state.consumer_count },
    { key: "lag", label: "Pending", isNumber: true, value: (s) => sum(s, (c) => c.num_pending), cell: (s) => count(sum(s, (c) => c.num_pending)) },
    { key: "pending", label: "Unacknowledged", isNumber: true, value: (s) => sum(s, (c) => c.num_ack_pending), cell: (s) => count(sum(s, (c) => c.num_ack_pending)) },
    { key: "redelivered", label: "Redelivered", isNumber: true, value: (s) => sum(s, (c) => c.num_redelivered), cell: (s) => count(sum(s, (c) => c.num_redelivered)) },
  ].filter(Boolean);
}

function from(config) {
  if (config.mirror) return `mirror of ${config.mirror.name}`;
  return config.sources ? `from ${config.sources.map(({ name }) => name).join(", ")}` : "–";
}

export function Streams({ who, route }) {
  const [, account, name] = route;
  const [filter, setFilter] = useState("");
  const [all, error] = usePoll("streams", POLL_MILLISECONDS, () => load(who));
  if (!who.jetstream) return html`<${Panel} title="Streams" id="streams-title"><${Empty}>JetStream is disabled on this server.<//><//>`;
  if (!all) return html`<${Panel} title="Streams" id="streams-title"><${Problem} error=${error} />${!error && html`<${Loading} />`}<//>`;
  if (name) {
    const stream = all.find((s) => s.account === account && s.config.name === name);
    return html`
      <p><a href="#/streams">All streams</a></p>
      <${Problem} error=${error} />
      ${stream ? html`<${Stream} stream=${stream} who=${who} />` : html`<${Empty}>Stream ${name} does not exist.<//>`}`;
  }
  const rows = all.filter((s) => passes(filter, s.config.name, s.account, s.config.subjects));
  const hasAccounts = new Set(all.map((s) => s.account)).size > 1;
  return html`
    <${Panel} title="Streams" id="streams-title" aside=${html`<span class="quiet">${exact(all.length)}</span>`}>
      <div class="tools"><${Filter} label="Filter by name, subject, account" value=${filter} onChange=${setFilter} /></div>
      <${Problem} error=${error} />
      ${rows.length === 0 && html`<${Empty}>${all.length === 0 ? "No streams yet." : "No stream matches."}<//>`}
      ${rows.length > 0 && html`<${Table} caption="Streams" columns=${columns(hasAccounts)} rows=${rows} rowKey=${(s) => `${s.account} ${s.config.name}`} />`}
    <//>`;
}

const limit = (value, format) => (value > 0 ? format(value) : "none");

function Stream({ stream, who }) {
  const { account, config, state, consumers = [] } = stream;
  const isOwn = account === who.account;
  const subject = config.subjects?.find((one) => !/[*>]/.test(one));
  return html`
    <${Panel} title="Stream ${config.name}" id="stream-title">
      <${Facts} facts=${[
        ["Subjects", html`<code>${(config.subjects ?? [from(config)]).join(", ")}</code>`],
        ["Account", account],
        ["Messages", `${exact(state.messages)} (${exact(state.first_seq)} to ${exact(state.last_seq)})`],
        ["Size", bytes(state.bytes)],
        ["Subjects in use", exact(state.num_subjects ?? 0)],
        ["Oldest", state.messages ? moment(state.first_ts) : "–"],
        ["Newest", state.messages ? moment(state.last_ts) : "–"],
        ["Retention", `${config.retention}, ${config.storage}, discards ${config.discard}`],
        ["Maximum messages", limit(config.max_msgs, exact)],
        ["Maximum bytes", limit(config.max_bytes, bytes)],
        ["Maximum age", limit(config.max_age, nanos)],
        state.num_deleted > 0 && ["Deleted messages", exact(state.num_deleted)],
        state.lost?.msgs && ["Lost on disk", exact(state.lost.msgs.length)],
        config.description && ["Description", config.description],
      ]} />
    <//>
    <${Panel} title="Consumers" id="consumers-title" aside=${html`<span class="quiet">${exact(consumers.length)}</span>`}>
      ${consumers.length === 0
        ? html`<${Empty}>This stream has no consumers.<//>`
        : html`<${Consumers} stream=${stream} />`}
    <//>
    <${Panel} title="Messages" id="messages-title">
      ${isOwn
        ? html`<${Browser} stream=${config.name} state=${state} />`
        : html`<${Empty}>Only users of ${account} see its messages. Sign in as one of them.<//>`}
    <//>
    ${isOwn && who.may_write && html`<${Panel} title="Publish" id="publish-title"><${Publish} subject=${subject} /><//>`}`;
}

const CONSUMER_COLUMNS = [
  { key: "name", label: "Consumer", value: (c) => c.name },
  { key: "kind", label: "Kind", value: (c) => (c.config?.deliver_subject ? "push" : "pull") },
  { key: "filter", label: "Filter", value: filterOf, cell: (c) => (isFiltered(c) ? html`<code>${filterOf(c)}</code>` : filterOf(c)) },
  { key: "delivered", label: "Delivered", isNumber: true, value: (c) => c.delivered.stream_seq, cell: (c) => exact(c.delivered.stream_seq) },
  { key: "floor", label: "Ack floor", isNumber: true, value: (c) => c.ack_floor.stream_seq, cell: (c) => exact(c.ack_floor.stream_seq) },
  { key: "lag", label: "Pending", isNumber: true, value: (c) => c.num_pending, cell: (c) => html`<span data-figure="lag">${exact(c.num_pending)}</span>` },
  { key: "pending", label: "Unacknowledged", isNumber: true, value: (c) => c.num_ack_pending, cell: (c) => exact(c.num_ack_pending) },
  { key: "redelivered", label: "Redelivered", isNumber: true, value: (c) => c.num_redelivered, cell: (c) => exact(c.num_redelivered) },
  { key: "waiting", label: "Waiting requests", isNumber: true, value: (c) => c.num_waiting, cell: (c) => exact(c.num_waiting) },
];

const isFiltered = ({ config }) => Boolean(config?.filter_subject ?? config?.filter_subjects?.length);

function filterOf({ config }) {
  return config?.filter_subject ?? config?.filter_subjects?.join(", ") ?? "all subjects";
}

function Consumers({ stream }) {
  const [opened, setOpened] = useState(undefined);
  const name = stream.config.name;
  return html`
    <${Table} caption="Consumers of ${name}" columns=${CONSUMER_COLUMNS} rows=${stream.consumers} rowKey=${(c) => c.name}
      opened=${opened} onOpen=${setOpened} detail=${(c) => html`
        <${Facts} facts=${[
          ["Created", moment(c.created)],
          ["Behind the stream", `${exact(Math.max(0, stream.state.last_seq - c.delivered.stream_seq))} sequences`],
          ["Last delivery", c.delivered.last_active ? ago(c.delivered.last_active) : "–"],
          ["Last acknowledgement", c.ack_floor.last_active ? ago(c.ack_floor.last_active) : "–"],
          ["Ack policy", c.config?.ack_policy ?? "–"],
          ["Ack wait", nanos(c.config?.ack_wait)],
          ["Maximum deliveries", c.config?.max_deliver > 0 ? exact(c.config.max_deliver) : "unlimited"],
          ["Maximum unacknowledged", c.config?.max_ack_pending > 0 ? exact(c.config.max_ack_pending) : "unlimited"],
          c.paused && ["Paused", "yes"],
        ]} />`} />`;
}
