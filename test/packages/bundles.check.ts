import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pairs } from "../test-length.ts"
import { NODE_20 } from "./nodes.ts"
import { Project } from "./project.ts"

/** Reads the rules file in the command line, and prints three decisions or the problem. */
const APP = `
  import { createLimiter } from "@sluice/core"
  import { fileRules } from "@sluice/rules"
  async function main() {
    const limiter = createLimiter({ service: "checkout", rules: fileRules(process.argv[2]) })
    const allowed = []
    for (let i = 0; i < 3; i++) {
      allowed.push((await limiter.decide({ url: "/", remoteAddress: "192.0.2.7" })).allowed)
    }
    console.log(String(allowed))
    await limiter.close()
  }
  main().catch((error) => console.log(error.message))
`
const YAML = "rules:\n  - { name: a, field: ip, limit: 2, window: 1 minute }\n"
const WRONG_JSON = '{"rules":[{"name":"a","field":"ip","limit":0,"window":"1 minute"}]}'
/** The first line of the README's advice about ES modules in esbuild. */
const BANNER = /--banner:js="(.*)"/

/** Creates a bundle, by a program that is passed to `node --eval`. */
const esbuild = (options: object) => `
  const [banner] = require("node:fs").readFileSync("node_modules/@sluice/core/README.md", "utf8").match(${BANNER}).slice(1)
  const options = ${JSON.stringify(options)}
  require("esbuild").buildSync({ entryPoints: ["app.mjs"], bundle: true, platform: "node", logLevel: "error", ...options,
    ...(options.format === "esm" && { banner: { js: banner } }) })`
const webpack = (externals: object) => `
  require("webpack")({ mode: "production", target: "node20", entry: "./app.mjs", devtool: false, externals: ${JSON.stringify(externals)},
    output: { path: __dirname, filename: "bundle.cjs" } }, (error, stats) => {
    if (error || stats.hasErrors()) throw error ?? new Error(stats.toString())
  })`

describe("a bundled app", () => {
  const project = new Project(NODE_20)
  beforeAll(async () => {
    await project.install("core", "rules", "esbuild@0.28.2", "webpack@5.99.9", "@vercel/nft@0.29.4")
    project.write("app.mjs", APP)
    project.write("rules.yaml", YAML)
    project.write("wrong.json", WRONG_JSON)
  })
  afterAll(() => project.remove())

  const bundlers: readonly [string, (external: readonly string[]) => string, string][] = [
    [
      "esbuild as CommonJS",
      (external) => esbuild({ format: "cjs", external, outfile: "bundle.cjs" }),
      "bundle.cjs",
    ],
    [
      "esbuild as an ES module",
      (external) => esbuild({ format: "esm", external, outfile: "bundle.mjs" }),
      "bundle.mjs",
    ],
    [
      "webpack",
      (external) => webpack(external.map((name) => ({ [name]: `commonjs ${name}` }))),
      "bundle.cjs",
    ],
  ]
  it.each(
    pairs(bundlers, [[], ["yaml"]]).map(
      ([[by, programOf, bundle], external]) => [by, external, programOf, bundle] as const,
    ),
  )(
    "by %s, without %j, reads YAML, and shows the place of a problem in JSON",
    async (_by, external, programOf, bundle) => {
      project.write("build.cjs", programOf(external))
      await project.run("node", "build.cjs")
      expect((await project.run("node", bundle, "rules.yaml")).stdout).toBe("true,true,false\n")
      expect((await project.run("node", bundle, "wrong.json")).stdout).toContain(
        "(line 1, column 36): 0 is not a limit",
      )
    },
  )

  it("gets yaml from tools that copy only the files in use, as serverless platforms do", async () => {
    project.write(
      "trace.mjs",
      `import { nodeFileTrace } from "@vercel/nft"
      const { fileList } = await nodeFileTrace(["app.mjs"])
      console.log([...fileList].join("\\n"))`,
    )
    const { stdout } = await project.run("node", "trace.mjs")
    expect(stdout.split("\n")).toContain("node_modules/@sluice/rules/dist/yaml.cjs")
    expect(stdout.split("\n")).toContain("node_modules/yaml/dist/index.js")
  })
})
