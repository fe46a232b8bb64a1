import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { recordActivity } from "@sluice/dashboard"
import { rulesInMemory, tokens } from "@sluice/service"
import { expect, it, onTestFinished } from "vitest"
import { sluice } from "../cli/in-process.ts"
import type { Block } from "../docs/blocks.ts"
import { commandLines } from "../docs/shell/words.ts"
import { blocksTestedBy, expectShown } from "../docs/shown.ts"
import { post } from "../service/post.ts"
import { FORWARD } from "../service/questions.ts"
import { startService } from "../service/started.ts"

const [shown] = blocksTestedBy("test/dashboard/top-guide.test.ts", "docs/production/dashboard.md", 1) as [
  Block,
]

it("the guide's command lists the client of the decision service as the guide shows it", async () => {
  const clock = manualClock(1_796_050_000_000)
  const home = rulesInMemory()
  await home.registry.register("checkout", [{ name: "per-user", field: "user", limit: 5, window: "1 hour" }])
  const started = await startService(home, {
    shared: { store: memoryStore({ clock }), storeTimeoutMs: 20_000, clock },
    tokens: tokens({ "*": "the-token" }),
    activity: recordActivity([], { clock }),
  })
  onTestFinished(() => started.stop())
  for (const times of [6, 0, 2, 4, 6, 8, 8, 5, 3, 2, 1, 0, 0, 3]) {
    for (let i = 0; i < times; i++)
      await post(started, FORWARD, { service: "checkout", request: { user: "ada" } })
    if (times > 5) await post(started, FORWARD, { service: "checkout", request: { user: "eve" } })
    clock.advance(10_000)
  }
  for (let i = 0; i < 4; i++) await post(started, FORWARD, { service: "checkout", request: { user: "eve" } })
  clock.advance(4_000)
  const [command = "", ...lines] = shown.text.split("\n")
  const [line] = commandLines(command.replace("$ ", ""))
  const env = { SLUICE_URL: started.http, SLUICE_TOKEN: "the-token" }
  const { code, out } = await sluice(line?.words.slice(1) ?? [], { env })
  expect(code).toBe(0)
  expectShown(lines.join("\n"), out)
})
