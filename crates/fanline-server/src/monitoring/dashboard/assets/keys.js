// NATS keys, and signing with one. The seed stays in this page.

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
// Prefixes of a user's seed and of a user's public key.
const SEED = 18 << 3;
const USER = 20 << 3;
// Prefix of the 32 bytes of an Ed25519 seed in PKCS #8.
const PKCS8 = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

function decode(text) {
  const bytes = [];
  let [bits, count] = [0, 0];
  for (const letter of text) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0) return [];
    bits = ((bits << 5) | value) & 0xfff;
    count += 5;
    if (count >= 8) bytes.push((bits >> (count -= 8)) & 0xff);
  }
  return bytes;
}

function encode(bytes) {
  let [text, bits, count] = ["", 0, 0];
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    count += 8;
    while (count >= 5) text += ALPHABET[(bits >> (count -= 5)) & 31];
  }
  return count > 0 ? text + ALPHABET[(bits << (5 - count)) & 31] : text;
}

// CRC-16/XMODEM, the lower byte first.
function checksum(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return [crc & 0xff, crc >> 8];
}

/** The 32 bytes of a user's seed; `undefined` if the text is invalid. */
export function seedOf(text) {
  const bytes = decode(text);
  const [body, sum] = [bytes.slice(0, -2), bytes.slice(-2)];
  const isOfUser = body[0] === (SEED | (USER >> 5)) && body[1] === ((USER & 31) << 3);
  return body.length === 34 && isOfUser && `${checksum(body)}` === `${sum}` ? body.slice(2) : undefined;
}

/** The public key as text. */
export const nkeyOf = (key) => encode([USER, ...key, ...checksum([USER, ...key])]);

/** The token and the seed in a .creds file, in a file from `fanline auth nkey`, or a seed alone. */
export const partsOf = (text) => ({
  jwt: /-----BEGIN NATS USER JWT-----\s*(\S+)/.exec(text)?.[1],
  seed: /\bSU[A-Z2-7]{56}\b/.exec(text)?.[0] ?? "",
});

const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const ofBase64 = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

/** The proof for the server that the user has a key, without the key itself. */
export async function sign(text, nonce) {
  const { jwt, seed } = partsOf(text);
  const bytes = seedOf(seed);
  if (!bytes) throw new Error("This is neither the seed of a user (SU…) nor the content of a .creds file.");
  if (!globalThis.crypto?.subtle) {
    throw new Error("Browsers can sign only on pages over HTTPS or from localhost. Open the dashboard that way.");
  }
  let key;
  try {
    key = await crypto.subtle.importKey("pkcs8", Uint8Array.from([...PKCS8, ...bytes]), "Ed25519", true, ["sign"]);
  } catch {
    throw new Error("This browser cannot sign with such keys (Ed25519).");
  }
  const signature = await crypto.subtle.sign("Ed25519", key, new TextEncoder().encode(nonce));
  const { x } = await crypto.subtle.exportKey("jwk", key);
  const sig = toBase64(new Uint8Array(signature));
  return jwt ? { jwt, sig } : { nkey: nkeyOf(ofBase64(x)), sig };
}
