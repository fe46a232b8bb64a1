import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pairs } from "../test-length.ts"
import { NODE_20 } from "./nodes.ts"
import { Project } from "./project.ts"
import { versionOf } from "./versions.ts"

const GUIDE = readFileSync(new URL("../../docs/start/testing.md", import.meta.url), "utf8")
/** The configuration that the guide shows. */
const RECIPE = /^\/\/ jest\.config\.js$(.*?)^```$/ms.exec(GUIDE)?.[1] ?? ""
const BABEL = /\["babel-jest".*\]/.exec(RECIPE)?.[0] ?? ""

/** The recipe's transform, and the other transforms that the guide names. */
const TRANSFORMS: Readonly<Record<string, string>> = {
  "babel-jest": BABEL,
  "ts-jest":
    '["ts-jest", { tsconfig: { allowJs: true, module: "commonjs", esModuleInterop: true }, diagnostics: false }]',
  "@swc/jest": '["@swc/jest", { module: { type: "commonjs" } }]',
}
const TRANSFORMERS = [
  "@babel/core@7",
  "@babel/plugin-transform-modules-commonjs@7",
  "@swc/core@1",
  "@swc/jest@0.2",
]

const BODY = `
  test("the middleware limits, by a clock that the test moves", async () => {
    const clock = manualClock()
    const app = express().use(rateLimit({ limit: 1, window: "1 minute", clock }))
    app.get("/", (req, res) => res.end())
    const server = app.listen(0)
    const status = async () => (await fetch("http://127.0.0.1:" + server.address().port)).status
    expect([await status(), await status()]).toEqual([200, 429])
    clock.advance(61_000)
    expect(await status()).toBe(200)
    server.close()
  })

  test("a limiter reads a file in YAML", async () => {
    const limiter = createLimiter({ service: "checkout", rules: fileRules("rules.yaml") })
    const request = { url: "/", remoteAddress: "192.0.2.7" }
    const decisions = [await limiter.decide(request), await limiter.decide(request)]
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false])
    await limiter.close()
  })
`
const REQUIRED = `
  const { createLimiter } = require("@sluice/core")
  const { manualClock } = require("@sluice/core/testing")
  const { fileRules } = require("@sluice/rules")
  const { rateLimit } = require("@sluice/express")
  const express = require("express")
  ${BODY}`
const IMPORTED = `
  import { createLimiter } from "@sluice/core"
  import { manualClock } from "@sluice/core/testing"
  import { fileRules } from "@sluice/rules"
  import { rateLimit } from "@sluice/express"
  import express from "express"
  ${BODY}`

const VERSIONS = ["29.7.0", "30.5.2"]
const PAIRS = pairs(VERSIONS, Object.keys(TRANSFORMS))

describe.each(VERSIONS)("Jest %s", (version) => {
  const project = new Project(NODE_20)
  const named = ["jest", "babel-jest"].map((name) => `${name}@${version}`)
  beforeAll(async () => {
    const others = [`ts-jest@29`, versionOf("express"), "typescript@5.9.3", ...TRANSFORMERS]
    await project.install("core", "rules", "express", ...named, ...others)
    project.write("rules.yaml", "rules: [{ field: ip, limit: 1, window: 1 minute }]\n")
  })
  afterAll(() => project.remove())

  /** Runs a test, and returns Jest's exit code and output. */
  async function run(file: string, test: string, config: string, env?: Record<string, string>) {
    project.write(file, test)
    project.write("jest.config.js", config)
    const args = ["--runTestsByPath", file, "--no-cache"]
    const { code, stderr } = await project.start(project.installed(".bin", "jest"), args, env).ended
    return { code, stderr }
  }
  const passed = { code: 0, stderr: expect.stringContaining("Tests:       2 passed, 2 total") }

  it.each(PAIRS.filter(([jest]) => jest === version))(
    "%s runs tests in CommonJS by the recipe of the guide with %s",
    async (_jest, name) => {
      expect(RECIPE).toContain(BABEL)
      const config = RECIPE.replace(BABEL, () => TRANSFORMS[name] as string)
      expect(await run("app.test.js", REQUIRED, config)).toEqual(passed)
    },
  )

  it("runs tests that import, without a transform", async () => {
    const env = { NODE_OPTIONS: "--experimental-vm-modules" }
    const config = 'module.exports = { testMatch: ["**/*.mjs"], transform: {} }\n'
    expect(await run("app.test.mjs", IMPORTED, config, env)).toEqual(passed)
  })

  it.each(["", "--experimental-vm-modules"])(
    "without the recipe, fails with an error that names it (NODE_OPTIONS=%s)",
    async (NODE_OPTIONS) => {
      const { code, stderr } = await run("app.test.js", REQUIRED, "module.exports = {}\n", { NODE_OPTIONS })
      expect(code).toBe(1)
      expect(stderr).toContain(
        "Cannot load the ES modules of Sluice with require(). In Jest, transform @sluice, too.",
      )
    },
  )
})
