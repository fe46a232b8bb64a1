import { describe, expect, it } from "vitest"
import { createPaint } from "./paint.ts"
import { refusedResponse } from "./refused-response.ts"
import { createScreen } from "./screen.ts"
import { table } from "./table.ts"
import { newTally, type Tally } from "./tally.ts"

const NOW = 1_000_000
const COLOURS = new RegExp(`${"\u001b"}\\[\\d+m`, "g")
const plain = createPaint(false, undefined)

const tally = (framework: string, client: string, members: Partial<Tally> = {}): Tally =>
  Object.assign(newTally(framework, client, "ip-1m"), { limit: 100, windowMs: 60_000 }, members)

const TALLIES = [
  tally("Express", "203.0.113.10", { limit: 0 }),
  tally("Express", "203.0.113.20", { admitted: 40, remaining: 60 }),
  tally("Koa", "203.0.113.20", { admitted: 100, refused: 7, retryAtMs: NOW + 1_001 }),
  tally("Koa", "203.0.113.30", { refused: 1, retryAtMs: NOW - 5_000 }),
  tally("Koa", "203.0.113.40", { waited: { seconds: 3, isAdmitted: true } }),
  tally("Koa", "203.0.113.50", { waited: { seconds: 3, isAdmitted: false } }),
  tally("Koa", "203.0.113.60", { waited: { seconds: 3, isAdmitted: undefined }, retryAtMs: NOW + 2_900 }),
]

const TABLE = `\
framework  client        rule               used        admitted  refused  remaining  retry after
Express    203.0.113.10  ip-1m
           203.0.113.20  ip-1m 100 in 60 s  ■■■■□□□□□□        40        0         60
Koa        203.0.113.20  ip-1m 100 in 60 s  ■■■■■■■■■■       100        7          0  2 s
           203.0.113.30  ip-1m 100 in 60 s  ■■■■■■■■■■         0        1          0  0 s
           203.0.113.40  ip-1m 100 in 60 s  ■■■■■■■■■■         0        0          0  3 s ✓
           203.0.113.50  ip-1m 100 in 60 s  ■■■■■■■■■■         0        0          0  3 s ✗
           203.0.113.60  ip-1m 100 in 60 s  ■■■■■■■■■■         0        0          0  3 s`

describe("the table", () => {
  it("contains a row with a countdown for each client", () => {
    expect(table(TALLIES, NOW, plain).replace(/ +$/gm, "")).toBe(TABLE)
  })

  it("has the same width with and without colors", () => {
    const coloured = table(TALLIES, NOW, createPaint(true, undefined))
    expect(coloured).toContain("\u001b[31m■■■■■■■■■■\u001b[0m")
    expect(coloured.replace(COLOURS, "")).toBe(table(TALLIES, NOW, plain))
  })
})

describe("colors", () => {
  it.each([
    { isTerminal: true, noColor: undefined, text: "\u001b[32mgood\u001b[0m" },
    { isTerminal: true, noColor: "", text: "\u001b[32mgood\u001b[0m" },
    { isTerminal: true, noColor: "1", text: "good" },
    { isTerminal: false, noColor: undefined, text: "good" },
  ])(
    "depend on whether there is a terminal ($isTerminal) and on NO_COLOR ($noColor)",
    ({ isTerminal, noColor, text }) => {
      expect(createPaint(isTerminal, noColor)("good", "good")).toBe(text)
    },
  )
})

describe("the screen", () => {
  const shown = (isTerminal: boolean): string => {
    let all = ""
    const screen = createScreen((text) => {
      all += text
    }, isTerminal)
    screen.update("one\ntwo")
    screen.update("three\nfour")
    screen.finish("five\nsix")
    return all
  }

  it("redraws its lines in place in a terminal", () => {
    const inOnePiece = (text: string): string => `\u001b[?7l${text}\u001b[?7h`
    expect(shown(true)).toBe(
      inOnePiece("one\u001b[K\ntwo\u001b[K\n") +
        inOnePiece("\u001b[2Athree\u001b[K\nfour\u001b[K\n") +
        inOnePiece("\u001b[2Afive\u001b[K\nsix\u001b[K\n"),
    )
  })

  it("prints only the final text without a terminal", () => {
    expect(shown(false)).toBe("five\nsix\n")
  })
})

describe("a refused response", () => {
  const answer = {
    status: 429,
    statusLine: "HTTP/1.1 429 Too Many Requests",
    headers: [
      ["Retry-After", "7"],
      ["Content-Type", "application/problem+json"],
    ],
  } as const

  it("is shown unchanged, except that its body is formatted on several lines", () => {
    expect(refusedResponse({ ...answer, body: '{"status":429}' }, plain)).toBe(
      'HTTP/1.1 429 Too Many Requests\nRetry-After: 7\nContent-Type: application/problem+json\n\n{\n  "status": 429\n}',
    )
  })

  it("is shown with a body that is not JSON", () => {
    expect(refusedResponse({ ...answer, body: "Quota Exceeded: search" }, plain)).toMatch(
      /\n\nQuota Exceeded: search$/,
    )
  })

  it("is shown with highlighted rate limit headers", () => {
    const lines = refusedResponse({ ...answer, body: "" }, createPaint(true, undefined)).split("\n")
    expect(lines[1]).toBe("\u001b[33mRetry-After: 7\u001b[0m")
    expect(lines[2]).toBe("Content-Type: application/problem+json")
  })
})
