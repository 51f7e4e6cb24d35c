// Formatting of numbers, sizes, and times.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** 1,234 or 12.3K. */
export function count(number) {
  if (number === undefined || number === null || Number.isNaN(number)) return "–";
  return Math.abs(number) < 10_000 ? plain.format(number) : short.format(number);
}

/** A rate per second. Only small ones have decimals. */
export function rate(number) {
  return count(number < 100 ? number : Math.round(number));
}

/** A number with all digits. */
export function exact(number) {
  return number === undefined || number === null ? "–" : number.toLocaleString("en");
}

/** A count with its noun: "1 consumer", "2 consumers". */
export function plural(number, noun) {
  return `${exact(number)} ${number === 1 ? noun : `${noun}s`}`;
}

export function bytes(number) {
  if (number === undefined || number === null || Number.isNaN(number)) return "–";
  let unit = 0;
  while (number >= 1024 && unit < BYTE_UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(number) : number.toFixed(number < 10 ? 1 : 0)} ${BYTE_UNITS[unit]}`;
}

export function percent(number) {
  return number === undefined || Number.isNaN(number) ? "–" : `${plain.format(number)} %`;
}

/** A duration in microseconds. */
export function micros(number) {
  if (number === undefined || number === null || Number.isNaN(number)) return "–";
  if (number < 1000) return `${Math.round(number)} µs`;
  return number < 1_000_000 ? `${plain.format(number / 1000)} ms` : `${plain.format(number / 1_000_000)} s`;
}

/** A duration in nanoseconds, as in JetStream's configuration. 0 is not set. */
export function nanos(number) {
  return number ? seconds(number / 1e9) : "–";
}

export function seconds(number) {
  if (number < 1) return micros(number * 1e6);
  const days = Math.floor(number / 86_400);
  const hours = Math.floor((number % 86_400) / 3600);
  const minutes = Math.floor((number % 3600) / 60);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${Math.floor(number % 60)} s` : `${plain.format(number)} s`;
}

/** A timestamp in the local time zone. */
export function moment(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1971) return "–";
  const pad = (number, digits = 2) => `${number}`.padStart(digits, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return `${day} ${time}.${pad(date.getMilliseconds(), 3)}`;
}

/** The time since a timestamp. */
export function ago(text) {
  const passed = (Date.now() - new Date(text).getTime()) / 1000;
  if (Number.isNaN(passed)) return "–";
  return passed < 1 ? "just now" : `${seconds(Math.floor(passed))} ago`;
}
