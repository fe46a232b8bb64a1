import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { serve } from "../../examples/src/demo/serve.ts"
import { createApp } from "../../examples/src/recipes/login.ts"
import { amountAxis, chartLine, type Times, timeAxis, xOf, yOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, box, dot, type Look, text } from "./draw.ts"

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** The limit of the recipe for an account and address, without its penalty. */
const LIMIT_ALONE = { limit: 5, window: "15 minutes" } as const
/** The attacker tries a password this often. */
const GUESS_EVERY_MS = MINUTE_MS
const SENT_WHEN_BLOCKED_EVERY_MS = 15 * MINUTE_MS
/** The curves have a point this often, which keeps the file short. */
const SHOWN_EVERY_MS = 10 * MINUTE_MS
/** The owner of the account signs in this often, from another address. */
const SIGN_IN_EVERY_MS = 3 * HOUR_MS
const ADDRESSES = { attacker: "203.0.113.7", owner: "198.51.100.23" }
const TIMES: Times = {
  endMs: 15 * HOUR_MS,
  everyMs: 3 * HOUR_MS,
  label: (atMs) => (atMs === 0 ? "0" : `${atMs / HOUR_MS} h`),
}
const AREA: Area = { x: 92, y: 20, width: 452, height: 180 }
const MOST = 900

/** The passwords since the start that the attacker sent, and how many of them the app would have checked. */
export interface Guesses {
  readonly atMs: number
  readonly sent: number
  /** With a limit alone. */
  readonly underLimit: number
  /** With the app of the recipe, whose limit has a penalty. */
  readonly underRecipe: number
}

export interface LoginRun {
  readonly guesses: readonly Guesses[]
  /** The blocks of the attacker. */
  readonly blocks: readonly { readonly atMs: number; readonly forMs: number }[]
  /** The statuses of the owner. */
  readonly owner: readonly { readonly atMs: number; readonly status: number }[]
}

/** Attacks an account of the app of the login recipe, and signs its owner in from time to time. */
export async function runLogin(): Promise<LoginRun> {
  const clock = manualClock(0)
  let underRecipe = 0
  async function check(_account: string, password: string): Promise<boolean> {
    if (password === "wrong") underRecipe++
    return password !== "wrong"
  }
  const server = await serve(createApp(check, { clock, trustedProxies: ["loopback"] }))
  async function signIn(password: string, address: string): Promise<Response> {
    const response = await fetch(`${server.url}/login`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ email: "ann@example.com", password }),
    })
    await response.arrayBuffer()
    return response
  }
  const limiter = createLimiter({ ...LIMIT_ALONE, clock })
  const guesses: Guesses[] = []
  const blocks: { atMs: number; forMs: number }[] = []
  const owner: { atMs: number; status: number }[] = []
  let [sent, underLimit, blockedUntilMs] = [0, 0, 0]
  for (; clock.now() < TIMES.endMs; clock.advance(GUESS_EVERY_MS)) {
    const atMs = clock.now()
    const isBlocked = atMs < blockedUntilMs
    // A blocked request changes nothing, so only some of them are really sent.
    if (!isBlocked || atMs % SENT_WHEN_BLOCKED_EVERY_MS === 0) {
      const { status, headers } = await signIn("wrong", ADDRESSES.attacker)
      if (isBlocked && status !== 429) throw new Error(`A blocked request got ${status}`)
      const waitMs = 1_000 * Number(headers.get("retry-after"))
      // Without a block, the wait is at most the window and a second.
      if (!isBlocked && waitMs > 16 * MINUTE_MS) {
        blocks.push({ atMs, forMs: waitMs })
        blockedUntilMs = atMs + waitMs
      }
    }
    if ((await limiter.decide({ remoteAddress: ADDRESSES.attacker })).allowed) underLimit++
    guesses.push({ atMs, sent: ++sent, underLimit, underRecipe })
    if (atMs % SIGN_IN_EVERY_MS === 0)
      owner.push({ atMs, status: (await signIn("right", ADDRESSES.owner)).status })
  }
  await Promise.all([limiter.close(), server.close()])
  return { guesses, blocks, owner }
}

