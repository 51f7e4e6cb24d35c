// Subscriptions, by subject or one by one.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { count, exact, percent } from "./format.js";
import { Empty, Facts, Filter, Loading, Panel, Problem, Table, passes, usePoll, useTyped } from "./parts.js";

const POLL_MILLISECONDS = 3000;
const LIMIT = 1000;

/** One row per subject and account. */
function bySubject(subscriptions) {
  const subjects = new Map();
  for (const { account = "", subject, qgroup, msgs } of subscriptions) {
    const key = `${account} ${subject}`;
    const row = subjects.get(key) ?? { key, account, subject, plain: 0, queues: new Map(), msgs: 0 };
    if (qgroup) row.queues.set(qgroup, (row.queues.get(qgroup) ?? 0) + 1);
    else row.plain += 1;
    row.msgs += msgs;
    subjects.set(key, row);
  }
  return [...subjects.values()];
}

const SUBJECT_COLUMNS = [
  { key: "subject", label: "Subject", value: (s) => s.subject, cell: (s) => html`<code>${s.subject}</code>` },
  { key: "account", label: "Account", value: (s) => s.account },
  { key: "plain", label: "Subscribers", isNumber: true, value: (s) => s.plain },
  {
    key: "queues",
    label: "Queue groups (members)",
    value: (s) => s.queues.size,
    cell: (s) => [...s.queues].map(([name, members]) => `${name} (${members})`).join(", ") || "–",
  },
  { key: "msgs", label: "Delivered", isNumber: true, value: (s) => s.msgs, cell: (s) => count(s.msgs) },
];
const SUBSCRIPTION_COLUMNS = [
  { key: "subject", label: "Subject", value: (s) => s.subject, cell: (s) => html`<code>${s.subject}</code>` },
  { key: "queue", label: "Queue", value: (s) => s.qgroup ?? "" },
  { key: "account", label: "Account", value: (s) => s.account ?? "" },
  { key: "cid", label: "Connection", isNumber: true, value: (s) => s.cid },
  { key: "sid", label: "Subscription", isNumber: true, value: (s) => s.sid },
  { key: "msgs", label: "Delivered", isNumber: true, value: (s) => s.msgs, cell: (s) => count(s.msgs) },
  { key: "max", label: "Ends after", isNumber: true, value: (s) => s.max ?? 0, cell: (s) => (s.max ? exact(s.max) : "–") },
];

export function Subscriptions() {
  const [view, setView] = useState("subjects");
  const [filter, setFilter] = useState("");
  const [test, setTest] = useState("");
  const find = useTyped(filter);
  const query = { subs: 1, limit: LIMIT, test: test.trim(), find };
  const [told, error, again] = usePoll(`subscriptions ${query.test}`, POLL_MILLISECONDS, () => ask("subsz", { query }));
  useEffect(again, [find]);
  const all = (told?.subscriptions_list ?? []).filter((s) => passes(filter, s.subject, s.qgroup, s.account, s.cid));
  const rows = view === "subjects" ? bySubject(all) : all;
  return html`
    <${Panel} title="Subscriptions" id="subscriptions-title" aside=${html`<span class="quiet">${told ? exact(told.num_subscriptions) : ""}</span>`}>
      <div class="tools">
        <${Filter} label="Filter by subject, queue, account" value=${filter} onChange=${setFilter} />
        <label class="field"><span>Receivers of a message on</span>
          <input value=${test} onChange=${(event) => setTest(event.target.value)} placeholder="orders.new" autocomplete="off" spellcheck=${false} />
        </label>
        <label class="field"><span>Rows</span>
          <select value=${view} onChange=${(event) => setView(event.target.value)}>
            <option value="subjects">subjects</option>
            <option value="subscriptions">subscriptions</option>
          </select>
        </label>
      </div>
      <${Problem} error=${error} />
      ${!told && !error && html`<${Loading} />`}
      ${told && html`
        <${Facts} facts=${[
          ["Cache hit rate", percent(told.cache_hit_rate * 100)],
          ["Cached subjects", exact(told.num_cache)],
          ["Receivers per message", `${count(told.avg_fanout)} on average, ${exact(told.max_fanout)} at most`],
        ]} />`}
      ${told && rows.length === 0 && html`<${Empty}>No subscription matches.<//>`}
      ${rows.length > 0 && (view === "subjects"
        ? html`<${Table} caption="Subjects" columns=${SUBJECT_COLUMNS} rows=${rows} rowKey=${(s) => s.key} />`
        : html`<${Table} caption="Subscriptions" columns=${SUBSCRIPTION_COLUMNS} rows=${rows} rowKey=${(s) => `${s.cid} ${s.sid}`} />`)}
      ${told?.total > LIMIT && html`<p class="quiet">The first ${exact(LIMIT)} of ${exact(told.total)} are shown.</p>`}
    <//>`;
}
