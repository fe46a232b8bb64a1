import { cp, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Limiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import type { Request } from "express"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Served, serve } from "./demo/serve.ts"
import { createApp } from "./rules-file.ts"

const rules = new URL("./rules.yaml", import.meta.url)
let folder: string
let path: string
let limiter: Limiter<Request>
let server: Served
const warnings: string[] = []
const clock = manualClock()

beforeEach(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined)
  vi.spyOn(console, "error").mockImplementation(() => undefined)
  warnings.length = 0
  folder = await mkdtemp(join(tmpdir(), "sluice-rules-"))
  path = join(folder, "rules.yaml")
  await cp(rules, path)
  const logger = { warn: () => undefined, error: (_: object, message: string) => warnings.push(message) }
  const started = createApp(path, { clock, logger })
  limiter = started.limiter
  server = await serve(started.app)
})
afterEach(async () => {
  await server.close()
  await limiter.close()
  await rm(folder, { recursive: true })
  vi.restoreAllMocks()
})

const checkout = () => fetch(`${server.url}/checkout`, { method: "POST" })

async function statuses(times: number): Promise<number[]> {
  const seen: number[] = []
  for (let time = 0; time < times; time++) seen.push((await checkout()).status)
  return seen
}

/** Replaces the file, like an editor or Kubernetes does. Resolves when the limiter has emitted the event. */
async function replace(event: "rules" | "rule-error", text: string): Promise<unknown> {
  const told = new Promise((resolve) => limiter.on(event, resolve))
  await writeFile(join(folder, "new"), text)
  await rename(join(folder, "new"), path)
  return told
}

describe("rules in a file", () => {
  it("apply from the first request", async () => {
    const first = await checkout()
    expect(first.headers.get("ratelimit-policy")).toBe('"everyone";q=60;w=60, "checkout";q=3;w=600')
    expect(await statuses(3)).toEqual([201, 201, 429])
    expect((await fetch(server.url)).status).toBe(200)
  })

  it("apply as soon as the file changes, without losing their counts", async () => {
    expect(await statuses(4)).toEqual([201, 201, 201, 429])
    const before = await readFile(path, "utf8")
    await replace("rules", before.replace("limit: 3", "limit: 5"))
    expect(await statuses(3)).toEqual([201, 201, 429])
  })

  it("stay in force when the file becomes invalid", async () => {
    await replace("rule-error", "rules: [")
    expect(await statuses(4)).toEqual([201, 201, 201, 429])
    expect(warnings.join()).toContain("The previous rules stay in force")
  })
})

it("the rules-file example does not start if its file is missing", () => {
  const logger = { warn: () => undefined, error: () => undefined }
  expect(() => createApp(join(folder, "missing.yaml"), { logger })).toThrow("missing.yaml")
})
