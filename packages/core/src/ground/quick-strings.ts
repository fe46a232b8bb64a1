/** Number of calls. After about ten, V8 records where a function finds a method (its feedback vector). */
const ENOUGH_CALLS = 100

/**
 * Makes string methods fast in this process, permanently.
 *
 * ioredis 6 has a class that extends String, which turns String.prototype into a dictionary. From then on, compiled
 * code looks up `charCodeAt` and similar methods at every call. A short loop, such as one that hashes a key, takes
 * three to five times as long. V8 makes the prototype fast again when a method is found through an object that inherits
 * from it (`JSObject::MakePrototypesFast`). This does not happen by itself in Node 20, 22 and 24.
 */
export function makeStringsQuick(prototype: object = String.prototype): void {
  const heir = Object.create(prototype) as string
  for (let i = 0; i < ENOUGH_CALLS; i++) methodOf(heir)
}

function methodOf(text: string): unknown {
  return text.charCodeAt
}
