// Browser of a stream's messages.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { bytes, count, exact, moment } from "./format.js";
import { records, recordsBefore, subjects } from "./jetstream.js";
import { Message, preview } from "./message.js";
import { Empty, Loading, Problem, Table } from "./parts.js";

/** Messages per page. */
const PAGE = 25;
/** Most listed subjects. */
const SUBJECTS_MAX = 200;
const EVERYTHING = ">";

const COLUMNS = [
  { key: "seq", label: "Sequence", isNumber: true, value: (m) => m.seq, cell: (m) => exact(m.seq) },
  { key: "time", label: "Time", value: (m) => m.time, cell: (m) => moment(m.time) },
  { key: "subject", label: "Subject", value: (m) => m.subject, cell: (m) => html`<code>${m.subject}</code>` },
  { key: "size", label: "Size", isNumber: true, value: (m) => m.data.length, cell: (m) => bytes(m.data.length) },
  { key: "content", label: "Content", isFixed: true, cell: (m) => html`<code class="preview">${preview(m.data)}</code>` },
];

/** Parses a sequence: an integer that a number represents exactly. */
const sequence = (typed) => Math.min(Math.max(1, Math.floor(Number(typed)) || 1), Number.MAX_SAFE_INTEGER);

export function Browser({ stream, state }) {
  const [filter, setFilter] = useState("");
  const [from, setFrom] = useState(undefined);
  const [page, setPage] = useState({});
  const [opened, setOpened] = useState(undefined);
  const wanted = filter.trim() || EVERYTHING;
  const first = Math.max(1, state.first_seq);
  const show = async (load) => {
    setPage((before) => ({ ...before, isBusy: true }));
    try {
      const { start, found } = await load();
      setFrom(start);
      setPage({ found });
    } catch (error) {
      setPage({ error });
    }
  };
  const showFrom = (start) => show(async () => ({ start, found: await records(stream, start, wanted, PAGE) }));
  const showBefore = (end, otherwise = []) => show(async () => {
    const found = await recordsBefore(stream, end, first, wanted, PAGE);
    // Without older messages, the page stays unchanged.
    return found.length > 0 ? { start: found[0].seq, found } : { start: first, found: otherwise };
  });
  const showLatest = () => showBefore(state.last_seq + 1);
  useEffect(() => {
    setOpened(undefined);
    showLatest();
  }, [stream, wanted]);
  const { found, error, isBusy } = page;
  const after = found?.length ? found.at(-1).seq + 1 : from;
  return html`
    <div class="tools">
      <label class="field filter"><span>Subject (wildcards allowed)</span>
        <input type="search" data-filter value=${filter} onChange=${(event) => setFilter(event.target.value)}
          placeholder=${EVERYTHING} autocomplete="off" spellcheck=${false} />
      </label>
      <label class="field"><span>From sequence</span>
        <input type="number" min="1" value=${from ?? ""} onChange=${(event) => showFrom(sequence(event.target.value))} />
      </label>
      <div class="buttons" role="group" aria-label="Pages">
        <button onClick=${() => showFrom(first)}>First</button>
        <button onClick=${() => showBefore(from, found)} disabled=${!from || from <= first}>Older</button>
        <button onClick=${() => showFrom(after)} disabled=${!found || found.length < PAGE}>Newer</button>
        <button onClick=${showLatest}>Latest</button>
      </div>
    </div>
    <${Problem} error=${error} />
    <div aria-busy=${isBusy ? "true" : "false"}>
      ${!found && !error && html`<${Loading} />`}
      ${found?.length === 0 && html`<${Empty}>No messages from here on.<//>`}
      ${found?.length > 0 && html`
        <${Table} caption="Messages of ${stream}" columns=${COLUMNS} rows=${found} rowKey=${(m) => m.seq}
          opened=${opened} onOpen=${setOpened} detail=${(m) => html`<${Message} message=${m} />`} />`}
    </div>
    <${Subjects} stream=${stream} filter=${wanted} onPick=${setFilter} />`;
}

function Subjects({ stream, filter, onPick }) {
  const [told, setTold] = useState(undefined);
  const load = () => subjects(stream, filter).then((found) => setTold({ found }), (error) => setTold({ error }));
  useEffect(() => setTold(undefined), [stream, filter]);
  const rows = (told?.found ?? []).sort((a, b) => b[1] - a[1]).slice(0, SUBJECTS_MAX);
  return html`
    <p><button onClick=${load}>Count messages by subject</button></p>
    <${Problem} error=${told?.error} />
    ${told?.found && html`
      <${Table} caption="Subjects of ${stream}" rows=${rows} rowKey=${([subject]) => subject} columns=${[
        { key: "subject", label: "Subject", value: ([subject]) => subject,
          cell: ([subject]) => html`<button class="plain" onClick=${() => onPick(subject)}><code>${subject}</code></button>` },
        { key: "count", label: "Messages", isNumber: true, value: ([, messages]) => messages, cell: ([, messages]) => count(messages) },
      ]} />
      ${told.found.length > SUBJECTS_MAX && html`<p class="quiet">The ${SUBJECTS_MAX} of ${exact(told.found.length)} subjects with the most messages.</p>`}`}`;
}
