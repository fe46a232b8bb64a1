import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { TOO_OLD } from "./nodes.ts"
import { programOf } from "./program.ts"
import { Project } from "./project.ts"

describe(`Node ${TOO_OLD}, which is too old`, () => {
  const project = new Project(TOO_OLD)
  let unfit: string[]
  beforeAll(async () => {
    unfit = await project.install("core")
  })
  afterAll(() => project.remove())

  it("gets a warning from npm during the installation", () => {
    expect(unfit).toContain("@sluice/core")
  })

  it("fails on require, because the package is an ES module", async () => {
    const folder = project.programs("commonjs")
    folder.write("program.js", programOf("commonjs", { "@sluice/core": ["createLimiter"] }, ""))
    const { code, stderr } = await folder.start("node", ["program.js"]).ended
    expect(code).toBe(1)
    const file = project.installed("@sluice/core", "dist/index.js")
    expect(stderr).toContain(`[ERR_REQUIRE_ESM]: require() of ES Module ${file} from `)
  })
})
