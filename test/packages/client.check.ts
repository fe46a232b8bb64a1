import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import type { Browser, Page } from "playwright-core"
import { rolldown } from "rolldown"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { startChromium } from "../servers/chromium.ts"
import { type LimitedApi, startLimitedApi } from "../servers/limited-api.ts"
import { pairs } from "../test-length.ts"
import type { Folder } from "./folder.ts"
import { NODE_20, NODE_22, NODE_24 } from "./nodes.ts"
import { programOf } from "./program.ts"
import { MODULE_SYSTEMS, type ModuleSystem, Project } from "./project.ts"
import { quickStart } from "./quick-start.ts"
import { type RefusingServer, startRefusingServer } from "./refusing-server.ts"
import { findRuntime } from "./runtimes.ts"

// Runs @sluice/client in all environments that its README lists.

/** Three concurrent calls exceed the API's limit of two, so one call has to wait. */
let api: LimitedApi
/** A server that refuses one call unexpectedly, and then every call that does not wait. */
let refusing: RefusingServer
beforeEach(async () => {
  api = await startLimitedApi({ limit: 2, window: "1 second", algorithm: "sliding-log" })
  refusing = await startRefusingServer()
})
afterEach(() => Promise.all([api.close(), refusing.close()]))

/** Runs the app of the README, and expects the API to refuse none of its calls. */
async function expectPaced(folder: Folder, app: string, command: readonly string[]): Promise<void> {
  folder.write("app.js", app)
  const [program = "", ...args] = command
  const ran = await folder.start(program, [...args, "app.js"], { API_URL: api.url, NO_COLOR: "1" }).ended
  expect({ ...ran, stdout: ran.stdout.replace(/\s/g, "") }).toEqual({
    code: 0,
    stdout: "[200,200,200]",
    stderr: "",
  })
  expect(api).toMatchObject({ admitted: 3, refused: 0 })
}

const IMPORTS = { "@sluice/client": ["paced"] }
const SIX_ANSWERS = Array(6).fill("200 hello")

/** Sends six concurrent calls. The code evaluates to the responses. */
const sixCallsTo = (url: string): string => `await Promise.all(Array.from({ length: 6 }, async () => {
  const response = await api(${url})
  return response.status + " " + (await response.text())
}))`

/** Runs a program whose third call is refused, and expects all calls to wait together. */
async function expectPatient(folder: Folder, type: ModuleSystem, command: readonly string[]): Promise<void> {
  const body = `const api = paced()\nconsole.log(JSON.stringify(${sixCallsTo("process.env.API_URL")}))`
  folder.write("app.js", programOf(type, IMPORTS, body))
  const [program = "", ...args] = command
  const ran = await folder.start(program, [...args, "app.js"], { API_URL: refusing.url }).ended
  expect(ran).toEqual({ code: 0, stdout: `${JSON.stringify(SIX_ANSWERS)}\n`, stderr: "" })
  expect(refusing.counts).toEqual({ admitted: 6, refused: 1 })
}

describe.each(pairs([NODE_20, NODE_22, NODE_24], MODULE_SYSTEMS))(
  '@sluice/client on Node %s with "type": "%s"',
  (node, type) => {
    const project = new Project(node)
    beforeAll(async () => {
      expect(await project.install("client")).toEqual([])
    })
    afterAll(() => project.remove())

    it("paces the app of its README", () =>
      expectPaced(project.programs(type), quickStart(project, "client", type), ["node"]))

    it("waits after a refusal", () => expectPatient(project.programs(type), type, ["node"]))
  },
)

describe("@sluice/client", () => {
  const project = new Project(NODE_24)
  beforeAll(() => project.install("client"))
  afterAll(() => project.remove())

  describe.each([
    ["bun", []],
    ["deno", ["run", "--allow-net", "--allow-env"]],
  ] as const)("on %s", (name, args) => {
    it("paces the app of its README", async () => {
      const app = quickStart(project, "client", "module")
      await expectPaced(project.programs("module"), app, [await findRuntime(name), ...args])
    })

    it("waits after a refusal", async () => {
      await expectPatient(project.programs("module"), "module", [await findRuntime(name), ...args])
    })
  })

  describe("in Chromium", () => {
    let browser: Browser
    let bundle: string
    beforeAll(async () => {
      browser = await startChromium()
      bundle = await bundled()
    })
    afterAll(() => browser?.close())

    /** Evaluates an expression in a page of an origin. In the page, `api` is a paced fetch. */
    async function evaluated(page: Page, origin: string, expression: string): Promise<unknown> {
      await page.route("**/client.js", (route) =>
        route.fulfill({ contentType: "text/javascript", body: bundle }),
      )
      await page.goto(`${origin}/page`)
      return page.evaluate(`(async () => {
        const { paced } = await import("/client.js")
        const api = paced()
        return ${expression}
      })()`)
    }

    it("paces calls", async () => {
      const calls = `await Promise.all([1, 2, 3].map(async (id) => (await api("/orders?id=" + id)).status))`
      const page = await browser.newPage()
      // Serve the page from another server, because the API would count a request for it.
      await page.route("**/page", (route) => route.fulfill({ contentType: "text/html", body: "<p>page" }))
      expect(await evaluated(page, api.url, calls)).toEqual([200, 200, 200])
      expect(api).toMatchObject({ admitted: 3, refused: 0 })
    })

    it.each(["127.0.0.1", "localhost"])(
      "waits after a refusal if a page of 127.0.0.1 calls %s",
      async (host) => {
        const url = refusing.url.replace("127.0.0.1", host)
        const page = await browser.newPage()
        expect(await evaluated(page, refusing.url, sixCallsTo(JSON.stringify(url)))).toEqual(SIX_ANSWERS)
        expect(refusing.counts).toEqual({ admitted: 6, refused: 1 })
      },
    )
  })

  it("has at most 7,000 bytes, minified and compressed", async () => {
    expect(gzipSync(await bundled(), { level: 9 }).length).toBeLessThanOrEqual(7_000)
  })
})

/** Returns the built package with its dependency, bundled for browsers. */
async function bundled(): Promise<string> {
  const input = fileURLToPath(new URL("../../packages/client/dist/index.js", import.meta.url))
  const bundle = await rolldown({ input, platform: "browser" })
  const { output } = await bundle.generate({ minify: true, format: "esm" })
  await bundle.close()
  const [{ code }, ...others] = output
  // An import that remains in the bundle would not count toward its size.
  expect({ imports: output[0].imports, others }).toEqual({ imports: [], others: [] })
  return code
}
