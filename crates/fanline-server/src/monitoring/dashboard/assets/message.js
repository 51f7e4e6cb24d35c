// A message with its headers and its content.

import { html, useState } from "./vendor/preact-htm.js";
import { bytes, moment } from "./format.js";
import { Facts } from "./parts.js";

/** Most shown bytes of a message. */
const SHOWN_BYTES_MAX = 64 * 1024;
/** Characters of a preview. */
const PREVIEW_CHARS = 160;

/** The content as text; `undefined` if it is not UTF-8. */
export function text(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return undefined;
  }
}

/** A preview in one line. */
export function preview(data) {
  if (data.length === 0) return html`<span class="quiet">empty</span>`;
  // Decode some more bytes, because a character may be cut at the end.
  const start = text(data.subarray(0, PREVIEW_CHARS * 4)) ?? new TextDecoder().decode(data.subarray(0, PREVIEW_CHARS * 4));
  if (/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(start.slice(0, PREVIEW_CHARS))) {
    return html`<span class="quiet">${bytes(data.length)} of binary data</span>`;
  }
  return start.length > PREVIEW_CHARS ? `${start.slice(0, PREVIEW_CHARS)}…` : start;
}

/** Numbers stay as written, because a `Number` would round long ones. */
const asWritten = (key, value, context) =>
  typeof value === "number" && context?.source !== undefined && JSON.rawJSON ? JSON.rawJSON(context.source) : value;

function pretty(content) {
  try {
    return JSON.stringify(JSON.parse(content, asWritten), null, 2);
  } catch {
    return undefined;
  }
}

function hex(data) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, SHOWN_BYTES_MAX / 4); at += 16) {
    const part = data.subarray(at, at + 16);
    const digits = [...part].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = [...part].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

export function Message({ message }) {
  const [isRaw, setRaw] = useState(false);
  const { subject, seq, time, reply, headers, data } = message;
  const content = text(data);
  const json = content === undefined ? undefined : pretty(content);
  const shown = content === undefined ? hex(data) : (isRaw ? content : json ?? content).slice(0, SHOWN_BYTES_MAX);
  return html`
    <article class="message" aria-label="Message on ${subject}">
      <${Facts} facts=${[
        ["Subject", html`<code>${subject}</code>`],
        seq !== undefined && ["Sequence", seq],
        time && ["Time", moment(time)],
        reply && ["Reply to", html`<code>${reply}</code>`],
        ["Size", bytes(data.length)],
      ]} />
      ${headers.length > 0 && html`
        <h4>Headers</h4>
        <${Facts} facts=${headers.map(([name, value]) => [name, html`<code>${value}</code>`])} />`}
      <div class="panel-head">
        <h4>${content === undefined ? "Bytes" : json === undefined ? "Text" : "JSON"}</h4>
        ${json !== undefined && html`<button onClick=${() => setRaw(!isRaw)} aria-pressed=${isRaw ? "true" : "false"}>Raw</button>`}
      </div>
      <pre tabindex="0" role="group" aria-label="Content">${shown}</pre>
      ${data.length > SHOWN_BYTES_MAX && html`<p class="quiet">Only the beginning is shown.</p>`}
    </article>`;
}
