/** V8 keeps in mind where a function has found a method once it has been called some ten times (its feedback vector). */
const ENOUGH_CALLS = 100

/**
 * Makes methods of strings quick in this process, for good. ioredis 6 has a class that extends String, which turns
 * String.prototype into a dictionary: from then on compiled code looks up `charCodeAt` and the like at every call, and a short
 * loop, as names or hashes a key, takes three to five times as long. V8 makes it quick where a method is found through an object that inherits from it
 * (`JSObject::MakePrototypesFast`), which nothing does by itself; so in Node 20, 22 and 24.
 */
export function makeStringsQuick(prototype: object = String.prototype): void {
  const heir = Object.create(prototype) as string
  for (let i = 0; i < ENOUGH_CALLS; i++) methodOf(heir)
}

function methodOf(text: string): unknown {
  return text.charCodeAt
}
