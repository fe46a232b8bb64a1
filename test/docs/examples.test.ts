import { readFile } from "node:fs/promises"
import type { Clock } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { afterEach, describe, expect, it, vi } from "vitest"
import { type Served, serve } from "../../examples/src/demo/serve.ts"
import { createApp as express } from "../../examples/src/express.ts"
import { createApp as fastify } from "../../examples/src/fastify.ts"
import { createApp as koa } from "../../examples/src/koa.ts"
import { createApp as metrics } from "../../examples/src/metrics.ts"
import { createApp as rulesFile } from "../../examples/src/rules-file.ts"
import { parseCurl } from "./shell/curl.ts"
import { commandLines } from "./shell/words.ts"

const folder = new URL("../../examples/", import.meta.url)
const readme = await readFile(new URL("README.md", folder), "utf8")
const { scripts } = JSON.parse(await readFile(new URL("package.json", folder), "utf8")) as {
  scripts: Record<string, string>
}

type App = Parameters<typeof serve>[0]

/** The apps as users start them, except for the clock, and the statuses that the curl line receives. */
const EXAMPLES: Readonly<Record<string, { app: (clock: Clock) => App | Promise<App>; meets: string }>> = {
  "src/express.ts": { app: (clock) => express({ clock }), meets: "200 200 200 429 429 429" },
  "src/fastify.ts": { app: (clock) => fastify({ clock }), meets: "200 200 200 429 429 429" },
  "src/koa.ts": { app: (clock) => koa({ clock }).callback(), meets: "200 200 200 429 429 429" },
  "src/rules-file.ts": {
    app: async (clock) => (await rulesFile(undefined, { clock })).app,
    meets: "201 201 201 429",
  },
  "src/metrics.ts": { app: (clock) => metrics({ clock }), meets: `${"200 ".repeat(10)}429` },
}

interface Row {
  readonly file: string
  readonly script: string
  readonly curl: string
}

const rows: Row[] = [
  ...readme.matchAll(/^\| \[[^\]]+\]\((\S+)\) +\|.*\| `(\S+)` +\| `(curl .+)` +\|$/gm),
].map(([, file = "", script = "", curl = ""]) => ({ file, script, curl }))

let server: Served | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
  vi.restoreAllMocks()
})

describe.each(rows)("$file in examples/README.md", ({ file, script, curl }) => {
  it("is started by the script in its row", () => {
    expect(scripts[script]).toBe(`tsx ${file}`)
  })

  it("admits the first requests of the curl command in its row, and then refuses a request", async () => {
    vi.spyOn(console, "log").mockImplementation(() => undefined)
    const example = EXAMPLES[file]
    if (example === undefined) throw new Error(`${file} is in the README and in no row of this test.`)
    server = await serve(await example.app(manualClock()))
    const { urls, init } = parseCurl(commandLines(curl)[0]?.words ?? [])
    const statuses: number[] = []
    for (const url of urls) {
      expect(url).toMatch(/^http:\/\/localhost:3000\//)
      statuses.push((await fetch(url.replace("http://localhost:3000", server.url), init)).status)
    }
    expect(statuses.join(" ")).toBe(example.meets)
  })
})

describe("examples/README.md", () => {
  it("has a row with a curl command for every example server", () => {
    expect(rows.map(({ file }) => file)).toEqual(Object.keys(EXAMPLES))
    expect(rows.map(({ script }) => script)).toEqual(Object.keys(scripts))
  })
})
