import fc from "fast-check"

/**
 * A wrong value with a name that a failing test can print. `make` returns a new value each time, because some values
 * can be used only once.
 */
export interface Odd {
  readonly name: string
  readonly make: () => unknown
}

/** An error that unreadable values throw. The error belongs to the caller, so Sluice may pass it on unchanged. */
export class ReadingFailed extends Error {}

const ignore = (): void => undefined

function fail(): never {
  throw new ReadingFailed("this value cannot be read")
}

function promise(settled: "resolved" | "rejected" | "pending"): Promise<unknown> {
  if (settled === "pending") return new Promise(ignore)
  const made = settled === "resolved" ? Promise.resolve({ limit: 5 }) : Promise.reject(new ReadingFailed())
  made.catch(ignore)
  return made
}

/** Returns a proxy that throws on every operation. */
function unreadable(target: object): object {
  return new Proxy(target, new Proxy({}, { get: () => fail }))
}

function circular(): object {
  const list: unknown[] = []
  const made = { list, limit: 5, rules: list }
  list.push(made, list)
  return Object.assign(made, { self: made })
}

const VALUES: Readonly<Record<string, () => unknown>> = {
  null: () => null,
  undefined: () => undefined,
  true: () => true,
  zero: () => 0,
  "negative zero": () => -0,
  "a fraction": () => 1.5,
  "a negative number": () => -1,
  "a huge number": () => 2 ** 60,
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "a bigint": () => 5n,
  "a symbol": () => Symbol("odd"),
  "an empty string": () => "",
  "a string": () => "odd",
  "a lone surrogate": () => "\ud800",
  "the string __proto__": () => "__proto__",
  "the string constructor": () => "constructor",
  "a long string": () => "x".repeat(5_000),
  "a function": () => ignore,
  "a function that throws": () => fail,
  "an async function": () => async () => 5,
  "a class": () => class Odd {},
  "a resolved promise": () => promise("resolved"),
  "a rejected promise": () => promise("rejected"),
  "a pending promise": () => promise("pending"),
  // biome-ignore lint/suspicious/noThenProperty: `await` waits for any thenable
  "a thenable": () => ({ then: ignore }),
  "an empty list": () => [],
  "a list of holes": () => new Array(3),
  // biome-ignore lint/suspicious/noSparseArray: the hole is the wrong input
  "a list with a hole": () => [, { limit: 5, window: "1m", field: "ip" }],
  "a list of nulls": () => [null, undefined],
  "a list of promises": () => [promise("resolved"), promise("rejected")],
  "a list of symbols": () => [Symbol("odd"), 5n],
  "an empty object": () => ({}),
  "an object without a prototype": () => Object.create(null),
  "a circular object": circular,
  "an object that cannot be converted": () => ({ toJSON: fail, toString: fail, [Symbol.toPrimitive]: fail }),
  "a date": () => new Date(0),
  "an invalid date": () => new Date(Number.NaN),
  "a map": () => new Map([["limit", 5]]),
  "a regular expression": () => /odd/,
  "an error": () => new Error("odd"),
  bytes: () => new Uint8Array(3),
  "a URL": () => new URL("http://localhost"),
  "an unreadable object": () => unreadable({}),
  "an unreadable list": () => unreadable([]),
  "an unreadable function": () => unreadable(ignore),
}

/** Wrong values of every kind. */
export const anyOdd: fc.Arbitrary<Odd> = fc
  .constantFrom(...Object.entries(VALUES))
  .map(([name, make]) => ({ name, make }))

/** Generates only this value. */
export function exactly(name: string, make: () => unknown): fc.Arbitrary<Odd> {
  return fc.constant({ name, make })
}

/**
 * Objects that have one to four of the members, each wrong or behind a getter that throws. Half of these objects
 * contain all members of `good`.
 */
export function oddObject(members: readonly string[], good: object = {}): fc.Arbitrary<Odd> {
  const value = fc.option(anyOdd, { freq: 6, nil: undefined })
  const chosen = fc.dictionary(fc.constantFrom(...members), value, { minKeys: 1, maxKeys: 4 })
  return fc.tuple(chosen, fc.boolean()).map(([odd, isComplete]) => ({
    name: nameOf(odd, isComplete),
    make() {
      const made = isComplete ? { ...good } : {}
      for (const [name, member] of Object.entries(odd)) {
        const property = member === undefined ? { get: fail } : { value: member.make() }
        Object.defineProperty(made, name, { ...property, enumerable: true, configurable: true })
      }
      return made
    },
  }))
}

function nameOf(odd: Readonly<Record<string, Odd | undefined>>, isComplete: boolean): string {
  const members = Object.entries(odd).map(([name, value]) => `${name}: ${value?.name ?? "a throwing getter"}`)
  return `{ ${[...(isComplete ? ["...good"] : []), ...members].join(", ")} }`
}

/** Generates wrong values for a parameter that accepts an object with these members, or a list of such objects. */
export function oddFor(members: readonly string[], good: object = {}): fc.Arbitrary<Odd> {
  const object = oddObject(members, good)
  const list = fc.array(fc.oneof(object, anyOdd), { minLength: 1, maxLength: 3 }).map((each) => ({
    name: `[${each.map(({ name }) => name).join(", ")}]`,
    make: () => each.map(({ make }) => make()),
  }))
  return fc.oneof(
    { weight: 2, arbitrary: anyOdd },
    { weight: 4, arbitrary: object },
    { weight: 1, arbitrary: list },
  )
}

/** Generates calls in which each argument is wrong or, less often, right. */
export function argument(odd: fc.Arbitrary<Odd>, right: fc.Arbitrary<Odd>): fc.Arbitrary<Odd> {
  return fc.oneof({ weight: 3, arbitrary: odd }, { weight: 1, arbitrary: right })
}

/** Generates any wrong value or, less often, the right value. */
export function anyOr(name: string, make: () => unknown): fc.Arbitrary<Odd> {
  return argument(anyOdd, exactly(name, make))
}
