import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ledgerHolder, modelHolder } from "./permits/holders.ts"
import { ForgetfulServer, PART_MS, Server } from "./permits/server.ts"
import { type Fate, type NewHolder, World } from "./permits/world.ts"
import { examples } from "./test-length.ts"

// Histories of several processes that hold permits of one counter, with lost messages, crashes, freezes and a clock that
// steps back. `World` states the bounds, which are compared after each event.

type Step =
  | { readonly kind: "ask"; readonly process: number; readonly requests: number; readonly forMs: number }
  | { readonly kind: "freeze"; readonly process: number; readonly forMs: number }
  | { readonly kind: "crash"; readonly process: number; readonly point: number }
  | { readonly kind: "back"; readonly ms: number }

interface History {
  readonly limit: number
  readonly points: readonly number[]
  readonly fates: readonly Fate[]
  readonly deadlineMs: number
  readonly steps: readonly (readonly [afterMs: number, step: Step])[]
}

const process = fc.nat(3)
const point = fc.double({ min: 0, max: 1, noNaN: true })

const fate: fc.Arbitrary<Fate> = fc.record({
  thereMs: fc.oneof({ weight: 9, arbitrary: fc.nat(30) }, { weight: 1, arbitrary: fc.nat(2 * PART_MS) }),
  backMs: fc.oneof({ weight: 9, arbitrary: fc.nat(30) }, { weight: 1, arbitrary: fc.nat(2 * PART_MS) }),
  end: fc.oneof(
    { weight: 12, arbitrary: fc.constant("well" as const) },
    { weight: 3, arbitrary: fc.constantFrom("request-lost", "reply-lost", "refused") },
  ),
})

const asks = fc.record({
  kind: fc.constant("ask" as const),
  process,
  requests: fc.integer({ min: 1, max: 4 }),
  forMs: fc.oneof(fc.nat(PART_MS / 2), fc.nat(8 * PART_MS)),
})
const failures = fc.oneof(
  fc.record({
    kind: fc.constant("freeze" as const),
    process,
    forMs: fc.oneof(fc.nat(PART_MS), fc.nat(5 * PART_MS)),
  }),
  fc.record({ kind: fc.constant("crash" as const), process, point }),
)
const back = fc.record({
  kind: fc.constant("back" as const),
  ms: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 20 * PART_MS })),
})

function histories({ stepsBack }: { readonly stepsBack: boolean }): fc.Arbitrary<History> {
  const step = fc.oneof(
    { weight: 12, arbitrary: asks },
    { weight: 2, arbitrary: failures },
    ...(stepsBack ? [{ weight: 1, arbitrary: back }] : []),
  )
  return fc.record({
    limit: fc.integer({ min: 1, max: 8 }),
    points: fc.array(point, { minLength: 2, maxLength: 4 }),
    fates: fc.array(fate, { minLength: 20, maxLength: 60 }),
    deadlineMs: fc.constantFrom(150, 667, 3 * PART_MS),
    steps: fc.array(fc.tuple(fc.nat(PART_MS / 2), step), { minLength: 20, maxLength: 80, size: "max" }),
  })
}

/** Plays a history. Returns the number of granted permits. Rejects if a bound does not hold. */
async function play(server: Server, create: NewHolder, { steps, ...options }: History): Promise<number> {
  const world = new World(server, create, options)
  for (const [afterMs, step] of steps) {
    await world.pass(afterMs)
    if (step.kind === "ask") for (let i = 0; i < step.requests; i++) world.ask(step.process, step.forMs)
    else if (step.kind === "freeze") world.freeze(step.process, step.forMs)
    else if (step.kind === "crash") world.crash(step.process, step.point)
    else world.stepBack(step.ms)
  }
  await world.pass(PART_MS)
  await world.endAll()
  return world.granted
}

describe.each([
  ["the rules of the design", modelHolder()],
  ["the ledger of a limiter", ledgerHolder],
] as const)("permits of processes that follow %s", (_name, create) => {
  it.each([
    ["and extra counts are explained, while messages are lost and processes crash or freeze", false],
    ["soon after the server's clock has stepped back", true],
  ])("are bounded, %s", async (_when, stepsBack) => {
    let granted = 0
    await fc.assert(
      fc.asyncProperty(histories({ stepsBack }), async (history) => {
        granted += await play(new Server(), create, history)
      }),
      { numRuns: examples(300, 3_000) },
    )
    expect(granted).toBeGreaterThan(1_000)
  })
})

describe("the bounds of permits notice", () => {
  const wrong = async (server: () => Server, create: NewHolder) =>
    fc.check(
      fc.asyncProperty(histories({ stepsBack: false }), async (history) => {
        await play(server(), create, history)
      }),
      { numRuns: 50, endOnFailure: true },
    )

  it.each([
    [
      "a server on which ended permits still take permits of others",
      () => new ForgetfulServer(),
      modelHolder(),
      "B2",
    ],
    [
      "a process that believes in a renewal without its reply",
      () => new Server(),
      modelHolder("believes-without-reply"),
      "B2",
    ],
    [
      "a process that releases permits during their renewal",
      () => new Server(),
      modelHolder("releases-during-renewal"),
      "B6",
    ],
  ] as const)("%s", async (_what, server, create, bound) => {
    const { failed, errorInstance } = await wrong(server, create)
    expect([failed, (errorInstance as Error).message.slice(0, 2)]).toEqual([true, bound])
  })
})
