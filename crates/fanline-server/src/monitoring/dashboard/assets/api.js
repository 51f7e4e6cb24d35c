// HTTP requests of the page, and its session.

const KEY = "fanline-session";

/** Called when the server no longer knows this session. */
let whenSignedOut = () => {};

export function onSignedOut(callback) {
  whenSignedOut = callback;
}

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// The session lives as long as the tab, and is visible to this origin only.
export const hasSession = () => sessionStorage.getItem(KEY) !== null;

/** Sends a request and returns the response. */
export async function ask(name, { method = "GET", query = {}, body } = {}) {
  const address = new URL(`dashboard/api/${name}`, document.baseURI);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") address.searchParams.set(key, value);
  }
  const headers = { "fanline-dashboard": "1" };
  const session = sessionStorage.getItem(KEY);
  if (session) headers.authorization = `Bearer ${session}`;
  let response;
  try {
    response = await fetch(address, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401 && name !== "session") {
    sessionStorage.removeItem(KEY);
    whenSignedOut();
  }
  throw new Refused(response.status, answer.error ?? `The server responded with status ${response.status}.`);
}

/** Ways to sign in, the usual one first. */
let ways = ["user", "token"];
export const waysToSignIn = () => ways;

/** The user of the session; `null` if credentials are required. */
export async function whoAmI() {
  const who = await ask("session");
  ways = who.ways ?? ways;
  if (!who.needs_credentials) return who;
  sessionStorage.removeItem(KEY);
  return null;
}

/** Signs in with a user, a token, or a key, which does not leave the page. */
export async function signIn({ key, ...credentials }) {
  sessionStorage.removeItem(KEY);
  if (key) {
    const { nonce } = await ask("nonce", { method: "POST" });
    credentials = { nonce, ...(await (await import("./keys.js")).sign(key, nonce)) };
  }
  const { session } = await ask("session", { method: "POST", body: credentials });
  sessionStorage.setItem(KEY, session);
}

export async function signOut() {
  await ask("session", { method: "DELETE" }).catch(() => {});
  sessionStorage.removeItem(KEY);
}
