import { across, type Diagram, diagram, down } from "./diagram.ts"
import { arrow, box, lane, text } from "./draw.ts"

/** Milliseconds between two charges of another data center, by default. */
export const MIRROR_EVERY_MS = 100

/** A store with what its app asks, how, and the most that it admits. */
interface Column {
  readonly name: string
  /** Where the counters are, from the nearest. */
  readonly targets: readonly (readonly [string, "each request" | "later"])[]
  readonly most: readonly [string, string]
  readonly waits: string
}

const COLUMNS: readonly Column[] = [
  {
    name: "memoryStore",
    targets: [["memory", "each request"]],
    most: ["the limit,", "in each process"],
    waits: "nothing",
  },
  {
    name: "redisStore",
    targets: [["Redis", "each request"]],
    most: ["the limit,", "in all together"],
    waits: "Redis",
  },
  {
    name: "leasedStore",
    targets: [["Redis", "later"]],
    most: ["the limit,", "in all together"],
    waits: "nothing",
  },
  {
    name: "mirroredStore",
    targets: [
      ["near Redis", "each request"],
      ["far Redis", "later"],
    ],
    most: ["a little more", "than the limit"],
    waits: "the near Redis",
  },
  {
    name: "writeBackStore",
    targets: [["Redis", "later"]],
    most: ["the limit, if one", "process has all"],
    waits: "nothing",
  },
]

/** Draws five stores beside each other: what a request waits for, and the most that each admits. */
export function drawStores(): Diagram {
  const description = `Five stores. ${COLUMNS.map(
    ({ name, most, waits }) => `${name}: a request waits for ${waits}; admits ${most.join(" ")}.`,
  ).join(" ")}`
  return diagram("stores.svg", { title: "Five stores", description, height: 386 }, [
    ...COLUMNS.flatMap(({ name, targets, most, waits }, at) => {
      const x = 16 + at * 139
      const middle = x + 66
      return [
        box({ x, y: 16, width: 132, height: 48 }, "ours", [name], []),
        ...targets.flatMap(([target, when], row) => {
          const y = 112 + row * 74
          const isLater = when === "later"
          const arrowX = targets.length === 1 ? middle : row === 0 ? middle - 30 : middle + 52
          const width = targets.length > 1 && row === 0 ? 100 : 132
          return [
            arrow(down(arrowX, 64, y), isLater ? "others" : "ours", { isDashed: isLater }),
            box({ x, y, width, height: 40 }, "others", [], [target]),
          ]
        }),
        text([middle, 262], "admits at most"),
        text([middle, 280], most[0], { isStrong: true }),
        text([middle, 298], most[1], { isStrong: true }),
        text([middle, 322], "waits for"),
        text([middle, 340], waits),
      ]
    }),
    text([16, 372], "Solid: each request asks. Dashed: ahead of requests, or afterwards.", {
      anchor: "start",
    }),
  ])
}

/** Draws a limit over three regions: each decides by its own Redis, and charges the others. */
export function drawRegions(): Diagram {
  const description =
    "Three regions: eu, us and ap. In each, clients ask an app, and the app asks the Redis of its region for each request. " +
    `Every ${MIRROR_EVERY_MS} ms, the app of eu also charges what it admitted to the Redis of us and the Redis of ap. The ` +
    "apps of us and ap do the same."
  const regions = ["eu", "us", "ap"]
  const x = (at: number): number => 24 + at * 232
  return diagram("regions.svg", { title: "One limit in three regions", description, height: 376 }, [
    ...regions.map((region, at) => lane({ x: x(at), y: 16, width: 208, height: 292 }, region)),
    ...regions.flatMap((region, at) => [
      box({ x: x(at) + 36, y: 44, width: 136, height: 40 }, "others", [], ["clients"]),
      arrow(down(x(at) + 104, 84, 120), "others"),
      box({ x: x(at) + 36, y: 120, width: 136, height: 52 }, "ours", ["App"], ["mirroredStore"]),
      arrow(down(x(at) + 104, 172, 240), "ours"),
      text([x(at) + 94, 212], "each request", { anchor: "end" }),
      box({ x: x(at) + 36, y: 240, width: 136, height: 52 }, "others", ["Redis"], [`of ${region}`]),
    ]),
    ...[1, 2].map((at) =>
      arrow(
        [
          [x(0) + 172, 136 + at * 14],
          [x(0) + 220 - at * 4, 136 + at * 14],
          [x(0) + 220 - at * 4, 302 + at * 16],
          [x(at) + 104, 302 + at * 16],
          [x(at) + 104, 292],
        ],
        "others",
        { isDashed: true },
      ),
    ),
    text(
      [24, 364],
      `Dashed: every ${MIRROR_EVERY_MS} ms, the app of eu charges the other regions. They do the same.`,
      {
        anchor: "start",
      },
    ),
  ])
}

/** Draws what happens when somebody saves a file of rules. */
export function drawRulesFile(): Diagram {
  const description =
    "Every process reads a changed rules.yaml. Valid rules apply to the next request, and the counts of rules that kept " +
    "their name stay. If a rule is invalid, the previous rules stay in force, and the log says so with the line."
  return diagram("rules-file.svg", { title: "A change of a rules file", description, height: 246 }, [
    box({ x: 24, y: 94, width: 152, height: 58 }, "others", ["rules.yaml"], ["somebody saves it"]),
    arrow(across(123, 176, 232), "ours"),
    box({ x: 232, y: 94, width: 160, height: 58 }, "ours", ["Every process"], ["reads and checks it"]),
    arrow(
      [
        [312, 94],
        [312, 50],
        [456, 50],
      ],
      "good",
    ),
    text([384, 42], "valid", { look: "good" }),
    box(
      { x: 456, y: 16, width: 240, height: 68 },
      "good",
      ["In force for the next request"],
      ["counts stay if the name stays"],
    ),
    arrow(
      [
        [312, 152],
        [312, 196],
        [456, 196],
      ],
      "refused",
    ),
    text([384, 188], "invalid", { look: "refused" }),
    box(
      { x: 456, y: 154, width: 240, height: 76 },
      "refused",
      ["The previous rules stay"],
      ["SLUICE_RULES_REJECTED", "names the line"],
    ),
  ])
}
