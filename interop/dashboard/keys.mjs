// Creates a user's key in the form of NATS, without the page's own code.

import { generateKeyPairSync } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function text(bytes) {
  const checked = Buffer.concat([bytes, checksum(bytes)]);
  const bits = [...checked].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.match(/.{1,5}/g).map((five) => ALPHABET[parseInt(five.padEnd(5, "0"), 2)]).join("");
}

// CRC-16/XMODEM, the lower byte first.
function checksum(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const carry = ((crc >> 15) ^ (byte >> bit)) & 1;
      crc = ((crc << 1) & 0xffff) ^ (carry * 0x1021);
    }
  }
  return Buffer.from([crc & 0xff, crc >> 8]);
}

/** Returns a new seed (SU…) and its public key (U…). */
export function userKey() {
  const { privateKey } = generateKeyPairSync("ed25519");
  const { d, x } = privateKey.export({ format: "jwk" });
  const [seed, key] = [d, x].map((part) => Buffer.from(part, "base64url"));
  return { seed: text(Buffer.concat([Buffer.from([149, 0]), seed])), nkey: text(Buffer.concat([Buffer.from([160]), key])) };
}
