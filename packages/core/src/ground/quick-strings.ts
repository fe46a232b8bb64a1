/**
 * Number of calls. After about ten calls, V8 records in which object a function finds a method (in its feedback
 * vector).
 */
const ENOUGH_CALLS = 100

/**
 * Makes string methods fast in this process, permanently.
 *
 * ioredis 6 has a class that extends String, which turns String.prototype into a dictionary. From then on, compiled
 * code must look up `charCodeAt` and similar methods with every call. A short loop, such as one that hashes a key,
 * takes three to five times as long. V8 makes the prototype fast again when a method is found through an object that
 * inherits from it (`JSObject::MakePrototypesFast`). In Node 20, 22 and 24, V8 does not do this without such an
 * object.
 */
export function makeStringsQuick(prototype: object = String.prototype): void {
  const heir = Object.create(prototype) as string
  for (let i = 0; i < ENOUGH_CALLS; i++) methodOf(heir)
}

function methodOf(text: string): unknown {
  return text.charCodeAt
}
