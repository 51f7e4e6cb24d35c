// Overview of the server, updated once per second.

import { html } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { Bars, Chart } from "./chart.js";
import { bytes, count, exact, micros, percent, plural, rate, seconds } from "./format.js";
import { Loading, Panel, Problem, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 1000;
/** Samples in a chart. */
const MOMENTS = 120;
/** A smaller load is not stretched to the full height: an idle CPU should look idle. */
const LOAD_LEAST_PERCENT = 10;
/** First bound of the sync histogram in microseconds; each further one is twice as long. */
const SYNC_BOUND_MICROS = 16;
/** Number of samples whose syncs the percentiles include. */
const SYNC_MOMENTS = 10;

// Outlives the view, so that returning to it shows earlier samples.
const history = [];

/** Clears the samples, because another user may see the page now. */
export function forget() {
  history.length = 0;
}

async function load() {
  const now = await ask("overview");
  // A restarted server counts from zero.
  if (history.at(-1)?.uptime > now.uptime) forget();
  history.push(now);
  if (history.length > MOMENTS + 1) history.shift();
  return [...history];
}

/** Growth of a counter per second between consecutive samples. */
function rates(moments, pick) {
  return moments.slice(1).map((now, index) => {
    const before = moments[index];
    const passed = now.uptime - before.uptime;
    return passed > 0 ? Math.max(0, (pick(now) - pick(before)) / passed) : 0;
  });
}

/** The time in microseconds that this share of the latest syncs did not exceed. */
function syncTime(buckets, share) {
  const all = buckets.reduce((sum, value) => sum + value, 0);
  let seen = 0;
  for (const [index, value] of buckets.entries()) {
    seen += value;
    if (all > 0 && seen >= all * share) return SYNC_BOUND_MICROS * 2 ** index;
  }
  return undefined;
}

/** Syncs between two samples, by duration; without an earlier sample, since the start. */
function newSyncs(now, before) {
  return now.buckets.map((value, index) => value - (before?.buckets[index] ?? 0));
}

function Figure({ id, label, value, note, children }) {
  return html`
    <div class="figure">
      <h4>${label}</h4>
      <p class="value" data-figure=${id}>${value}</p>
      ${children}
      <p class="quiet note">${note}</p>
    </div>`;
}

function Flow({ id, label, moments, incoming, outgoing, format, note }) {
  const series = [
    { name: "in", values: rates(moments, incoming) },
    { name: "out", values: rates(moments, outgoing) },
  ];
  const [arrives, leaves] = series.map(({ values }) => values.at(-1));
  return html`
    <div class="figure wide">
      <h4>${label}</h4>
      <p class="pair">
        <span class="in"><span class="value" data-figure="${id}-in">${format(arrives)}</span> in</span>
        <span class="out"><span class="value" data-figure="${id}-out">${format(leaves)}</span> out</span>
      </p>
      <${Chart} series=${series} most=${MOMENTS} label=${label} format=${format} />
      <p class="quiet note">${note}</p>
    </div>`;
}

export function Overview() {
  const [moments, error] = usePoll("overview", POLL_MILLISECONDS, load);
  if (!moments) return error ? html`<${Problem} error=${error} />` : html`<${Loading} />`;
  const now = moments.at(-1);
  return html`
    <${Problem} error=${error} />
    <${Panel} title="Traffic" id="traffic">
      <div class="figures">
        <${Flow} id="messages" label="Messages per second" moments=${moments} format=${rate}
          incoming=${(m) => m.in_msgs} outgoing=${(m) => m.out_msgs}
          note="${exact(now.in_msgs)} in, ${exact(now.out_msgs)} out since the start" />
        <${Flow} id="bytes" label="Bytes per second" moments=${moments} format=${bytes}
          incoming=${(m) => m.in_bytes} outgoing=${(m) => m.out_bytes}
          note="${bytes(now.in_bytes)} in, ${bytes(now.out_bytes)} out since the start" />
        <${Figure} id="connections" label="Connections" value=${exact(now.connections)}
          note="${exact(now.total_connections)} since the start, ${exact(now.stale_connections)} of them stale">
          <${Chart} series=${[{ name: "open", values: moments.map((m) => m.connections) }]} most=${MOMENTS + 1}
            label="Connections" format=${exact} />
        <//>
        <${Figure} id="subscriptions" label="Subscriptions" value=${exact(now.subscriptions)} note="">
          <${Chart} series=${[{ name: "open", values: moments.map((m) => m.subscriptions) }]} most=${MOMENTS + 1}
            label="Subscriptions" format=${exact} />
        <//>
        <${Figure} id="slow-consumers" label="Slow consumers" value=${exact(now.slow_consumers)}
          note="disconnected; publishers were held back ${plural(now.stalls, "time")}">
          <${Chart} series=${[{ name: "dropped", values: rates(moments, (m) => m.slow_consumers) }]} most=${MOMENTS}
            label="Slow consumers per second" format=${count} />
        <//>
      </div>
    <//>
    ${now.process && html`<${Process} moments=${moments} />`}
    ${now.jetstream && html`<${JetStream} moments=${moments} />`}`;
}

function Process({ moments }) {
  const { process, uptime } = moments.at(-1);
  const load = rates(moments, (m) => m.process.cpu * 100);
  return html`
    <${Panel} title="Process" id="process">
      <div class="figures">
        <${Figure} id="cpu" label="CPU" value=${percent(load.at(-1))}
          note="of one core; ${plural(process.cores, "core")}, ${plural(process.shards, "shard")}">
          <${Chart} series=${[{ name: "load", values: load }]} most=${MOMENTS} least=${LOAD_LEAST_PERCENT} label="CPU load" format=${percent} />
        <//>
        <${Figure} id="memory" label="Memory" value=${bytes(process.memory_bytes)} note="resident">
          <${Chart} series=${[{ name: "resident", values: moments.map((m) => m.process.memory_bytes) }]}
            most=${MOMENTS + 1} label="Memory" format=${bytes} />
        <//>
        <${Figure} id="uptime" label="Uptime" value=${seconds(Math.floor(uptime))} note="" />
      </div>
    <//>`;
}

function JetStream({ moments }) {
  const { jetstream, process } = moments.at(-1);
  const calls = rates(moments, (m) => m.jetstream.api_requests);
  return html`
    <${Panel} title="JetStream" id="jetstream">
      <div class="figures">
        <${Figure} id="streams" label="Streams" value=${exact(jetstream.streams)} note=${plural(jetstream.consumers, "consumer")} />
        <${Figure} id="records" label="Stored messages" value=${count(jetstream.messages)}
          note="${bytes(jetstream.storage_bytes)} on disk, ${bytes(jetstream.memory_bytes)} in memory${
            jetstream.lost > 0 ? `, ${exact(jetstream.lost)} lost on disk` : ""
          }">
          <${Chart} series=${[{ name: "stored", values: moments.map((m) => m.jetstream.messages) }]} most=${MOMENTS + 1}
            label="Stored messages" format=${count} />
        <//>
        <${Figure} id="api" label="API requests per second" value=${rate(calls.at(-1))}
          note="${exact(jetstream.api_requests)} since the start, ${exact(jetstream.api_errors)} failed">
          <${Chart} series=${[{ name: "requests", values: calls }]} most=${MOMENTS} label="API requests per second" format=${count} />
        <//>
        ${process?.syncs && html`<${Syncs} moments=${moments} />`}
      </div>
    <//>`;
}

function Syncs({ moments }) {
  const all = moments.map((m) => m.process.syncs);
  const now = all.at(-1);
  const recent = newSyncs(now, all.length > 1 ? all.at(-1 - Math.min(SYNC_MOMENTS, all.length - 1)) : undefined);
  const buckets = recent.some((value) => value > 0) ? recent : now.buckets;
  const bars = buckets.map((value, index) => ({ name: `up to ${micros(SYNC_BOUND_MICROS * 2 ** index)}`, value }));
  const mean = now.count > 0 ? now.micros / now.count : undefined;
  return html`
    <${Figure} id="sync" label="Disk sync (fsync)" value="p99 ≤ ${micros(syncTime(buckets, 0.99))}"
      note="p50 ≤ ${micros(syncTime(buckets, 0.5))}, mean ${micros(mean)}; ${exact(now.count)} since the start">
      <${Bars} bars=${bars} label="Syncs by duration" />
    <//>`;
}
