import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { FRAMEWORKS, itCountsInRedis, itLimitsTheAppsOfTheReadmes } from "./checks.ts"
import { compile } from "./compile.ts"
import { NODE_20 } from "./nodes.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"

// The oldest of everything that a package.json says it works with: each range is tried where it begins.

/** The AWS SDK that `^3.0.0` begins with brings some 800 packages, among them those of mobile apps: minutes of installing. */
const TOO_DEAR = ["@aws-sdk/client-dynamodb"]
/** What has no types of its own, the oldest that go with it, and the oldest TypeScript that lets CommonJS import ES modules. */
const TYPES = ["@types/express@4.17.13", "@types/koa@2.14.0", "@types/node@20.19.0", "typescript@5.8.3"]

/** What npm is told to install of each peer of ours: `express@4.18.0` where the range is ">=4.18 <6". */
function lowestPeers(): string[] {
  const lowest = new Set<string>()
  for (const name of ["core", ...FRAMEWORKS]) {
    const { peerDependencies } = JSON.parse(
      readFileSync(new URL(`../../packages/${name}/package.json`, import.meta.url), "utf8"),
    )
    for (const [peer, range] of Object.entries<string>(peerDependencies)) {
      const [version] = /\d+(\.\d+)*/.exec(range) ?? []
      // A range of types begins where what they describe does.
      if (peer.startsWith("@types/") || TOO_DEAR.includes(peer)) continue
      if (version === undefined) throw new Error(`The range ${range} of ${peer} begins nowhere`)
      lowest.add(`${peer}@${[...version.split("."), "0", "0"].slice(0, 3).join(".")}`)
    }
  }
  return [...lowest]
}

describe("the lowest versions of all peers", () => {
  const project = new Project(NODE_20)
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
    expect(await project.install("core", ...FRAMEWORKS, ...lowestPeers(), ...TYPES)).toEqual([])
  })
  afterAll(async () => {
    await redis.stop()
    project.remove()
  })

  describe.each(MODULE_SYSTEMS)('"type": "%s"', (type) => {
    itLimitsTheAppsOfTheReadmes({ project, type })
    itCountsInRedis({ project, type }, () => `redis://${redis.host}:${redis.port}`)
  })

  it("have types that go with ours", async () => {
    // The quick starts: ioredis 5.0 does not have the name that the READMEs import further down.
    const quickStarts = { moduleResolution: "nodenext", types: MODULE_SYSTEMS, blocks: 1 } as const
    expect(await compile(project, { ...quickStarts, names: FRAMEWORKS })).toEqual([])
  })
})
