// A form for publishing, on dashboards with write access.

import { html, useState } from "./vendor/preact-htm.js";
import { Message } from "./message.js";
import { connected } from "./nats.js";
import { Problem } from "./parts.js";

/** Parses lines such as `Name: value`. */
function readHeaders(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`A header must have the form "Name: value", got "${line}".`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
}

async function send({ subject, headers, payload, isRequest }) {
  if (subject === "" || /[\s*>]/.test(subject)) throw new Error("The subject must not be empty or contain spaces or wildcards.");
  if (subject.split(".").includes("")) throw new Error("The subject must not have empty tokens.");
  const connection = await connected();
  const all = readHeaders(headers);
  if (isRequest) return connection.request(subject, payload, { headers: all });
  connection.lastError = "";
  connection.publish(subject, payload, { headers: all });
  await connection.flush();
  if (connection.lastError) throw new Error(connection.lastError);
  return undefined;
}

export function Publish({ subject: suggested = "" }) {
  const [subject, setSubject] = useState(suggested);
  const [headers, setHeaders] = useState("");
  const [payload, setPayload] = useState("");
  const [isRequest, setRequest] = useState(false);
  const [outcome, setOutcome] = useState({});
  const submit = async (event) => {
    event.preventDefault();
    setOutcome({ isBusy: true });
    try {
      const answer = await send({ subject: subject.trim(), headers, payload, isRequest });
      setOutcome({ answer, text: isRequest ? "Response:" : `Published to ${subject.trim()}.` });
    } catch (error) {
      setOutcome({ error });
    }
  };
  return html`
    <form class="publish" onSubmit=${submit} aria-label="Publish">
      <label class="field"><span>Subject</span>
        <input name="subject" value=${subject} onInput=${(event) => setSubject(event.target.value)} autocomplete="off" spellcheck=${false} />
      </label>
      <label class="field"><span>Headers, one per line</span>
        <textarea name="headers" rows="2" value=${headers} onInput=${(event) => setHeaders(event.target.value)} spellcheck=${false} placeholder="Name: value"></textarea>
      </label>
      <label class="field"><span>Content</span>
        <textarea name="payload" rows="5" value=${payload} onInput=${(event) => setPayload(event.target.value)} spellcheck=${false}></textarea>
      </label>
      <label class="check"><input type="checkbox" checked=${isRequest} onChange=${(event) => setRequest(event.target.checked)} /> Wait for a response (streams acknowledge)</label>
      <p><button class="primary" disabled=${outcome.isBusy}>Publish</button></p>
      <${Problem} error=${outcome.error} />
      <div role="status">
        ${outcome.text && html`<p>${outcome.text}</p>`}
        ${outcome.answer && html`<${Message} message=${outcome.answer} />`}
      </div>
    </form>`;
}
