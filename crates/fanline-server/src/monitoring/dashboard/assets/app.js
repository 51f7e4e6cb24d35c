// The frame around the views: session, navigation, theme, keys.

import { html, render, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { hasSession, onSignedOut, signIn, signOut, waysToSignIn, whoAmI } from "./api.js";
import { Accounts } from "./accounts.js";
import { Cluster } from "./cluster.js";
import { Connections } from "./connections.js";
import { Live } from "./live.js";
import { Mqtt } from "./mqtt.js";
import { disconnect } from "./nats.js";
import { Overview, forget } from "./overview.js";
import { Dialog, Loading, Problem, useRemembered } from "./parts.js";
import { Streams } from "./streams.js";
import { Subscriptions } from "./subscriptions.js";

/** Views: address, title, and component. Their order determines their keys. */
const VIEWS = [
  ["overview", "Overview", Overview],
  ["connections", "Connections", Connections],
  ["subscriptions", "Subscriptions", Subscriptions],
  ["streams", "Streams", Streams],
  ["live", "Live", Live],
  ["accounts", "Accounts", Accounts],
  ["mqtt", "MQTT", Mqtt],
  ["cluster", "Cluster", Cluster],
];
const THEMES = ["auto", "light", "dark"];
/** Monitoring endpoints for programs. */
const ENDPOINTS = ["varz", "connz", "subsz", "healthz", "accountz", "accstatz", "routez", "leafz", "gatewayz", "jsz", "metrics"];

/** The parts of an address. A typed one may have invalid escapes. */
function readRoute() {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return parts;
  }
}

function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const change = () => setRoute(readRoute());
    addEventListener("hashchange", change);
    // The address may have changed since the first render.
    change();
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

