import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blocksTestedBy } from "../docs/shown.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import type { Folder, Running } from "./folder.ts"
import { NODE_24 } from "./nodes.ts"
import { programOf } from "./program.ts"
import { Project } from "./project.ts"
import { COUNT_IN_REDIS, REDIS_CLIENTS } from "./redis-program.ts"
import { findRuntime } from "./runtimes.ts"
import { versionOf } from "./versions.ts"

// Runs the recipes of docs/start/fetch.md on the real frameworks and runtimes, and the core on Bun and Deno.

const NEXT = ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1"]
const SVELTEKIT = ["@sveltejs/kit@3.2.0", "@sveltejs/vite-plugin-svelte@7.3.1", "svelte@5.57.3", "vite@8.3.8"]
const FRAMEWORKS = [
  ...["hono", "@hono/node-server", "h3", "ioredis", "redis"].map(versionOf),
  versionOf("elysia"),
  "@elysiajs/node@1.4.5",
]

const recipes = blocksTestedBy("test/packages/fetch.check.ts", "docs/start/fetch.md", 7)
const [ON_HONO, ON_SVELTEKIT, ON_ELYSIA, ON_NEXT, ON_H3, ON_BUN, ON_DENO] = recipes.map(({ text }) => text)

type Headers = Readonly<Record<string, string>>

/** Sends a request from a local address, and resolves to the response's status and body. */
async function ask(url: string, headers: Headers = {}, localAddress = "127.0.0.1") {
  const sent = request(url, { headers, localAddress, agent: false }).end()
  const [response] = (await once(sent, "response")) as [IncomingMessage]
  let body = ""
  for await (const text of response.setEncoding("utf8")) body += text
  return { status: response.statusCode, headers: response.headers, body }
}

/** Waits until the program responds to this path, which should have no limit. */
async function started(running: Running, url: string): Promise<void> {
  let ended = false
  void running.ended.then(() => {
    ended = true
  })
  await until("the app answers", async () => ended || (await ask(url)).status !== undefined).catch(
    () => undefined,
  )
  if (ended) throw new Error(`The app has ended:\n${running.output()}`)
}

/**
 * Expects an app to admit 100 requests of a client, then to refuse this client, and still to admit another client.
 * `headersOf` returns the headers of the n-th request. A client must not become another client by its own headers.
 */
async function expectLimited(
  running: Running,
  url: string,
  headersOf: (n: number) => Headers,
  other: () => ReturnType<typeof ask>,
): Promise<void> {
  try {
    await started(running, url)
    let admitted = 0
    let last = await ask(url, headersOf(0))
    while (last.status === 200 && admitted < 250) last = await ask(url, headersOf(++admitted))
    expect({ ...last, output: last.status === 429 ? "" : running.output() }).toMatchObject({
      status: 429,
      output: "",
      headers: { "ratelimit-policy": '"ip-1m";q=100;w=60', "content-type": "application/problem+json" },
    })
    // The request that waited for the start may have been counted for this client. A minute may begin during the
    // requests.
    expect(admitted).toBeGreaterThanOrEqual(98)
    expect(await other()).toMatchObject({
      status: 200,
      body: "hello",
      headers: {
        "ratelimit-policy": '"ip-1m";q=100;w=60',
        ratelimit: expect.stringMatching(/^"ip-1m";r=9\d;t=/),
      },
    })
    expect(running.output()).not.toContain("SLUICE_ADDRESS_UNKNOWN")
    expect(running.output()).not.toContain("SLUICE_CREATED_IN_HANDLER")
  } finally {
    await running.stop()
  }
}

/** A client that pretends to be a different client with each request. */
const forging = (n: number): Headers => ({ "x-forwarded-for": `198.51.100.${n % 250}` })

