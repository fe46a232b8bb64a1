import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { fileRules } from "@sluice/rules"
import { amountAxis, chartLine, type Times, timeAxis, xOf, yOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, dot, text } from "./draw.ts"

const SECOND_MS = 1_000
const STEP_MS = 200
const EVERY_MS = 4_000
/** The account changes from the plan free to pro. */
const UPGRADE_MS = 80_000
/** The limit of the plan pro is edited in the file. */
const EDIT_MS = 130_000
/** The line of the file before and after the edit. */
const EDIT = { from: "limit: 8", to: "limit: 12" }
const TIMES: Times = {
  endMs: 180_000,
  everyMs: 20_000,
  label: (atMs) => `${atMs / SECOND_MS}${atMs === 0 ? "" : " s"}`,
}
const AREA: Area = { x: 92, y: 52, width: 596, height: 140 }
const MOST = 14

/** The rule of the account's plan at one time. */
export interface Usage {
  readonly atMs: number
  readonly limit: number
  readonly used: number
}

export interface PlansRun {
  readonly usage: readonly Usage[]
  readonly requests: readonly { readonly atMs: number; readonly allowed: boolean }[]
}

/** Sends requests of one account under the rules file of docs/protect/plans.md, while the plan and the file change. */
export async function runPlans(): Promise<PlansRun> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-plans-"))
  const file = join(folder, "plans.yaml")
  const page = readFileSync(new URL("../protect/plans.md", import.meta.url), "utf8")
  const [, rules = ""] = /```yaml\n([^`]*)```/.exec(page) ?? []
  writeFileSync(file, rules)
  const clock = manualClock(0)
  const limiter = createLimiter<{ account: string; plan: string }>({
    service: "picture",
    rules: fileRules(file),
    fields: { account: ({ account }) => account, plan: ({ plan }) => plan },
    clock,
  })
  const usage: Usage[] = []
  const requests: { atMs: number; allowed: boolean }[] = []
  for (; clock.now() <= TIMES.endMs; clock.advance(STEP_MS)) {
    const atMs = clock.now()
    const request = { account: "ann", plan: atMs < UPGRADE_MS ? "free" : "pro" }
    if (atMs === EDIT_MS) {
      writeFileSync(file, rules.replace(EDIT.from, EDIT.to))
      await limiter.refresh()
    }
    if (atMs % EVERY_MS === 0) {
      const { allowed } = await limiter.decide(request)
      requests.push({ atMs, allowed })
    }
    const { checks } = await limiter.peek(request)
    const [{ limit = 0, remaining = 0 } = {}] = checks
    usage.push({ atMs, limit, used: limit - remaining })
  }
  await limiter.close()
  rmSync(folder, { recursive: true })
  return { usage, requests }
}

/** Draws the count of an account that changes its plan, and whose limit is edited. */
export async function drawPlans(): Promise<Diagram> {
  const { usage, requests } = await runPlans()
  const at = (wantedMs: number): Usage => usage.find(({ atMs }) => atMs === wantedMs) as Usage
  const [before, upgraded, edited] = [at(UPGRADE_MS - STEP_MS), at(UPGRADE_MS), at(EDIT_MS)]
  const description =
    `An account on the plan free has a limit of ${before.limit}. When its plan becomes pro, the limit is ` +
    `${upgraded.limit}, and the count begins at 0. When the limit in the file becomes ${edited.limit}, the count of ` +
    `${edited.used} stays.`
  const bottom = AREA.y + AREA.height
  const rows = { admitted: bottom + 48, refused: bottom + 72 }
  const span = (fromMs: number, words: readonly string[]): string[] =>
    words.map((line, row) =>
      text([xOf(fromMs, AREA, TIMES) + 4, 20 + row * 18], line, { anchor: "start", look: "goal" }),
    )
  return diagram(
    "plans.svg",
    { title: "An account that changes its plan", description, height: rows.refused + 20 },
    [
      ...timeAxis(AREA, TIMES),
      ...amountAxis(AREA, MOST, [0, before.limit, upgraded.limit, edited.limit]),
      ...span(0, ["plan free", `limit ${before.limit} a minute`]),
      ...span(UPGRADE_MS, ["plan pro: another rule,", `limit ${upgraded.limit}, counts from 0`]),
      ...span(EDIT_MS, [`file edited: limit ${edited.limit},`, "the count stays"]),
      chartLine(
        usage.map(({ atMs, limit }) => [atMs, limit]),
        AREA,
        TIMES,
        MOST,
        "goal",
      ),
      chartLine(
        usage.map(({ atMs, used }) => [atMs, used]),
        AREA,
        TIMES,
        MOST,
        "ours",
      ),
      text([AREA.x - 8, yOf(2.5, AREA, MOST) + 5], "count", { anchor: "end", look: "ours" }),
      text([AREA.x - 8, rows.admitted + 5], "admitted", { anchor: "end", look: "good" }),
      text([AREA.x - 8, rows.refused + 5], "refused", { anchor: "end", look: "refused" }),
      ...requests.map(({ atMs, allowed }) => {
        const x = xOf(atMs, AREA, TIMES)
        return allowed
          ? dot([x, rows.admitted], "good")
          : dot([x, rows.refused], "refused", { isHollow: true })
      }),
    ],
  )
}