function useTheme() {
  const [theme, setTheme] = useRemembered("theme", "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

/** Single-letter shortcuts, outside of input fields. */
function useKeys(isOn, keys) {
  useEffect(() => {
    if (!isOn) return undefined;
    const press = (event) => {
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (isTyping || event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
      const act = keys[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

const toContent = () => document.getElementById("main")?.focus();
const toFilter = () => document.querySelector("[data-filter]")?.focus();

function App() {
  const [who, setWho] = useState(undefined);
  const [error, setError] = useState(undefined);
  const load = () => whoAmI().then((found) => (setError(undefined), setWho(found)), setError);
  useEffect(() => {
    onSignedOut(() => setWho(null));
    load();
  }, []);
  const leave = async () => {
    disconnect();
    forget();
    await signOut();
    load();
  };
  const again = () => (disconnect(), forget(), load());
  if (who) return html`<${Frame} who=${who} onLeave=${leave} onSignedIn=${again} />`;
  return html`
    <header class="top"><h1>Fanline</h1></header>
    <main id="main" tabindex="-1">
      ${who === null && html`<${SignIn} onDone=${again} />`}
      ${who === undefined && !error && html`<${Loading} />`}
      <${Problem} error=${error} />
      ${error && html`<p><button onClick=${load}>Try again</button></p>`}
    </main>`;
}

const WAYS = { user: "Use a user", token: "Use a token", key: "Use a key" };

function Credentials({ way }) {
  const [key, setKey] = useState("");
  const take = async (event) => setKey(await event.target.files[0]?.text() ?? "");
  if (way === "token") {
    return html`<label class="field"><span>Token</span><input name="token" type="password" required autocomplete="current-password" /></label>`;
  }
  if (way === "key") {
    return html`
      <label class="field"><span>Seed, or content of a .creds file</span>
        <textarea name="key" rows="4" required autocomplete="off" autocapitalize="none" spellcheck=${false}
          value=${key} onInput=${(event) => setKey(event.target.value)} /></label>
      <label class="field"><span>From a file</span><input type="file" onChange=${take} /></label>
      <p class="quiet">The key signs in this page and is not sent to the server.</p>`;
  }
  return html`
    <label class="field"><span>User</span><input name="user" required autocomplete="username" autocapitalize="none" spellcheck=${false} /></label>
    <label class="field"><span>Password</span><input name="password" type="password" required autocomplete="current-password" /></label>`;
}

function SignIn({ onDone }) {
  const ways = waysToSignIn();
  const [way, setWay] = useState(ways[0]);
  const [state, setState] = useState({});
  const form = useRef(null);
  // Focus the first field.
  useEffect(() => form.current.querySelector("input, textarea")?.focus(), [way]);
  const submit = async (event) => {
    event.preventDefault();
    const entered = new FormData(event.target);
    setState({ isBusy: true });
    try {
      await signIn(Object.fromEntries(entered));
      onDone();
    } catch (error) {
      setState({ error });
    }
  };
  return html`
    <form class="sign-in panel" ref=${form} onSubmit=${submit} aria-labelledby="sign-in-title">
      <h2 id="sign-in-title">Sign in</h2>
      <p class="quiet">Use the credentials of a client of this server.</p>
      <${Credentials} way=${way} key=${way} />
      <p class="buttons">
        <button class="primary" disabled=${state.isBusy}>Sign in</button>
        ${ways.filter((other) => other !== way).map((other) => html`
          <button type="button" key=${other} onClick=${() => (setWay(other), setState({}))}>${WAYS[other]}</button>`)}
      </p>
      <${Problem} error=${state.error} />
    </form>`;
}

function Frame({ who, onLeave, onSignedIn }) {
  const route = useRoute();
  const [theme, nextTheme] = useTheme();
  const [keys, setKeys] = useRemembered("keys", "on");
  const [window_, setWindow] = useState(undefined);
  const [address, title, View] = VIEWS.find(([address]) => address === route[0]) ?? VIEWS[0];
  useEffect(() => {
    document.title = `${title} – ${who.server_name} – Fanline`;
  }, [title, who.server_name]);
  const goTo = (index) => {
    location.hash = `#/${VIEWS[index][0]}`;
    toContent();
  };
  useKeys(keys === "on", {
    ...Object.fromEntries(VIEWS.map((_, index) => [`${index + 1}`, () => goTo(index)])),
    "/": toFilter,
    "?": () => setWindow("help"),
    t: nextTheme,
    p: () => document.querySelector("[data-pause]")?.click(),
  });
  const isGuest = !hasSession();
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), toContent())}>Skip to content</a>
    <header class="top">
      <h1>Fanline</h1>
      <p class="server">${who.server_name === who.server_id ? "" : who.server_name}</p>
      <div class="buttons">
        <button onClick=${nextTheme}>Theme: ${theme}</button>
        <button onClick=${() => setWindow("help")} aria-label="Help and keyboard shortcuts">?</button>
        ${isGuest
          ? who.signed_in && html`<button onClick=${() => setWindow("sign-in")}>Sign in</button>`
          : html`<button onClick=${onLeave}>Sign out ${who.user}</button>`}
      </div>
    </header>
    <nav aria-label="Views"><ul>
      ${VIEWS.map(([to, label]) => html`<li><a href="#/${to}" aria-current=${to === address ? "page" : undefined}>${label}</a></li>`)}
    </ul></nav>
    <main id="main" tabindex="-1">
      <h2 class="unseen">${title}</h2>
      <${View} key=${address} who=${who} route=${route} />
    </main>
    <footer>
      <p>Fanline ${who.version}. ${who.sees_server ? "You see the whole server." : `You see the account ${who.account}.`}
        ${who.may_write ? "" : " This dashboard is read-only."}</p>
    </footer>
    ${window_ === "help" && html`<${Help} keys=${keys} onKeys=${setKeys} onClose=${() => setWindow(undefined)} />`}
    ${window_ === "sign-in" && html`
      <${Dialog} title="Sign in as another user" onClose=${() => setWindow(undefined)}>
        <${SignIn} onDone=${() => (setWindow(undefined), onSignedIn())} />
      <//>`}`;
}

function Help({ keys, onKeys, onClose }) {
  const rows = [
    ...VIEWS.map(([, label], index) => [index + 1, label]),
    ["/", "Go to the filter"],
    ["p", "Pause live messages"],
    ["t", "Switch the theme"],
    ["?", "Show this help"],
    ["Esc", "Close a dialog"],
  ];
  return html`
    <${Dialog} title="Keyboard shortcuts and endpoints" onClose=${onClose}>
      <label class="check"><input type="checkbox" checked=${keys === "on"} onChange=${(event) => onKeys(event.target.checked ? "on" : "off")} /> Enable single-letter shortcuts</label>
      <dl class="keys">${rows.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <h3>Endpoints for programs</h3>
      <p class="endpoints">${ENDPOINTS.map((name) => html`<a href="./${name}">/${name}</a> `)}</p>
    <//>`;
}

const app = document.getElementById("app");
app.textContent = "";
render(html`<${App} />`, app);
