import { readdir, readFile } from "node:fs/promises"
import { type Clock, manualClock } from "@sluice/core"
import type { FastifyInstance } from "fastify"
import { afterEach, describe, expect, it, vi } from "vitest"
import { type Served, serve } from "./demo/serve.ts"
import { createApp as express } from "./express.ts"
import { createApp as fastify } from "./fastify.ts"
import { createApp as koa } from "./koa.ts"
import { createApp as metrics } from "./metrics.ts"
import { createApp as bookings } from "./presets/bookings.ts"
import { createApp as login } from "./presets/login.ts"
import { createApp as plans } from "./presets/plans.ts"
import { createApp as secondFactor } from "./presets/second-factor.ts"
import { createApp as stacked } from "./presets/stacked.ts"
import { createApp as rulesFile } from "./rules-file.ts"

const readme = await readFile(new URL("../README.md", import.meta.url), "utf8")
const { scripts } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
  scripts: Record<string, string>
}

type App = Parameters<typeof serve>[0]

/** The apps as they are when they are started, but for the clock; and what the curl line meets. */
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
    app: (clock): Promise<FastifyInstance> =>
      secondFactor({ isCode: () => false, isCard: () => false }, { clock }),
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

/** What a curl line asks, in the few words of curl that the README uses; any other is an error. */
function parseCurl(line: string, base: string): { readonly urls: string[]; readonly init: RequestInit } {
  const words = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "")
  const headers: Record<string, string> = {}
  let method: string | undefined
  let body: string | undefined
  let url = ""
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "-i") continue
    if (word === "-X") method = words[++at]
    else if (word === "-d") body = words[++at]
    else if (word === "-H") {
      const [name = "", value = ""] = (words[++at] ?? "").split(": ")
      headers[name] = value
    } else if (url === "" && word.startsWith("http://localhost:3000/")) url = word
    else throw new Error(`The README uses curl's ${word}, which this test does not know.`)
  }
  const [, first = "1", last = "1"] = url.match(/\[(\d+)-(\d+)\]/) ?? []
  const numbers = Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) =>
    String(Number(first) + n),
  )
  return {
    urls: numbers.map((n) => url.replace("http://localhost:3000", base).replace(/\[.*\]/, n)),
    init: {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      ...(body === undefined ? {} : { body }),
    },
  }
}

let server: Served | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
  vi.restoreAllMocks()
})

describe.each(rows)("README: $file", ({ file, script, curl }) => {
  it("is started by the script that is named", () => {
    expect(scripts[script]).toBe(`tsx ${file}`)
  })

  it("answers its curl line with admissions, and then a refusal", async () => {
    vi.spyOn(console, "log").mockImplementation(() => undefined)
    const example = EXAMPLES[file]
    if (example === undefined) throw new Error(`${file} is in the README and in no row of this test.`)
    server = await serve(await example.app(manualClock()))
    const { urls, init } = parseCurl(curl, server.url)
    const statuses: number[] = []
    for (const url of urls) statuses.push((await fetch(url, init)).status)
    expect(statuses.join(" ")).toBe(example.meets)
  })
})

describe("README", () => {
  it("has a row with a curl line for every example that serves", () => {
    expect(rows.map(({ file }) => file)).toEqual(Object.keys(EXAMPLES))
    expect(rows.map(({ script }) => script)).toEqual(Object.keys(scripts))
  })

  it("names every example there is", async () => {
    const presets = await readdir(new URL("./presets", import.meta.url))
    const files = presets.filter((name) => name.endsWith(".test.ts")).map((name) => name.replace(".test", ""))
    for (const file of files) expect(readme).toContain(`](src/presets/${file})`)
  })
})
