// The server at a glance, once a second.

import { html } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { Bars, Chart } from "./chart.js";
import { bytes, count, exact, micros, percent, rate, seconds } from "./format.js";
import { Loading, Panel, Problem, usePoll } from "./parts.js";

const POLL_MILLISECONDS = 1000;
/** Moments in a chart. */
const MOMENTS = 120;
/** A chart of less than that is not stretched: an idle processor is to look idle. */
const LOAD_LEAST_PERCENT = 10;
/** The first bound of the histogram of syncs, in microseconds; each other is twice as long. */
const SYNC_BOUND_MICROS = 16;
/** Syncs of so many moments make up the percentiles. */
const SYNC_MOMENTS = 10;

// Outlives the view, so that one sees on coming back what happened before.
const history = [];

/** Forgets what was seen: somebody else may be looking. */
export function forget() {
  history.length = 0;
}

async function load() {
  const now = await ask("overview");
  // A server that was started anew counts from nothing.
  if (history.at(-1)?.uptime > now.uptime) forget();
  history.push(now);
  if (history.length > MOMENTS + 1) history.shift();
  return [...history];
}

/** What a count grew by in a second, between any two moments. */
function rates(moments, pick) {
  return moments.slice(1).map((now, index) => {
    const before = moments[index];
    const passed = now.uptime - before.uptime;
    return passed > 0 ? Math.max(0, (pick(now) - pick(before)) / passed) : 0;
  });
}

/** The time that a share of the newest syncs did not exceed, in microseconds. */
function syncTime(buckets, share) {
  const all = buckets.reduce((sum, value) => sum + value, 0);
  let seen = 0;
  for (const [index, value] of buckets.entries()) {
    seen += value;
    if (all > 0 && seen >= all * share) return SYNC_BOUND_MICROS * 2 ** index;
  }
  return undefined;
}

/** Syncs between two moments, by their time; before the first one, since the start. */
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
        <${Flow} id="messages" label="Messages a second" moments=${moments} format=${rate}
          incoming=${(m) => m.in_msgs} outgoing=${(m) => m.out_msgs}
          note="${exact(now.in_msgs)} in, ${exact(now.out_msgs)} out since the start" />
        <${Flow} id="bytes" label="Bytes a second" moments=${moments} format=${bytes}
          incoming=${(m) => m.in_bytes} outgoing=${(m) => m.out_bytes}
          note="${bytes(now.in_bytes)} in, ${bytes(now.out_bytes)} out since the start" />
        <${Figure} id="connections" label="Connections" value=${exact(now.connections)}
          note="${exact(now.total_connections)} since the start, ${exact(now.stale_connections)} of them fell silent">
          <${Chart} series=${[{ name: "open", values: moments.map((m) => m.connections) }]} most=${MOMENTS + 1}
            label="Connections" format=${exact} />
        <//>
        <${Figure} id="subscriptions" label="Subscriptions" value=${exact(now.subscriptions)} note="">
          <${Chart} series=${[{ name: "open", values: moments.map((m) => m.subscriptions) }]} most=${MOMENTS + 1}
            label="Subscriptions" format=${exact} />
        <//>
        <${Figure} id="slow-consumers" label="Slow consumers dropped" value=${exact(now.slow_consumers)}
          note="publishers were held back ${exact(now.stalls)} times">
          <${Chart} series=${[{ name: "dropped", values: rates(moments, (m) => m.slow_consumers) }]} most=${MOMENTS}
            label="Slow consumers dropped a second" format=${count} />
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
        <${Figure} id="cpu" label="Processor" value=${percent(load.at(-1))}
          note="of one core; there are ${process.cores}, and ${process.shards} ${process.shards === 1 ? "carries" : "carry"} messages">
          <${Chart} series=${[{ name: "load", values: load }]} most=${MOMENTS} least=${LOAD_LEAST_PERCENT} label="Processor load" format=${percent} />
        <//>
        <${Figure} id="memory" label="Memory" value=${bytes(process.memory_bytes)} note="resident">
          <${Chart} series=${[{ name: "resident", values: moments.map((m) => m.process.memory_bytes) }]}
            most=${MOMENTS + 1} label="Memory" format=${bytes} />
        <//>
        <${Figure} id="uptime" label="Up for" value=${seconds(Math.floor(uptime))} note="" />
      </div>
    <//>`;
}

function JetStream({ moments }) {
  const { jetstream, process } = moments.at(-1);
  const calls = rates(moments, (m) => m.jetstream.api_requests);
  return html`
    <${Panel} title="JetStream" id="jetstream">
      <div class="figures">
        <${Figure} id="streams" label="Streams" value=${exact(jetstream.streams)} note="${exact(jetstream.consumers)} consumers" />
        <${Figure} id="records" label="Messages kept" value=${count(jetstream.messages)}
          note="${bytes(jetstream.storage_bytes)} on disk, ${bytes(jetstream.memory_bytes)} in memory${
            jetstream.lost > 0 ? `, ${exact(jetstream.lost)} lost by the disk` : ""
          }">
          <${Chart} series=${[{ name: "kept", values: moments.map((m) => m.jetstream.messages) }]} most=${MOMENTS + 1}
            label="Messages kept" format=${count} />
        <//>
        <${Figure} id="api" label="API requests a second" value=${rate(calls.at(-1))}
          note="${exact(jetstream.api_requests)} since the start, ${exact(jetstream.api_errors)} failed">
          <${Chart} series=${[{ name: "requests", values: calls }]} most=${MOMENTS} label="API requests a second" format=${count} />
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
    <${Figure} id="sync" label="Sync to the disk (fsync)" value="p99 ≤ ${micros(syncTime(buckets, 0.99))}"
      note="p50 ≤ ${micros(syncTime(buckets, 0.5))}, mean ${micros(mean)}; ${exact(now.count)} since the start">
      <${Bars} bars=${bars} label="Syncs by how long they took" />
    <//>`;
}
