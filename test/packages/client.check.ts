import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { chromium } from "playwright-core"
import { rolldown } from "rolldown"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { findChromium } from "../servers/chromium.ts"
import { type LimitedApi, startLimitedApi } from "../servers/limited-api.ts"
import type { Folder } from "./folder.ts"
import { NODE_20, NODE_22, NODE_24 } from "./nodes.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"
import { quickStart } from "./quick-start.ts"
import { findRuntime } from "./runtimes.ts"

// Runs @sluice/client where its README says that it runs. Three calls at once exceed the limit of two, so one of them
// has to wait.

let api: LimitedApi
beforeEach(async () => {
  api = await startLimitedApi({ limit: 2, window: "2 seconds", algorithm: "sliding-log" })
})
afterEach(() => api.close())

/** Runs the app of the README, and expects that the API refuses none of its calls. */
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

describe.each([NODE_20, NODE_22, NODE_24])("@sluice/client on Node %s", (node) => {
  const project = new Project(node)
  beforeAll(async () => {
    expect(await project.install("client")).toEqual([])
  })
  afterAll(() => project.remove())

  it.each(MODULE_SYSTEMS)('paces the app of its README with "type": "%s"', (type) =>
    expectPaced(project.programs(type), quickStart(project, "client", type), ["node"]),
  )
})

describe("@sluice/client", () => {
  const project = new Project(NODE_24)
  beforeAll(() => project.install("client"))
  afterAll(() => project.remove())

  it.each([
    ["bun", []],
    ["deno", ["run", "--allow-net", "--allow-env"]],
  ] as const)("paces the app of its README on %s", async (name, args) => {
    const app = quickStart(project, "client", "module")
    await expectPaced(project.programs("module"), app, [await findRuntime(name), ...args])
  })

  it("paces calls in Chromium", async () => {
    const { path, env } = await findChromium()
    const browser = await chromium.launch({
      executablePath: path,
      // Chromium's sandbox does not run as root, nor in most containers.
      args: ["--no-sandbox"],
      env: { ...(process.env as Record<string, string>), ...env },
    })
    try {
      const page = await browser.newPage()
      await page.route("**/page", (route) => route.fulfill({ contentType: "text/html", body: "<p>page" }))
      await page.goto(`${api.url}/page`)
      const bundle = `data:text/javascript,${encodeURIComponent(await bundled())}`
      const statuses = await page.evaluate(`(async () => {
        const { paced } = await import(${JSON.stringify(bundle)})
        const api = paced()
        const responses = await Promise.all([1, 2, 3].map((id) => api("/orders?id=" + id)))
        return responses.map(({ status }) => status)
      })()`)
      expect(statuses).toEqual([200, 200, 200])
      expect(api).toMatchObject({ admitted: 3, refused: 0 })
    } finally {
      await browser.close()
    }
  })

  it("has at most 8,000 bytes, minified and compressed with what it imports", async () => {
    expect(gzipSync(await bundled(), { level: 9 }).length).toBeLessThanOrEqual(8_000)
  })
})

/** Returns the built package with its dependency, as a bundler makes it for browsers. */
async function bundled(): Promise<string> {
  const input = fileURLToPath(new URL("../../packages/client/dist/index.js", import.meta.url))
  const bundle = await rolldown({ input, platform: "browser" })
  const { output } = await bundle.generate({ minify: true, format: "esm" })
  await bundle.close()
  const [{ code }, ...others] = output
  // An import that is left in the code would not be counted.
  expect({ imports: output[0].imports, others }).toEqual({ imports: [], others: [] })
  return code
}
