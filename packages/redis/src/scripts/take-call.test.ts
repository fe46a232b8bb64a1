import { StoreUnavailableError } from "@sluice/core"
import { algorithmOf, type Check, type CounterState, type Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { FIRST_HIT as POLICY } from "../testing/first-hit.ts"
import type { RedisRequest } from "./script-input.ts"
import { TakeCall } from "./take-call.ts"

const FIVE: Policy = { ...POLICY, limit: 5 }
const NOW_MS = 1_700_000_000_000
const SERVER_TIME = { nowMs: undefined, untilMs: undefined, isWide: false }

function check(partition: string, cost = 1, more: Partial<Check> = {}): Check {
  return { policy: POLICY, partition, cost, shadow: false, ...more }
}

/** A request whose keys are its partitions. */
function asked(...checks: Check[]): RedisRequest {
  return { checks, keys: checks.map(({ partition }) => partition) }
}

function callOf(requests: readonly RedisRequest[]): TakeCall {
  const call = new TakeCall()
  for (const one of requests) call.add(one)
  return call
}

/** Returns the script's own numbers, which follow the time and the policies. */
function entriesOf(call: TakeCall, policies = 1): readonly number[] {
  return (JSON.parse(call.args(SERVER_TIME)[0] as string) as number[]).slice(4 + 4 * policies)
}

function state(current: number): string {
  return `w:${NOW_MS - 1_000}:0:${current}`
}

/** Returns whether each request was granted and, for each check, the counter's state and the units taken. */
function told(call: TakeCall, reply: unknown): unknown {
  return call
    .read(reply)
    .answers?.map(
      (answer) => answer && [answer.granted, ...answer.checks.map((one) => [one?.state.current, one?.taken])],
    )
}

describe("a take call", () => {
  const a = asked(check("a"))
  const b = asked(check("b"))
  const both = asked(check("a"), check("b"))
  const counting = asked(check("a", 1, { policy: { ...POLICY, countRejected: true } }))
  const block = asked(check("a", 1, { policy: { ...POLICY, algorithm: "penalty" } }))

  it.each<{ what: string; requests: RedisRequest[]; keys: string[]; entries: number[] }>([
    { what: "sends one request as one entry", requests: [a], keys: ["a"], entries: [1, 1, 1, 1, 1] },
    { what: "merges equal requests", requests: [a, a, a], keys: ["a"], entries: [1, 3, 1, 1, 1] },
    {
      what: "merges equal requests across requests with other keys",
      requests: [a, b, a],
      keys: ["a", "b"],
      entries: [2, 2, 1, 1, 1, 1, 1, 1, 1],
    },
    {
      what: "groups requests that differ only in the key",
      requests: [a, b, a, b],
      keys: ["a", "b"],
      entries: [1, 2, 2, 1, 1],
    },
    {
      what: "does not merge requests whose refusals count, but groups them",
      requests: [counting, counting, counting],
      keys: ["a", "a", "a"],
      entries: [1, 1, 3, 1, 1],
    },
    {
      what: "does not merge requests of a penalty, which has a state for each refusal",
      requests: [block, block],
      keys: ["a", "a"],
      entries: [1, 1, 2, 1, 1],
    },
    {
      what: "does not merge requests of one client with different counters",
      requests: [
        { ...a, keys: ["0 a"] },
        { ...asked(check("a", 1, { policy: { ...POLICY, counter: "counter1" } })), keys: ["1 a"] },
      ],
      keys: ["0 a", "1 a"],
      entries: [1, 1, 2, 1, 1],
    },
    {
      what: "does not merge requests of one client across a request with another counter",
      requests: [
        a,
        b,
        { ...asked(check("a", 1, { policy: { ...POLICY, counter: "counter1" } })), keys: ["1 a"] },
        b,
        a,
      ],
      keys: ["a", "b", "1 a", "a"],
      entries: [3, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1],
    },
    {
      what: "does not merge requests across a request with another cost",
      requests: [a, asked(check("a", 2)), a],
      keys: ["a", "a", "a"],
      entries: [3, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1],
    },
    {
      what: "does not merge requests across a request with several checks",
      requests: [a, both, b, a],
      keys: ["a", "a", "b", "b", "a"],
      entries: [3, 1, 1, 1, 1, 0, 2, 1, 1, 1, 0, 1, 1, 0, 1, 2, 1, 1],
    },
    {
      what: "merges equal requests after a request with several checks",
      requests: [both, b, b],
      keys: ["a", "b", "b"],
      entries: [2, 0, 2, 1, 1, 1, 0, 1, 1, 0, 2, 1, 1, 1],
    },
    {
      what: "does not merge requests with several checks, but groups them",
      requests: [both, both],
      keys: ["a", "b", "a", "b"],
      entries: [1, 0, 2, 2, 1, 1, 0, 1, 1, 0],
    },
    {
      what: "does not group requests whose checks differ in number, cost or shadow",
      requests: [
        both,
        asked(check("a"), check("b"), check("c")),
        asked(check("a"), check("b", 2)),
        asked(check("a"), check("b", 2, { shadow: true })),
      ],
      keys: ["a", "b", "a", "b", "c", "a", "b", "a", "b"],
      entries: [
        ...[4, 0, 2, 1, 1, 1, 0, 1, 1, 0],
        ...[0, 3, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0],
        ...[0, 2, 1, 1, 1, 0, 1, 2, 0],
        ...[0, 2, 1, 1, 1, 0, 1, 2, 1],
      ],
    },
    {
      what: "does not merge a shadow check with a real check",
      requests: [a, asked(check("a", 1, { shadow: true }))],
      keys: ["a", "a"],
      entries: [1, 1, 2, 1, 1],
    },
    {
      what: "marks which of several checks are shadow checks",
      requests: [asked(check("a", 3, { shadow: true }), check("b", 0))],
      keys: ["a", "b"],
      entries: [1, 0, 2, 1, 1, 3, 1, 1, 0, 0],
    },
  ])("$what", ({ requests, keys, entries }) => {
    const call = callOf(requests)
    expect([call.keys, entriesOf(call)]).toEqual([keys, entries])
  })

  it("does not count the refusals of a shadow check", () => {
    const policy: Policy = { ...POLICY, countRejected: true }
    const args = (shadow: boolean) => callOf([asked(check("a", 1, { policy, shadow }))]).args(SERVER_TIME)
    expect(args(false)).toEqual(["[-1,0,0,1,19,10,60000,0,1,1,1,1,1]"])
    expect(args(true)).toEqual(["[-1,0,0,1,3,10,60000,0,1,1,1,1,1]"])
  })

  it("contains at most 64 entries, and more requests only if they are merged into an entry", () => {
    const call = callOf(Array.from({ length: 63 }, (_, i) => asked(check(`${i}`))))
    const both = asked(check("a"), check("b"))
    expect([call.add(both), call.add(both), call.add(asked(check("c")))]).toEqual([true, false, false])
    expect([call.add(asked(check("7"))), call.add(asked(check("7", 2)))]).toEqual([true, false])
    const answers = call.read([NOW_MS, ...call.keys.map(() => state(1))]).answers
    expect([call.keys.length, answers?.length]).toEqual([65, 65])
  })

  it("contains at most 256 keys, or one entry with more keys", () => {
    const hundred = (name: string) => asked(...Array.from({ length: 100 }, (_, i) => check(`${name}${i}`)))
    const call = callOf([hundred("a"), hundred("b")])
    const rest = asked(...hundred("d").checks.slice(0, 56))
    expect([hundred("c"), rest, asked(check("e"))].map((one) => call.add(one))).toEqual([false, true, false])
    expect(
      new TakeCall().add(asked(...hundred("a").checks, ...hundred("b").checks, ...rest.checks, check("e"))),
    ).toBe(true)
  })

  it("does not merge two requests if a request with another limit on the same counter is between them", () => {
    const call = callOf([a, asked(check("a", 1, { policy: FIVE })), a])
    expect([call.keys, entriesOf(call, 2)]).toEqual([
      ["a", "a", "a"],
      [3, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1],
    ])
  })
})

describe("a reply", () => {
  const a = asked(check("a", 2))

  it("that contains only a time means that the call came too late", () => {
    expect(callOf([a]).read([NOW_MS])).toEqual({ nowMs: NOW_MS, answers: undefined })
  })

  it("to merged requests of a log is split into the entries up to each request", () => {
    const policy: Policy = { ...POLICY, algorithm: "sliding-log" }
    const { at, withUnits } = algorithmOf(policy)
    const states = [2, 4, 6].map((units) => withUnits(at(undefined, policy, NOW_MS), policy, units, NOW_MS))
    const { startMs, previous, current, parts } = states[2] as CounterState
    const one = asked(check("a", 2, { policy }))
    const { answers } = callOf([one, one, one]).read([NOW_MS, `w:${startMs}:${previous}:${current}:${parts}`])
    expect(answers?.map((answer) => answer?.checks[0]?.state)).toEqual(states)
  })

  it("to merged requests of a strict window is split into each request's own count", () => {
    const policy: Policy = { ...POLICY, algorithm: "sliding-window-strict", align: "epoch", buckets: 60 }
    const one = asked(check("a", 2, { policy }))
    const code = ((NOW_MS / 1_000) % 511) + 1
    expect(told(callOf([one, one, one]), [NOW_MS, code * 2 ** 44 + 3 * 2 ** 35 + 9])).toEqual([
      [true, [5, 2]],
      [true, [7, 2]],
      [true, [9, 2]],
    ])
  })

  it.each<{ what: string; requests: RedisRequest[]; reply: unknown[]; expected: unknown }>([
    {
      what: "to merged requests gives each request its own count",
      requests: [a, a, a],
      reply: [state(8)],
      expected: [
        [true, [4, 2]],
        [true, [6, 2]],
        [true, [8, 2]],
      ],
    },
    {
      what: "to merged requests grants the first requests that fit",
      requests: [a, a, a],
      reply: [state(10), 1, 1],
      expected: [
        [true, [10, 2]],
        [false, [10, 0]],
        [false, [10, 0]],
      ],
    },
    {
      what: "to merged requests may grant none of them",
      requests: [a, a],
      reply: [state(9), 1, 0],
      expected: [
        [false, [9, 0]],
        [false, [9, 0]],
      ],
    },
    {
      what: "grants a shadow check even if it took nothing",
      requests: [asked(check("a", 2, { shadow: true })), asked(check("a", 2, { shadow: true }))],
      reply: [state(10), 1, 1],
      expected: [
        [true, [10, 2]],
        [true, [10, 0]],
      ],
    },
    {
      what: "identifies a refused request by the place of its key",
      requests: [asked(check("a")), asked(check("b")), asked(check("c"))],
      reply: [state(1), state(10), state(3), 2, 0],
      expected: [
        [true, [1, 1]],
        [false, [10, 0]],
        [true, [3, 1]],
      ],
    },
    {
      what: "to several checks returns the units that each check took",
      requests: [asked(check("a", 2), check("b", 3))],
      reply: [state(2), state(3)],
      expected: [[true, [2, 2], [3, 3]]],
    },
    {
      what: "to several checks may report that a shadow check took no units",
      requests: [asked(check("a", 2), check("b", 3, { shadow: true }))],
      reply: [state(2), state(9), 2, 0],
      expected: [[true, [2, 2], [9, 0]]],
    },
    {
      what: "refuses a request with several checks as a whole",
      requests: [asked(check("a", 2), check("b", 3)), asked(check("c"))],
      reply: [state(0), state(9), state(1), 1, 0, 2, 0],
      expected: [
        [false, [0, 0], [9, 0]],
        [true, [1, 1]],
      ],
    },
    {
      what: "contains no result for a request if one of its keys has no valid counter",
      requests: [a, asked(check("b"), check("c")), asked(check("d"))],
      reply: [0, state(1), 0, state(4), 1, 0, 2, 0, 3, 0],
      expected: [undefined, undefined, [true, [4, 1]]],
    },
  ])("$what", ({ requests, reply, expected }) => {
    expect(told(callOf(requests), [NOW_MS, ...reply])).toEqual(expected)
  })

  it.each<{ what: string; reply: unknown }>([
    { what: "is not a list", reply: "OK" },
    { what: "is an empty list", reply: [] },
    { what: "contains no time", reply: ["x", state(1)] },
    { what: "contains too few states", reply: [NOW_MS, state(1)] },
    { what: "contains a place without a number of times", reply: [NOW_MS, state(1), state(2), 1] },
    { what: "contains an invalid place", reply: [NOW_MS, state(1), state(2), "x", 0] },
    { what: "contains a negative number of times", reply: [NOW_MS, state(1), state(2), 1, -1] },
    { what: "contains an invalid state", reply: [NOW_MS, state(1), "rubbish"] },
  ])("is rejected if it $what", ({ reply }) => {
    const call = callOf([asked(check("a")), asked(check("b"))])
    expect(() => call.read(reply)).toThrow(StoreUnavailableError)
  })
})

describe("the fast path", () => {
  const limited = (limit = 10, windowMs = 60_000): Partial<Check> => ({
    policy: { ...POLICY, align: "epoch", limit, windowMs },
  })
  const strict = (more: Partial<Policy> = {}): Partial<Check> => ({
    policy: { ...POLICY, algorithm: "sliding-window-strict", buckets: 60, limit: 2 ** 17 - 1, ...more },
  })
  const SERVER = { nowMs: undefined, untilMs: 7, isWide: false }

  it("sends the policy, the deadline, the cost and the number of requests in base 64", () => {
    const call = callOf([asked(check("a", 2, limited())), asked(check("a", 2, limited()))])
    expect(call.args(SERVER)).toEqual(["2000>YP000:0000000007000202"])
    expect(call.args({ ...SERVER, nowMs: 5 })).toEqual(["2000>YP000:0000000007000202", "5"])
    expect(call.args({ ...SERVER, untilMs: undefined })).toEqual(["2000>YP000:0000000000000202"])
    const late = { ...SERVER, untilMs: 2 ** 48 - 2 }
    expect(call.args(late)).toEqual(["2000>YP000:00ooooooon000202"])
    const sliding: Partial<Check> = { policy: { ...POLICY, algorithm: "sliding-window" } }
    expect(callOf([asked(check("a", 1, sliding))]).args(SERVER)).toEqual(["1000>YP000:0000000007000101"])
    const ofStrict = callOf([asked(check("a", 3, strict()))]).args(SERVER)
    expect(ofStrict).toEqual(["8000>YP0Ooo0l00000007000301"])
  })

  it.each([
    {
      what: "the server's time",
      time: { ...SERVER, untilMs: NOW_MS + 9 },
      reply: 10 * 2 ** 42 + (2 ** 20 - 1) * 2 ** 21 + 7,
    },
    {
      what: "a client that reads integers as strings",
      time: { ...SERVER, nowMs: NOW_MS },
      reply: `${2 ** 42 + 7}`,
    },
    { what: "a given time", time: { ...SERVER, nowMs: NOW_MS }, reply: 2 ** 42 + 7 },
    { what: "a deadline that is far from the current time", time: SERVER, reply: [NOW_MS, 7] },
  ])("accepts one integer or a list as its reply: $what", ({ time, reply }) => {
    const one = asked(check("a", 2, limited()))
    const sent = () => {
      const call = callOf([one, one])
      call.args(time)
      return call
    }
    expect(sent().read(reply).nowMs).toBe(NOW_MS)
    expect(told(sent(), reply)).toEqual([
      [true, [5, 2]],
      [true, [7, 2]],
    ])
  })

  it.each(["OK", -1, 1.5, 7, 2 ** 42, null, undefined])("does not accept %s as its reply", (reply) => {
    const call = callOf([asked(check("a", 1, limited()))])
    call.args(SERVER)
    expect(() => call.read(reply)).toThrow(StoreUnavailableError)
  })

  it("does not accept an integer as its reply if no time is known", () => {
    const call = callOf([asked(check("a", 1, limited()))])
    call.args({ ...SERVER, untilMs: undefined })
    expect(() => call.read(2 ** 42 + 7)).toThrow("Redis sent an invalid reply: 4398046511111.")
  })

  it.each<[string, Partial<Check>, number]>([
    ["the whole limit", limited(), 10],
    ["the whole limit of a strict window", strict({ limit: 10 }), 10],
    ["the most units and the longest window of the layout", limited(2 ** 20 - 1, 2 ** 32), 2 ** 20 - 1],
    ["the most units of the layout for a strict window", strict(), 2 ** 17 - 1],
  ])("is used for a take of %s", (_what, more, cost) => {
    expect(callOf([asked(check("a", cost, more))]).args(SERVER)).toEqual([
      expect.stringMatching(/^[0-o]{27}$/),
    ])
  })

  it("is not used for a part of a request, which is not merged with other requests either", () => {
    const one = asked(check("a", 1, strict({ limit: 9 })))
    const part: typeof one = { ...one, isPart: true }
    const argsOf = (...requests: readonly (typeof part)[]) => callOf(requests).args(SERVER)
    expect(argsOf(part)).toEqual(["[-1,7,0,1,40,9,60000,60,1,1,1,1,1]"])
    expect(argsOf(one, part)).toEqual(["[-1,7,0,2,8,9,60000,60,40,9,60000,60,2,1,1,1,1,1,1,2,1]"])
  })

  it.each([
    ["several keys", [asked(check("a", 1, limited())), asked(check("b", 1, limited()))], SERVER],
    ["several checks", [asked(check("a", 1, limited()), check("b", 1, limited()))], SERVER],
    ["a cost of 0", [asked(check("a", 0, limited()))], SERVER],
    ["a cost above the limit", [asked(check("a", 6, limited(5)))], SERVER],
    ["a limit above the layout's maximum", [asked(check("a", 1, limited(2 ** 20)))], SERVER],
    [
      "units above the layout's maximum",
      Array(3).fill(asked(check("a", 2 ** 19, limited(2 ** 20 - 1)))),
      SERVER,
    ],
    ["a window too long for exact counts", [asked(check("a", 1, limited(5, 2 ** 32 + 1)))], SERVER],
    ["a window that starts with the first request", [asked(check("a"))], SERVER],
    ["a given clock", [asked(check("a", 1, limited()))], { ...SERVER, isWide: true }],
    ["a strict limit above the layout's maximum", [asked(check("a", 1, strict({ limit: 2 ** 17 })))], SERVER],
    ["strict units above the layout's maximum", Array(2).fill(asked(check("a", 2 ** 16, strict()))), SERVER],
    ["a strict limit that may be exceeded", [asked(check("a", 1, strict({ limit: 9, extra: 1 })))], SERVER],
    ["a strict limit that counts refusals", [asked(check("a", 1, strict({ countRejected: true })))], SERVER],
  ])("is not used for a call with %s", (_what, requests, time) => {
    expect(callOf(requests).args(time)).toEqual([expect.stringMatching(/^\[/)])
  })
})
