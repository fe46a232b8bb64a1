import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blocksTestedBy } from "../docs/shown.ts"
import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"
import type { Running } from "./folder.ts"
import { NODE_24 } from "./nodes.ts"
import { Project } from "./project.ts"
import { findRuntime } from "./runtimes.ts"

// Runs limiters in workerd, the runtime of Cloudflare Workers, without compatibility flags.

const [RECIPE] = blocksTestedBy("test/packages/workers.check.ts", "docs/start/fetch.md", 1)

/** The recipe with a shorter limit, and a response that shows what the handler receives. */
const IN_MEMORY = (RECIPE?.text ?? "")
  .replace("limit: 100", "limit: 2")
  .replace("1 minute", "1 second")
  .replace('"hello"', "env.GREETING + typeof ctx.waitUntil")

describe("a Cloudflare Worker", () => {
  const project = new Project(NODE_24)
  let workerd: string
  let running: Running
  let port: number

  beforeAll(async () => {
    workerd = await findRuntime("workerd")
    await project.install("core", "fetch", "redis", "esbuild@0.28.2")
    project.write("build.cjs", BUILD)
    project.write("memory.ts", IN_MEMORY)
    await project.run("node", "build.cjs", "memory")
    port = await freePort()
    project.write("config.capnp", configOf(port, ["memory"]))
    running = project.start(workerd, ["serve", "config.capnp"])
    await Promise.race([
      until("workerd listens", async () => (await fetch(urlOf(0), { method: "OPTIONS" })).ok),
      running.ended.then(({ stderr }) => expect(stderr).toBe("workerd runs")),
    ])
  })
  afterAll(async () => {
    await running?.stop()
    project.remove()
  })

  const urlOf = (nth: number): string => `http://127.0.0.1:${port + nth}/`
  const ask = (nth: number, address: string): Promise<Response> =>
    fetch(urlOf(nth), { headers: { "CF-Connecting-IP": address } })

  it("counts clients by the address that Cloudflare reports, and admits them again after Retry-After", async () => {
    const [one, two, three] = [
      await ask(0, "192.0.2.1"),
      await ask(0, "192.0.2.1"),
      await ask(0, "192.0.2.1"),
    ]
    expect([one.status, two.status, three.status]).toEqual([200, 200, 429])
    expect(await one.text()).toBe("hello function")
    expect((await ask(0, "192.0.2.2")).status).toBe(200)
    const seconds = Number(three.headers.get("retry-after"))
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    expect((await ask(0, "192.0.2.1")).status).toBe(200)
  })

  it("logs warnings of the limiter", async () => {
    await fetch(urlOf(0))
    await until("the warning is logged", () => /SLUICE_\w+/.test(running.output()))
    expect(running.output()).toContain("[SLUICE_ADDRESS_UNKNOWN] SluiceWarning: ")
  })
})

/** Creates a bundle. wrangler replaces calls of `require` with a plugin instead. */
const BUILD = `
  const [name] = process.argv.slice(2)
  require("esbuild").buildSync({ entryPoints: [name + ".ts"], bundle: true, platform: "node", format: "esm",
    outfile: name + ".out.mjs", logLevel: "error",
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/');" } })`

/** Returns the configuration of workerd for these Workers, which listen on consecutive ports. */
function configOf(port: number, workers: readonly string[]): string {
  const services = workers.map(
    (name, nth) => `(name = "${name}-${nth}", worker = (
      modules = [(name = "${name}", esModule = embed "${name}.out.mjs")],
      bindings = [(name = "GREETING", text = "hello ")],
      compatibilityDate = "2026-08-04"))`,
  )
  const sockets = workers.map(
    (name, nth) =>
      `(name = "${name}-${nth}", address = "127.0.0.1:${port + nth}", http = (), service = "${name}-${nth}")`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (services = [${services}], sockets = [${sockets}]);\n`
}
