import { createLimiter, type Rule } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type Times, timeAxis, xOf, yOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, box, gridLine, text } from "./draw.ts"

const MINUTE_MS = 60_000
/** The lengths of blocks, from the lowest step, with their minutes. */
const STEPS = { "1 minute": 1, "10 minutes": 10, "1 hour": 60 } as const
/** The rule of the run. A test compares it with the page that shows the picture. */
export const GROWING = {
  limit: 10,
  window: "1 minute",
  penalty: { refusals: 20, within: "5 minutes", for: Object.keys(STEPS) },
} as const satisfies Partial<Rule>
const ASKS_EVERY_MS = 1_000
const PAUSE_MS = 10 * MINUTE_MS
const AREA: Area = { x: 108, y: 24, width: 588, height: 132 }
const TIMES: Times = {
  endMs: 93 * MINUTE_MS,
  everyMs: 30 * MINUTE_MS,
  label: (atMs) => (atMs === 0 ? "0" : `${atMs / MINUTE_MS} min`),
}

/** A block of the client: when it begins, and its length. */
export interface Block {
  readonly atMs: number
  readonly forMs: number
}

/** Runs a client that asks every second, except for a pause after its first block of an hour. Returns its blocks. */
export async function runPenalty(): Promise<readonly Block[]> {
  const clock = manualClock()
  const limiter = createLimiter({ ...GROWING, clock })
  const blocks: Block[] = []
  let asksAgainMs = 0
  for (let atMs = 0; atMs < TIMES.endMs; atMs += ASKS_EVERY_MS, clock.advance(ASKS_EVERY_MS)) {
    if (atMs < asksAgainMs) continue
    const { refusal, retryAfterMs: forMs } = await limiter.decide({ remoteAddress: "192.0.2.1" })
    if (refusal !== "penalty") continue
    blocks.push({ atMs, forMs })
    // Its requests during a block change nothing.
    asksAgainMs = atMs + forMs + (blocks.length === GROWING.penalty.for.length ? PAUSE_MS : 0)
  }
  await limiter.close()
  return blocks
}

/** Draws the blocks of a client that does not stop, and of the same client after a pause. */
export async function drawPenalty(): Promise<Diagram> {
  const blocks = await runPenalty()
  const lengths = Object.values<number>(STEPS)
  const y = (level: number): number => yOf(level, AREA, lengths.length)
  const minutes = blocks.map(({ forMs }) => forMs / MINUTE_MS)
  const longest = blocks[lengths.length - 1] as Block
  const pauseX = xOf(longest.atMs + longest.forMs + PAUSE_MS / 2, AREA, TIMES)
  const pauseMinutes = PAUSE_MS / MINUTE_MS
  const growing = minutes.slice(0, lengths.length).join(", then ")
  const description =
    `A client that asks every second is blocked for ${growing} minutes. After a pause of ${pauseMinutes} minutes, which is two ` +
    `steps down, its next block lasts ${minutes.at(-1)} minutes.`
  return diagram("penalty.svg", { title: "Blocks that grow", description, height: 200 }, [
    ...timeAxis(AREA, TIMES),
    ...["not blocked", ...Object.keys(STEPS)].flatMap((name, level) => [
      gridLine([AREA.x, y(level)], [AREA.x + AREA.width, y(level)]),
      text([AREA.x - 10, y(level) + 4], name, { anchor: "end" }),
    ]),
    ...blocks.map(({ atMs, forMs }, at) => {
      const top = y(lengths.indexOf(minutes[at] ?? 0) + 1)
      const x = xOf(atMs, AREA, TIMES)
      const area = { x, y: top, width: xOf(atMs + forMs, AREA, TIMES) - x, height: y(0) - top }
      return box(area, "refused", [], forMs === longest.forMs ? ["blocked, whatever it sends"] : [])
    }),
    text([pauseX, y(1.5) - 4], "pauses"),
    text([pauseX, y(1.5) + 14], `${pauseMinutes} min`),
  ])
}
