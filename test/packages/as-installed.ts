import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { itCountsInRedis, itLimitsTheAppsOfTheReadmes } from "./checks.ts"
import { filesLoadedBy } from "./loaded.ts"
import { ADAPTERS, frameworksOf, PACKAGES } from "./manifests.ts"
import { type Imports, programOf } from "./program.ts"
import { itRunsThePrograms } from "./program-checks.ts"
import { type ModuleSystem, Project } from "./project.ts"
import { versionOf } from "./versions.ts"

const CLIENTS = ["ioredis", "redis", "@aws-sdk/client-dynamodb", "@opentelemetry/api"]
const FILES_OF_CLIENTS = /\/node_modules\/(ioredis|redis|@redis|@aws-sdk|@smithy|@opentelemetry)\//

/** Imports that need no client of the app and do not load an installed client. */
const WITHOUT_CLIENT: Imports = {
  "@sluice/core": ["createLimiter"],
  "@sluice/dashboard": ["dashboard"],
  "@sluice/redis": ["redisStore"],
  "@sluice/recording": ["recordDecisions"],
  "@sluice/rules": ["fileRules"],
  "@sluice/scale": ["leasedStore"],
  "@sluice/core/adapters": ["createGuard"],
  "@sluice/core/kit": ["requireOptions"],
  "@sluice/core/replay": ["createReplay"],
  "@sluice/core/rules": ["parseRules"],
  "@sluice/core/stores": ["transactionalStore"],
  "@sluice/core/testing": ["manualClock"],
  ...Object.fromEntries(ADAPTERS.map((name) => [`@sluice/${name}`, []])),
}
/** Entry points that import a package of the app: the entry point, that package, and an export. */
const WITH_CLIENT = [
  ["@sluice/dynamodb", "@aws-sdk/client-dynamodb", "dynamoDBRules"],
  ["@sluice/otel", "@opentelemetry/api", "instrument"],
] as const
/**
 * Registers the tests of the installed packages on this version of Node, and in these module systems. `others` are npm
 * specifiers of packages in other versions than those of this repository.
 */
export function describeAsInstalled(
  node: string,
  types: readonly ModuleSystem[],
  others: readonly string[] = [],
): Project {
  const project = new Project(node)
  const frameworks = [
    "core",
    "dashboard",
    "logs",
    "recording",
    "redis",
    "rules",
    "scale",
    ...ADAPTERS,
    ...ADAPTERS.flatMap(frameworksOf)
      .filter((name) => !others.some((other) => other.startsWith(`${name}@`)))
      .map(versionOf),
    ...others,
  ]
  afterAll(() => project.remove())

  describe(`Node ${node}, with a framework and no client`, () => {
    beforeAll(async () => {
      expect(await project.install(...frameworks)).toEqual([])
    })

    describe.each(types)('"type": "%s"', (type) => {
      const folder = project.programs(type)
      itLimitsTheAppsOfTheReadmes({ project, type })

      it("runs code that needs no client, without a warning", async () => {
        folder.write("program.js", programOf(type, WITHOUT_CLIENT, "console.log(typeof redisStore)"))
        expect(await folder.run("node", "program.js")).toEqual({ code: 0, stdout: "function\n", stderr: "" })
      })
    })
  })

  describe(`Node ${node}, with clients`, () => {
    let redis: RedisServer
    beforeAll(async () => {
      redis = await startRedis()
      expect(await project.install(...PACKAGES, ...frameworks, ...CLIENTS.map(versionOf))).toEqual([])
    })
    afterAll(() => redis.stop())
    const url = () => `redis://${redis.host}:${redis.port}`

    describe.each(types)('"type": "%s"', (type) => {
      const folder = project.programs(type)
      itCountsInRedis({ project, type }, url)

      it("loads no client with the libraries that need none", async () => {
        const loaded = await filesLoadedBy(folder, programOf(type, WITHOUT_CLIENT, ""))
        for (const name of ["core", "redis"]) {
          expect(loaded).toContainEqual(
            expect.stringContaining(`/node_modules/@sluice/${name}/dist/index.js`),
          )
        }
        expect(loaded.filter((file) => FILES_OF_CLIENTS.test(file))).toEqual([])
        // The code that reads a rules file loads `yaml` only when it runs.
        expect(loaded.filter((file) => file.includes("/node_modules/yaml/"))).toEqual([])
      })

      it.each(WITH_CLIENT)("for %s, loads %s and no other client", async (entry, peer, name) => {
        const loaded = await filesLoadedBy(folder, programOf(type, { [entry]: [name] }, ""))
        expect(loaded).toContainEqual(expect.stringContaining(`/node_modules/${peer}/`))
        const clients = loaded
          .map((file) => FILES_OF_CLIENTS.exec(file)?.[1])
          .filter((found) => found !== undefined)
        // The AWS SDK consists of @smithy packages.
        const [scope] = peer.split("/")
        expect(clients.filter((found) => found !== scope && found !== "@smithy")).toEqual([])
      })
    })

    describe("programs", () => itRunsThePrograms(project, url))
  })
  return project
}
