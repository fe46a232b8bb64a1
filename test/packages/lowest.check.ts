import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { forVersion6, itCountsInRedis, itLimitsTheAppsOfTheReadmes } from "./checks.ts"
import { compile } from "./compile.ts"
import { ADAPTERS, manifestOf } from "./manifests.ts"
import { NODE_20 } from "./nodes.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"
import { versionOf } from "./versions.ts"

// Checks the oldest supported version of each dependency, which is the start of its range in package.json.

/**
 * The oldest AWS SDK in `^3.0.0` consists of about 800 packages, including packages for mobile apps. That version
 * would take minutes to install.
 */
const TOO_DEAR = ["@aws-sdk/client-dynamodb"]
/**
 * The oldest matching types of packages without types, and the oldest TypeScript in which CommonJS can import ES
 * modules.
 */
const TYPES = ["@types/express@4.17.13", "@types/koa@2.14.0", "@types/node@20.19.0", "typescript@5.8.3"]

/** Returns the npm package specifiers of our peer dependencies: `express@4.18.0` for the range ">=4.18 <6". */
function lowestPeers(): string[] {
  const lowest = new Set<string>()
  for (const name of ["core", "redis", "rules", ...ADAPTERS]) {
    for (const [peer, range] of Object.entries(manifestOf(name).peerDependencies ?? {})) {
      const [version] = /\d+(\.\d+)*/.exec(range) ?? []
      // A range of types begins at the same version as the package that they describe.
      if (peer.startsWith("@types/") || TOO_DEAR.includes(peer)) continue
      if (version === undefined) throw new Error(`The range ${range} of ${peer} begins nowhere`)
      lowest.add(`${peer}@${[...version.split("."), "0", "0"].slice(0, 3).join(".")}`)
    }
  }
  return [...lowest]
}

/** The READMEs of @sluice/fetch and @sluice/nestjs show apps with packages that are not their peers. */
const SHOWN = [versionOf("@hono/node-server"), "@nestjs/platform-express@10.0.0"]

describe("the lowest versions of all peers", () => {
  const project = new Project(NODE_20)
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
    expect(
      await project.install("core", "redis", "rules", ...ADAPTERS, ...lowestPeers(), ...SHOWN, ...TYPES),
    ).toEqual([])
  })
  afterAll(async () => {
    await redis.stop()
    project.remove()
  })

  describe.each(MODULE_SYSTEMS)('"type": "%s"', (type) => {
    itLimitsTheAppsOfTheReadmes({ project, type })
    itCountsInRedis({ project, type }, () => `redis://${redis.host}:${redis.port}`)
  })

  it("have types that are compatible with the types of our packages", async () => {
    // Check only the quick starts, because ioredis 5.0 lacks the name that the READMEs import further down.
    const quickStarts = {
      moduleResolution: "nodenext",
      types: MODULE_SYSTEMS,
      blocks: 1,
      edit: forVersion6,
    } as const
    expect(await compile(project, { ...quickStarts, names: ADAPTERS })).toEqual([])
  })
})
