import { type Diagram, diagram } from "./diagram.ts"
import { box, type Look, text } from "./draw.ts"
import { STORE_TIMEOUT_MS } from "./request.ts"

/** The failures in a row after which no request waits for Redis. */
export const FAILURES_TO_OPEN = 5
/** Seconds without a failure after which the store counts as recovered. */
export const RECOVERED_AFTER_S = 10

/** A row of the picture: what it shows, and its spans with their ends in pixels. */
type Lane = readonly [
  name: string,
  spans: readonly (readonly [from: number, to: number, look: Look, lines: readonly string[]])[],
]

const START = 152
const DOWN = 280
const OPEN = 410
const UP = 560
const END = 704

const LANES: readonly Lane[] = [
  [
    "Redis",
    [
      [START, DOWN, "good", ["answers"]],
      [DOWN, UP, "refused", ["does not answer"]],
      [UP, END, "good", ["answers"]],
    ],
  ],
  [
    "A request waits",
    [
      [START, DOWN, "good", ["for Redis"]],
      [DOWN, OPEN, "goal", [`at most ${STORE_TIMEOUT_MS} ms,`, `${FAILURES_TO_OPEN} times`]],
      [OPEN, UP, "good", ["not at all"]],
      [UP, END, "good", ["for Redis"]],
    ],
  ],
  [
    "Who counts",
    [
      [START, DOWN, "good", ["all processes", "together"]],
      [DOWN, UP, "goal", ["each process alone,", "within its share"]],
      [UP, END, "good", ["all processes", "together"]],
    ],
  ],
  [
    "Clients see",
    [
      [START, DOWN, "good", ["200 or 429"]],
      [DOWN, UP, "good", ["200 or 429,", "without RateLimit"]],
      [UP, END, "good", ["200 or 429"]],
    ],
  ],
  [
    "The log",
    [
      [DOWN, UP, "others", ["SLUICE_DEGRADED", "once"]],
      [UP, END, "others", ["RECOVERED", `after ${RECOVERED_AFTER_S} s`]],
    ],
  ],
]

/** Draws an outage of Redis over time, with the default `onStoreFailure: "local"`. */
export function drawOutage(): Diagram {
  const sentences = LANES.map(
    ([name, spans]) =>
      `${name}: ${spans.map(([, , , lines]) => lines.join(" ").replace(/,$/, "")).join("; then ")}.`,
  )
  const description = `An outage of Redis, by default. ${sentences.join(" ")}`
  return diagram("outage.svg", { title: "An outage of Redis", description, height: 16 + LANES.length * 60 }, [
    ...LANES.flatMap(([name, spans], row) => {
      const y = 16 + row * 60
      return [
        text([24, y + 28], name, { anchor: "start", isStrong: true }),
        ...spans.map(([from, to, look, lines]) =>
          box({ x: from + 2, y, width: to - from - 4, height: 48 }, look, [], lines),
        ),
      ]
    }),
  ])
}
