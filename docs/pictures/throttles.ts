import { setImmediate as nextTurn } from "node:timers/promises"
import type { Throttle } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/fetch"
import { type Times, timeAxis, xOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, curve, dot, type Point, text } from "./draw.ts"

const RULE = { limit: 5, window: "5 seconds", algorithm: "token-bucket" } as const
const MOST_WAITING = 3
/** The throttles by their names in the picture. */
export const THROTTLES = {
  hard: { kind: "hard" },
  "soft, percent: 40": { kind: "soft", percent: 40 },
  "elastic, ceiling: 9": { kind: "elastic", ceiling: 9, signal: () => true },
  [`queue, maxWaiting: ${MOST_WAITING}`]: { kind: "queue", maxWaiting: MOST_WAITING },
} as const satisfies Readonly<Record<string, Throttle>>
/** The burst. */
const ARRIVALS_MS = Array.from({ length: 12 }, (_, i) => 600 + i * 200)
const STEP_MS = 50
const TIMES: Times = { endMs: 7_000, everyMs: 1_000, label: (atMs) => `${atMs / 1_000} s` }
const LANE_HEIGHT = 54
const AREA: Area = { x: 200, y: 12, width: 496, height: 4 * LANE_HEIGHT }

/** A request: when it arrived, when its response came, and which one. */
export interface Outcome {
  readonly atMs: number
  readonly endMs: number
  readonly result: "admitted" | "above" | "refused"
}

/** Sends the burst to a limiter with this throttle, as a server does. Returns the outcomes as they come. */
export async function runThrottle(throttle: Throttle): Promise<readonly Outcome[]> {
  const clock = manualClock(0)
  const limit = rateLimit({ ...RULE, throttle, clock, clientAddress: () => "192.0.2.1" })
  const handler = limit.wrap((request) => {
    const isAbove = limit.limiter.decisionOn(request)?.overLimit === true
    return new Response(isAbove ? "above" : "admitted")
  })
  const outcomes: Outcome[] = []
  async function send(atMs: number): Promise<void> {
    const response = await handler(new Request("http://localhost/"), undefined)
    const endMs = clock.now()
    const result = response.ok ? ((await response.text()) as "above" | "admitted") : "refused"
    outcomes.push({ atMs, endMs, result })
  }
  for (; clock.now() < TIMES.endMs; clock.advance(STEP_MS)) {
    if (ARRIVALS_MS.includes(clock.now())) void send(clock.now())
    await nextTurn()
  }
  await limit.limiter.close()
  return outcomes
}

/** Draws one burst under each throttle. */
export async function drawThrottles(): Promise<Diagram> {
  const names = Object.keys(THROTTLES)
  const runs = await Promise.all(Object.values<Throttle>(THROTTLES).map(runThrottle))
  const admitted = runs.map((outcomes) => outcomes.filter(({ result }) => result !== "refused").length)
  const description =
    `A burst of ${ARRIVALS_MS.length} requests, with a limit of ${RULE.limit} in ${RULE.window} that refills evenly. ` +
    `${names.map((name, row) => `${name}: ${admitted[row]} are admitted`).join("; ")}. In the queue, requests wait.`
  const key = (x: number, words: string): string =>
    text([x + 12, AREA.y + AREA.height + 46], words, { anchor: "start" })
  const keyDot = (x: number): Point => [x, AREA.y + AREA.height + 42]
  return diagram("throttles.svg", { title: "One burst under each throttle", description, height: 284 }, [
    ...timeAxis(AREA, TIMES),
    ...runs.flatMap((outcomes, row) =>
      drawLane(outcomes, AREA.y + 18 + row * LANE_HEIGHT, names[row] ?? "", admitted[row] ?? 0),
    ),
    dot(keyDot(204), "good") + key(204, "admitted"),
    dot(keyDot(296), "goal") + key(296, "above the limit"),
    dot(keyDot(424), "refused", { isHollow: true }) + key(424, "refused"),
    curve([keyDot(500), keyDot(520)], "goal") + key(516, "waits until admitted"),
  ])
}

function drawLane(outcomes: readonly Outcome[], y: number, name: string, admitted: number): string[] {
  let waiting = 0
  return [
    text([24, y], name, { anchor: "start", isStrong: true }),
    text([24, y + 18], `${admitted} of ${outcomes.length} admitted`, { anchor: "start" }),
    ...outcomes.map(({ atMs, endMs, result }) => {
      const [from, to] = [xOf(atMs, AREA, TIMES), xOf(endMs, AREA, TIMES)]
      if (result === "refused") return dot([to, y + 20], "refused", { isHollow: true })
      const look = result === "above" ? "goal" : "good"
      if (endMs === atMs) return dot([to, y - 4], look)
      const lineY = y - 4 + 6 * (waiting++ % MOST_WAITING)
      return (
        curve(
          [
            [from, lineY],
            [to, lineY],
          ],
          "goal",
        ) + dot([to, lineY], look)
      )
    }),
  ]
}
