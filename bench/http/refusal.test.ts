import { afterAll, beforeAll, expect, it } from "vitest"
import { type ContenderProcess, startContender } from "../contender-process.ts"
import type { Protection } from "./setup.ts"
import type { Framework } from "./worker.ts"

let child: ContenderProcess
beforeAll(() => {
  const worker = new URL("./worker.ts", import.meta.url)
  child = startContender(worker, "all", { env: { NODE_OPTIONS: "--import tsx" } })
})
afterAll(() => child.stop())

/** Returns the response to the second request, with "n" for each number, because numbers depend on the time. */
async function refusalOf(framework: Framework, protection: Protection): Promise<string> {
  const port = await child.ask<number>({ start: framework, protection, limit: 1 })
  const ask = () => fetch(`http://127.0.0.1:${port}/`)
  await (await ask()).text()
  const response = await ask()
  const lines = [...response.headers].filter(([name]) => name !== "date").map((line) => line.join(": "))
  return [response.status, ...lines.sort(), await response.text()].join("\n").replace(/\d+/g, "n")
}

it.each(["fastify", "express", "koa"] as const)(
  "the benchmark's constant refusal on %s equals Sluice's refusal",
  async (framework) => {
    expect(await refusalOf(framework, "refusal")).toBe(await refusalOf(framework, "sluice"))
  },
)