/** Draws an attack on an account, with and without a limit and a penalty. */
export async function drawLogin(): Promise<Diagram> {
  const { guesses, blocks, owner } = await runLogin()
  const last = guesses.at(-1) as Guesses
  const shown = guesses.filter((each) => each.atMs % SHOWN_EVERY_MS === 0 || each === last)
  const lengths = blocks.map(({ forMs }) =>
    forMs < HOUR_MS ? `${forMs / MINUTE_MS} minutes` : `${forMs / HOUR_MS} hours`,
  )
  const admitted = owner.filter(({ status }) => status === 200)
  const description =
    `In ${TIMES.endMs / HOUR_MS} hours, an attacker sends ${last.sent} passwords for one account. ` +
    `A limit of ${LIMIT_ALONE.limit} in ${LIMIT_ALONE.window} lets ${last.underLimit} of them through, and the recipe ` +
    `${last.underRecipe}, because its blocks last ${lengths.join(", then ")}. Of ${owner.length} sign-ins of the owner from ` +
    `another address, ${admitted.length} are admitted.`
  const bottom = AREA.y + AREA.height
  const right = AREA.x + AREA.width + 10
  const rows = { blocks: bottom + 34, owner: bottom + 96 }
  const series: readonly (readonly [Look, (guesses: Guesses) => number, ...lines: string[]])[] = [
    ["others", ({ sent }) => sent, "passwords sent"],
    ["goal", ({ underLimit }) => underLimit, "checked with", "the limit alone"],
    ["ours", ({ underRecipe }) => underRecipe, "checked with", "the recipe"],
  ]
  return diagram("login.svg", { title: "A login under attack", description, height: rows.owner + 24 }, [
    ...timeAxis(AREA, TIMES),
    ...amountAxis(AREA, MOST, [0, 300, 600, 900]),
    ...series.flatMap(([look, count, ...lines]) => [
      chartLine(
        shown.map((each) => [each.atMs, count(each)]),
        AREA,
        TIMES,
        MOST,
        look,
      ),
      ...lines.map((line, row) =>
        text(
          [right, yOf(count(last), AREA, MOST) + 5 + 18 * (row - lines.length + 1)],
          row === 0 ? `${count(last)} ${line}` : line,
          { anchor: "start", ...(look !== "others" && { look }) },
        ),
      ),
    ]),
    text([AREA.x - 8, rows.blocks + 20], "attacker", { anchor: "end", isStrong: true }),
    ...blocks.map(({ atMs, forMs }, at) => {
      const x = xOf(atMs, AREA, TIMES)
      const width = xOf(Math.min(atMs + forMs, TIMES.endMs), AREA, TIMES) - x
      return box(
        { x, y: rows.blocks, width, height: 32 },
        "refused",
        [],
        width > 100 ? [`blocked for ${lengths[at]}`] : [],
      )
    }),
    ...[`blocked for ${lengths[0]},`, `${lengths.slice(1).join(", ")}`].map((line, row) =>
      text([right, rows.blocks + 12 + 18 * row], line, { anchor: "start", look: "refused" }),
    ),
    text([AREA.x - 8, rows.owner + 5], "owner", { anchor: "end", isStrong: true }),
    ...owner.map(({ atMs, status }) =>
      status === 200
        ? dot([xOf(atMs, AREA, TIMES), rows.owner], "good")
        : dot([xOf(atMs, AREA, TIMES), rows.owner], "refused", { isHollow: true }),
    ),
    text([right, rows.owner + 5], `${admitted.length} of ${owner.length} sign-ins admitted`, {
      anchor: "start",
      look: "good",
    }),
  ])
}
