import { readdir, readFile } from "node:fs/promises"
import { type Clock, manualClock } from "@sluice/core"
import { afterEach, describe, expect, it, vi } from "vitest"
import { type Served, serve } from "../../examples/src/demo/serve.ts"
import { createApp as express } from "../../examples/src/express.ts"
import { createApp as fastify } from "../../examples/src/fastify.ts"
import { createApp as koa } from "../../examples/src/koa.ts"
import { createApp as metrics } from "../../examples/src/metrics.ts"
import { createApp as bookings } from "../../examples/src/presets/bookings.ts"
import { createApp as login } from "../../examples/src/presets/login.ts"
import { createApp as plans } from "../../examples/src/presets/plans.ts"
import { createApp as secondFactor } from "../../examples/src/presets/second-factor.ts"
import { createApp as stacked } from "../../examples/src/presets/stacked.ts"
import { createApp as rulesFile } from "../../examples/src/rules-file.ts"
import { parseCurl } from "./shell/curl.ts"
import { commandLines } from "./shell/words.ts"

const folder = new URL("../../examples/", import.meta.url)
const readme = await readFile(new URL("README.md", folder), "utf8")
const { scripts } = JSON.parse(await readFile(new URL("package.json", folder), "utf8")) as {
  scripts: Record<string, string>
}

type App = Parameters<typeof serve>[0]

/** The apps as their users start them, except for the clock, with the statuses that the curl line gets. */
const EXAMPLES: Readonly<Record<string, { app: (clock: Clock) => App | Promise<App>; meets: string }>> = {
  "src/express.ts": { app: (clock) => express({ clock }), meets: "200 200 200 429 429 429" },
  "src/fastify.ts": { app: (clock) => fastify({ clock }), meets: "200 200 200 429 429 429" },
  "src/koa.ts": { app: (clock) => koa({ clock }).callback(), meets: "200 200 200 429 429 429" },
  "src/rules-file.ts": {
    app: async (clock) => (await rulesFile(undefined, { clock })).app,
    meets: "201 201 201 429",
  },
  "src/metrics.ts": { app: (clock) => metrics({ clock }), meets: `${"200 ".repeat(10)}429` },
  "src/presets/login.ts": {
    app: (clock) => login(async () => false, { clock }),
    meets: "401 401 401 401 401 429",
  },
  "src/presets/second-factor.ts": {
    app: (clock) => secondFactor(() => false, { clock }),
    meets: "402 402 402 429",
  },
  "src/presets/plans.ts": { app: (clock) => plans({ clock }).callback(), meets: `${"200 ".repeat(10)}429` },
  "src/presets/bookings.ts": { app: (clock) => bookings({ clock }), meets: `${"201 ".repeat(10)}429` },
  "src/presets/stacked.ts": { app: (clock) => stacked({ clock }), meets: `${"200 ".repeat(10)}429` },
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

describe.each(rows)("examples/README.md: $file", ({ file, script, curl }) => {
  it("is started by the script in its row", () => {
    expect(scripts[script]).toBe(`tsx ${file}`)
  })

  it("admits the first requests of its curl line, and then refuses one", async () => {
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
  it("has a row with a curl line for every example that serves", () => {
    expect(rows.map(({ file }) => file)).toEqual(Object.keys(EXAMPLES))
    expect(rows.map(({ script }) => script)).toEqual(Object.keys(scripts))
  })

  it("lists every example", async () => {
    for (const file of await presets()) expect(readme).toContain(`](src/presets/${file})`)
  })

  it("links to examples of 15 to 30 lines, without comments", async () => {
    const files = [
      ...new Set([...Object.keys(EXAMPLES), ...(await presets()).map((file) => `src/presets/${file}`)]),
    ]
    for (const file of files) {
      const lines = (await readFile(new URL(file, folder), "utf8")).split("\n")
      const code = lines.filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line))
      expect([file, code.length >= 15 && code.length <= 30], `${code.length} lines`).toEqual([file, true])
    }
  })

  async function presets(): Promise<string[]> {
    const names = await readdir(new URL("src/presets", folder))
    return names.filter((name) => name.endsWith(".test.ts")).map((name) => name.replace(".test", ""))
  }
})