/** Runs a recipe on another port, although its code contains port 3000. */
async function expectRecipe(folder: Folder, command: readonly string[], recipe = ""): Promise<void> {
  const port = await freePort()
  const file = `app-${port}.ts`
  expect(recipe.split("3000")).toHaveLength(2)
  expect(recipe.trim().split("\n").length).toBeLessThanOrEqual(25)
  folder.write(file, recipe.replace("3000", String(port)))
  const [program = "", ...args] = command
  const url = `http://127.0.0.1:${port}/`
  await expectLimited(folder.start(program, [...args, file]), url, forging, () => ask(url, {}, "127.0.0.2"))
}

describe("docs/start/fetch.md", () => {
  const project = new Project(NODE_24)
  const folder = project.programs("module")
  beforeAll(() => project.install("core", "redis", "fetch", ...FRAMEWORKS))
  afterAll(() => project.remove())

  it("limits requests with Hono on Node", () => expectRecipe(folder, ["node"], ON_HONO))
  it("limits requests with h3 on Node", () => expectRecipe(folder, ["node"], ON_H3))
  it("limits requests with Elysia on Node", () => expectRecipe(folder, ["node"], ON_ELYSIA))

  describe.each([
    ["bun", [], ON_BUN, "Bun.serve({ port: Number(process.env.PORT), fetch: handler })", "fromBun"],
    [
      "deno",
      ["run", "--allow-net"],
      ON_DENO,
      'Deno.serve({ port: Number(Deno.env.get("PORT")) }, handler)',
      "fromDeno",
    ],
  ] as const)("on %s", (name, args, recipe, serve, address) => {
    let runtime = ""
    let redis: RedisServer
    beforeAll(async () => {
      runtime = await findRuntime(name)
      redis = await startRedis()
    })
    afterAll(() => redis.stop())
    const all = name === "deno" ? ["run", "--allow-all"] : []

    it("limits requests", () => expectRecipe(folder, [runtime, ...args], recipe))

    it("limits requests with Hono", async () => {
      const own = `Bun.serve({ fetch: app.fetch, port: 3000 })`
      const served = name === "bun" ? own : "Deno.serve({ port: 3000 }, app.fetch)"
      const text = (ON_HONO ?? "")
        .replace('import { serve } from "@hono/node-server"\n', "")
        .replace(/^serve\(.*$/m, served)
      await expectRecipe(folder, [runtime, ...args], text)
    })

    it("limits requests with h3", () => expectRecipe(folder, [runtime, ...all], ON_H3))

    it("limits requests with Elysia", async () => {
      const app = (ON_ELYSIA ?? "").replace('import { node } from "@elysiajs/node"\n', "")
      const text =
        name === "bun"
          ? app.replace("{ adapter: node() }", "")
          : `import { Elysia } from "elysia"
const app = new Elysia().get("/", () => "hello")
${(ON_DENO ?? "").replace('() => new Response("hello")', "app.fetch")}`
      await expectRecipe(folder, [runtime, ...all], text)
    })

    it("counts in memory", async () => {
      folder.write("memory.js", IN_MEMORY)
      const ran = await folder.start(runtime, name === "deno" ? ["run", "memory.js"] : ["memory.js"]).ended
      expect(ran).toEqual({ code: 0, stdout: "true 1,true 0,false 0 true\nwaited\n", stderr: "" })
    })

    it.each(REDIS_CLIENTS)(
      "counts two processes together in Redis through $client",
      async ({ client, ...code }) => {
        const limiting = { "@sluice/core": ["createLimiter"], "@sluice/redis": ["redisStore"] }
        const body = `${code.open}\n${COUNT_IN_REDIS}\n${code.close}`
        folder.write("redis.js", programOf("module", { ...limiting, ...code.imports }, body))
        const env = { REDIS_URL: `redis://${redis.host}:${redis.port}`, PREFIX: `${client}-${name}:` }
        for (const stdout of ["[true,true,false]\n", "[false,false,false]\n"]) {
          expect(await folder.start(runtime, [...all, "redis.js"], env).ended).toEqual({
            code: 0,
            stdout,
            stderr: "",
          })
        }
      },
    )

    it("releases a held request when its client hangs up, and passes on an upgrade to a WebSocket", async () => {
      const PORT = String(await freePort())
      folder.write("holding.js", holding(address, serve))
      const running = folder.start(runtime, [...all, "holding.js"], { PORT })
      const url = `http://127.0.0.1:${PORT}`
      try {
        await started(running, `${url}/waiting`)
        const waiting = async (count: number) =>
          until(`${count} wait`, async () => (await ask(`${url}/waiting`)).body === String(count))
        expect((await ask(url)).status).toBe(200)
        const held = request(url, { agent: false })
          .on("error", () => undefined)
          .end()
        await waiting(1)
        held.destroy()
        await waiting(0)
        const upgrade = request(`${url}/socket`, {
          agent: false,
          headers: {
            Connection: "Upgrade",
            Upgrade: "websocket",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
          },
        }).end()
        const [response, socket] = await once(upgrade, "upgrade")
        socket.destroy()
        expect(response.statusCode).toBe(101)
      } finally {
        await running.stop()
      }
    })
  })
})

describe("docs/start/fetch.md on Next.js", () => {
  const project = new Project(NODE_24)
  beforeAll(() => project.install("core", "fetch", ...NEXT))
  afterAll(() => project.remove())

  it("limits requests as its proxy reports them", async () => {
    project.write("app/layout.js", "export default ({ children }) => <html><body>{children}</body></html>\n")
    project.write("app/api/hello/route.js", ON_NEXT ?? "")
    const port = await freePort()
    const env = { NEXT_TELEMETRY_DISABLED: "1" }
    const running = project.start("node", [...nextDev(project), "-H", "127.0.0.1", "-p", String(port)], env)
    const url = `http://127.0.0.1:${port}/api/hello`
    // The client writes the first address, and the proxy appends the second one.
    const proxied = (n: number) => ({ "x-forwarded-for": `198.51.100.${n % 250}, 203.0.113.7` })
    await expectLimited(running, url, proxied, () => ask(url, { "x-forwarded-for": "203.0.113.8" }))
  })
})

function nextDev(project: Project): readonly string[] {
  return [project.installed("next", "dist/bin/next"), "dev"]
}

describe("docs/start/fetch.md on SvelteKit", () => {
  const project = new Project(NODE_24)
  beforeAll(async () => {
    await project.install("core", "fetch", ...SVELTEKIT)
    const manifest = JSON.parse(project.read("package.json"))
    project.write("package.json", JSON.stringify({ ...manifest, type: "module" }))
    project.write("vite.config.js", KIT_CONFIG)
    project.write("src/app.html", "<html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>\n")
    project.write("src/routes/hello/+server.js", 'export const GET = () => new Response("hello")\n')
    project.write("src/routes/search/+page.svelte", "<p>results</p>\n")
    project.write("src/routes/search/+page.server.js", "export const load = () => ({})\n")
    project.write(
      "src/routes/asking/+page.svelte",
      "<script>let { data } = $props()</script><p>{data.text}</p>\n",
    )
    project.write("src/routes/asking/+page.server.js", ASKING)
    for (const page of ["one", "two"]) {
      project.write(`src/routes/${page}/+page.js`, "export const prerender = true\n")
      project.write(`src/routes/${page}/+page.svelte`, `<p>${page}</p>\n`)
    }
  })
  afterAll(() => project.remove())

  /** Starts the app with these hooks. */
  async function start(hooks: string): Promise<{ readonly running: Running; readonly origin: string }> {
    project.write("src/hooks.server.ts", hooks)
    const port = await freePort()
    const vite = project.installed("vite", "bin/vite.js")
    const running = project.start("node", [vite, "dev", "--host", "127.0.0.1", "--port", String(port)])
    return { running, origin: `http://127.0.0.1:${port}` }
  }

  it("limits requests", async () => {
    const { running, origin } = await start(ON_SVELTEKIT ?? "")
    await expectLimited(running, `${origin}/hello`, forging, () => ask(`${origin}/hello`, {}, "127.0.0.2"))
  })

  it("counts a page whose load function fetches from the app once", async () => {
    const { running, origin } = await start((ON_SVELTEKIT ?? "").replace("limit: 100,", "limit: 2,"))
    try {
      await started(running, `${origin}/hello`)
      const page = await ask(`${origin}/asking`, {}, "127.0.0.3")
      expect([page.status, page.headers.ratelimit]).toEqual([200, expect.stringContaining("r=1;")])
      expect(page.body).toContain("<p>hello</p>")
      expect((await ask(`${origin}/asking`, {}, "127.0.0.3")).body).toContain("<p>hello</p>")
      expect((await ask(`${origin}/asking`, {}, "127.0.0.3")).status).toBe(429)
    } finally {
      await running.stop()
    }
  })

  it("does not count the pages that a build renders", async () => {
    project.write("src/hooks.server.ts", (ON_SVELTEKIT ?? "").replace("limit: 100,", "limit: 1,"))
    const build = await project.start("node", [project.installed("vite", "bin/vite.js"), "build"]).ended
    expect({ ...build, stdout: "" }).toMatchObject({ code: 0 })
    for (const page of ["one", "two"]) {
      expect(project.read(`.svelte-kit/output/prerendered/pages/${page}.html`)).toContain(`<p>${page}</p>`)
    }
  })

  it("counts requests for the data of a page as requests for the page", async () => {
    const { running, origin } = await start(
      (ON_SVELTEKIT ?? "").replace("limit: 100,", 'limit: 1, match: { path: "/search" },'),
    )
    try {
      await started(running, `${origin}/hello`)
      expect((await ask(`${origin}/search`)).status).toBe(200)
      expect((await ask(`${origin}/search/__data.json`)).status).toBe(429)
      expect((await ask(`${origin}/search/__data.json`, {}, "127.0.0.2")).status).toBe(200)
    } finally {
      await running.stop()
    }
  })
})

const ASKING = `export const load = async ({ fetch }) => ({ text: await (await fetch("/hello")).text() })
`

const KIT_CONFIG = `import { sveltekit } from "@sveltejs/kit/vite"
export default { plugins: [sveltekit()] }
`

const IN_MEMORY = `import { createLimiter, memoryStore } from "@sluice/core"

const limiter = createLimiter({ limit: 2, window: "1 day", store: memoryStore() })
const client = { remoteAddress: "192.0.2.7" }
const decisions = []
for (let i = 0; i < 3; i++) decisions.push(await limiter.decide(client))
const [one, two, { allowed, remaining, retryAfterMs }] = decisions
console.log(\`\${one.allowed} \${one.remaining},\${two.allowed} \${two.remaining},\${allowed} \${remaining} \${retryAfterMs > 0}\`)
await limiter.close()
const queue = createLimiter({ limit: 100, window: "1 second", algorithm: "leaky-bucket" })
await Promise.all([queue.acquire(client), queue.acquire(client), queue.acquire(client)])
console.log("waited")
await queue.close()
`

/** Returns a server that makes every request after the first wait, except for /waiting and /socket. */
function holding(address: string, serve: string): string {
  return `import { ${address}, rateLimit } from "@sluice/fetch"

const limit = rateLimit({
  limit: 1,
  window: "1 hour",
  throttle: { kind: "queue", maxWaitMs: 3_600_000 },
  match: { path: "/" },
  clientAddress: ${address},
})
const handler = limit.wrap((request, server) => {
  if (!request.url.endsWith("/socket")) return new Response(String(limit.limiter.status.waiting))
  return ${address === "fromBun" ? "server.upgrade(request) ? undefined : new Response(null, { status: 400 })" : "Deno.upgradeWebSocket(request).response"}
})
${serve.replace("fetch: handler", "fetch: handler, websocket: { message() {} }")}
`
}
