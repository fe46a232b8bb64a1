import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compile } from "./compile.ts"
import { ADAPTERS, frameworksOf, LIBRARIES } from "./manifests.ts"
import { NODE_24 } from "./nodes.ts"
import { MODULE_SYSTEMS, Project } from "./project.ts"
import { versionOf } from "./versions.ts"

const BESIDE = [
  ...ADAPTERS.flatMap(frameworksOf),
  "ioredis",
  "redis",
  "@aws-sdk/client-dynamodb",
  "@opentelemetry/api",
]
const TYPES = ["@types/express", "@types/koa"]

describe("TypeScript, strict", () => {
  const project = new Project(NODE_24)
  beforeAll(async () => {
    await project.install(
      ...LIBRARIES,
      ...[...BESIDE, ...TYPES, "typescript"].map(versionOf),
      "@types/node@24",
    )
  })
  afterAll(() => project.remove())

  it("accepts users' files, READMEs and all declarations with nodenext, in ES modules and CommonJS", async () => {
    expect(
      await compile(project, { moduleResolution: "nodenext", types: MODULE_SYSTEMS, names: LIBRARIES }),
    ).toEqual([])
  })

  it("accepts the same files with bundler, without checking declarations again", async () => {
    const bundled = { moduleResolution: "bundler", types: ["module"], skipLibCheck: true } as const
    expect(await compile(project, { ...bundled, names: LIBRARIES })).toEqual([])
  })
})
