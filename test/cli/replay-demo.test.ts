import { beforeAll, describe, expect, it } from "vitest"
import { type ExampleServer, startServers } from "../../examples/src/demo/servers.ts"
import { startTraffic, untilMinuteHasRoom } from "../../examples/src/demo/traffic.ts"
import { useFolder } from "./folder.ts"
import { sluice } from "./in-process.ts"

/** The rules of the example apps. In Fastify, the rule of the route replaces the rule of the app. */
const RULES = {
  Express: "rules:\n  - { field: ip, limit: 100, window: 1 minute }\n",
  Koa: "rules:\n  - { field: ip, limit: 100, window: 1 minute }\n",
  Fastify: "rules:\n  - { field: ip, limit: 100, window: 1 minute, match: { path: / } }\n",
}
const SEARCH = "  - { name: search, field: ip, limit: 3, window: 1 second, match: { path: /search } }\n"

describe("the live traffic of the demo, logged with logFields", () => {
  const lines: Record<ExampleServer["framework"], string[]> = { Express: [], Fastify: [], Koa: [] }
  const { file } = useFolder()

  beforeAll(async () => {
    const servers = await startServers((framework) => (line) => lines[framework].push(line))
    try {
      await untilMinuteHasRoom(Date.now())
      await startTraffic(servers).done
    } finally {
      await Promise.all(servers.map((server) => server.close()))
    }
  }, 60_000)

  it.each(["Express", "Fastify", "Koa"] as const)("replays without a difference: %s", async (framework) => {
    const rules = file("rules.yaml", RULES[framework] + SEARCH)
    const log = file("app.log", `${lines[framework].join("\n")}\n`)
    const { out, err, code } = await sluice([
      "rules",
      "replay",
      rules,
      log,
      "--trusted-proxies",
      "loopback",
      "--json",
    ])
    expect(err).toBe("")
    expect(code).toBe(0)
    const { live, total } = JSON.parse(out)
    expect(live).toEqual({ compared: 179, different: 0, differences: [] })
    const refused = refusalsIn(lines[framework]).length
    expect(total).toMatchObject({ seen: 179, refused, clients: { seen: 3, refused: 2 } })
  })

  it("results in a sentence for each refusal", () => {
    const refusals = refusalsIn(lines.Express)
    const startOf = {
      search: "search refused the request: 3 of 3 units",
      "ip-1m": "ip-1m refused the request: 100 of 100",
    }
    for (const { ratelimit, msg } of refusals) expect(msg).toContain(startOf[ratelimit.policy])
    expect(refusals.filter(({ ratelimit }) => ratelimit.policy === "ip-1m")).toHaveLength(30)
  })
})

interface Line {
  readonly msg: string
  readonly ratelimit: { readonly allowed: boolean; readonly policy: "search" | "ip-1m" }
}

/**
 * Returns the lines of refused requests. On a busy machine, the requests for the limit of a second take longer than a
 * second, so that fewer of them are refused.
 */
function refusalsIn(lines: readonly string[]): Line[] {
  return lines.map((line): Line => JSON.parse(line)).filter(({ ratelimit }) => !ratelimit.allowed)
}
