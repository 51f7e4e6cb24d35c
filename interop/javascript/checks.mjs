// Checks of what a case receives.

// Guards against hanging; it is not an expected time.
export const MILLISECONDS_MAX = 30_000;

export const numbers = (count) => Array.from({ length: count }, (_, n) => n);

export function equal(found, wanted, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: found ${a}, wanted ${b}`.slice(0, 600));
}

export function check(condition, why) {
  if (!condition) throw new Error(why);
}

export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what}`)), MILLISECONDS_MAX);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export async function rejects(promise, what) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`${what} was not refused`);
}
