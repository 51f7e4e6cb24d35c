// Live view of published messages.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { bytes, count, exact, moment } from "./format.js";
import { Message, preview } from "./message.js";
import { connected } from "./nats.js";
import { Empty, Panel, Problem, Table } from "./parts.js";
import { Publish } from "./publish.js";

/** Most messages per second. The server sends no more, so that watching costs little. */
const MESSAGES_PER_SECOND_MAX = 500;
/** Most shown messages, the newest ones. */
const SHOWN_MAX = 200;
/** Interval of updates. */
const SHOW_MILLISECONDS = 250;
const SECOND = 1000;
/** Delay before a lost connection is reopened. */
const RETRY_MILLISECONDS = 3000;
const INTERNAL = ["$JS.", "$SYS.", "_INBOX.", "_R_."];

const COLUMNS = [
  { key: "time", label: "Time", isFixed: true, cell: (m) => moment(m.time).slice(11) },
  { key: "subject", label: "Subject", isFixed: true, cell: (m) => html`<code>${m.subject}</code>` },
  { key: "size", label: "Size", isFixed: true, isNumber: true, cell: (m) => bytes(m.data.length) },
  { key: "content", label: "Content", isFixed: true, cell: (m) => html`<code class="preview">${preview(m.data)}</code>` },
];

const isHidden = (subject, pattern) => INTERNAL.some((start) => subject.startsWith(start) && !pattern.startsWith(start));

/** Subscribes to a subject. Returns a function that unsubscribes. */
function listen(pattern, { onMessage, onSecond, onError }) {
  let [isOver, hasFailed, timer, connection, sids, taken] = [false, false, undefined, undefined, [], 0];
  const subscribe = () => {
    if (taken >= MESSAGES_PER_SECOND_MAX) onSecond("skipped");
    taken = 0;
    const receive = (message) => {
      taken += 1;
      onMessage(message);
    };
    const after = sids.at(-1);
    sids.push(connection.subscribe(pattern, receive, { max: MESSAGES_PER_SECOND_MAX, after, onError: failed }));
    // Messages in flight for the previous subscription still count.
    while (sids.length > 2) connection.subscriptions.delete(sids.shift());
    timer = setTimeout(subscribe, SECOND);
  };
  const failed = (error) => {
    clearTimeout(timer);
    hasFailed = true;
    if (isOver) return;
    onError(error);
    const isDenied = error.message.includes("Permissions Violation");
    const isRefused = error.status === 401 || error.status === 403;
    if (!isDenied && !isRefused) timer = setTimeout(begin, RETRY_MILLISECONDS);
  };
  const begin = async () => {
    [sids, hasFailed] = [[], false];
    try {
      connection = await connected();
      if (isOver) return;
      subscribe();
      await connection.flush();
      // A permissions violation has arrived by now.
      if (!isOver && !hasFailed) onSecond("listening");
    } catch (error) {
      failed(error);
    }
  };
  begin();
  return () => {
    isOver = true;
    clearTimeout(timer);
    for (const sid of sids) connection?.unsubscribe(sid);
  };
}

export function Live({ who }) {
  const [typed, setTyped] = useState(">");
  const [pattern, setPattern] = useState(undefined);
  const [isPaused, setPaused] = useState(false);
  const [withInternal, setInternal] = useState(false);
  const [shown, setShown] = useState([]);
  const [status, setStatus] = useState({});
  const [opened, setOpened] = useState(undefined);
  const heard = useRef({ messages: [], count: 0 });
  const wants = useRef({});
  // At a high rate, an open message would scroll away at once.
  const isRead = opened !== undefined;
  wants.current = { isPaused: isPaused || isRead, isRead, withInternal };
  useEffect(() => {
    if (pattern === undefined) return undefined;
    heard.current = { messages: [], count: 0 };
    setShown([]);
    setStatus({ text: "Connecting…" });
    const stop = listen(pattern, {
      onMessage(message) {
        const { isPaused, withInternal } = wants.current;
        if (isPaused || (!withInternal && isHidden(message.subject, pattern))) return;
        const all = heard.current;
        all.count += 1;
        all.messages.unshift({ ...message, number: all.count, time: new Date().toISOString() });
        if (all.messages.length > SHOWN_MAX * 2) all.messages.length = SHOWN_MAX;
      },
      onSecond(what) {
        if (what === "skipped") heard.current.skipped = Date.now();
        else setStatus({ text: `Subscribed to ${pattern}.` });
      },
      onError: (error) => setStatus({ error }),
    });
    let last;
    const timer = setInterval(() => {
      if (document.hidden || wants.current.isRead || last === heard.current.count) return;
      last = heard.current.count;
      setShown(heard.current.messages.slice(0, SHOWN_MAX));
    }, SHOW_MILLISECONDS);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [pattern]);
  const submit = (event) => {
    event.preventDefault();
    setOpened(undefined);
    setPattern(pattern === undefined ? typed.trim() || ">" : undefined);
    setStatus({});
  };
  const isSampled = heard.current.skipped > Date.now() - 3 * SECOND;
  return html`
    <${Panel} title="Live messages" id="live-title" aside=${html`<span class="quiet" data-figure="heard">${exact(heard.current.count)}</span>`}>
      <form class="tools" onSubmit=${submit}>
        <label class="field filter"><span>Subject (wildcards allowed)</span>
          <input data-filter name="subject" value=${typed} onInput=${(event) => setTyped(event.target.value)}
            disabled=${pattern !== undefined} autocomplete="off" spellcheck=${false} />
        </label>
        <div class="buttons">
          <button class="primary">${pattern === undefined ? "Subscribe" : "Stop"}</button>
          ${pattern !== undefined && html`<button type="button" data-pause aria-pressed=${isPaused ? "true" : "false"} onClick=${() => setPaused(!isPaused)}>Pause</button>`}
        </div>
        <label class="check"><input type="checkbox" checked=${withInternal} onChange=${(event) => setInternal(event.target.checked)} /> include internal subjects</label>
      </form>
      <${Problem} error=${status.error} />
      <p role="status" class="quiet">${isPaused ? "Paused." : isRead ? "Paused while a message is open." : status.text}${
        isSampled ? ` More than ${count(MESSAGES_PER_SECOND_MAX)} per second: not all are shown.` : ""
      }</p>
      ${pattern !== undefined && shown.length === 0 && !status.error && html`<${Empty}>No messages yet.<//>`}
      ${shown.length > 0 && html`
        <${Table} caption="Messages, the newest first" columns=${COLUMNS} rows=${shown} rowKey=${(m) => m.number}
          opened=${opened} onOpen=${setOpened} detail=${(m) => html`<${Message} message=${m} />`} />`}
    <//>
    ${who.may_write
      ? html`<${Panel} title="Publish" id="publish-title"><${Publish} /><//>`
      : html`<p class="quiet">This dashboard is read-only. To publish from here, start the server with <code>--dashboard write</code>.</p>`}`;
}
