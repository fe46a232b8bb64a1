import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

// What is published is what is tested here: the tarball of each package, unpacked into a project of its own, used by
// plain Node and by TypeScript. It needs the packages built; `pnpm test` and `pnpm check` build them first.

const ROOT = fileURLToPath(new URL("..", import.meta.url))

/** Each door with the exports that its documentation names. */
const DOCUMENTED: Readonly<Record<string, readonly string[]>> = {
  core: [
    "createLimiter",
    "memoryStore",
    "fileRules",
    "parseRuleDocument",
    "RateLimitExceededError",
    "InvalidRuleError",
    "InvalidOptionError",
    "StoreUnavailableError",
    "RuleSourceError",
    "RuleConflictError",
    "formatRuleDocument",
    "ClosedError",
  ],
  "core/redis": ["redisStore"],
  "core/dynamodb": ["dynamoDBRules", "dynamoDBRegistry"],
  "core/otel": ["instrument"],
  express: ["rateLimit"],
  fastify: ["rateLimit"],
  koa: ["rateLimit"],
}
const DOORS = Object.keys(DOCUMENTED)
const PACKAGES = DOORS.filter((door) => !door.includes("/"))
/** What a tarball has beside the build. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  core: ["dist/zod-MIT.txt", "errors.md", "rules.schema.json"],
}

/** Clients, and the like, that the core must not load, installed as decoys so that a lazy or guarded import would find them. */
const CLIENTS = ["ioredis", "redis", "@aws-sdk/client-dynamodb", "@opentelemetry/api"]

/** What a door imports by name must be there. */
const DECOYS: Readonly<Record<string, string>> = {
  "@aws-sdk/client-dynamodb": ["CreateTable", "DeleteItem", "DescribeTable", "GetItem", "Scan", "UpdateItem"]
    .map((name) => `exports.${name}Command = class {}`)
    .join("\n"),
  "@opentelemetry/api": ["metrics", "ValueType", "diag", "DiagLogLevel"]
    .map((name) => `exports.${name} = {}`)
    .join("\n"),
}

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const project = mkdtempSync(join(tmpdir(), "sluice-packaging-"))
const installed = (name: string): string => join(project, "node_modules", name)
const manifest = (name: string): Manifest =>
  JSON.parse(readFileSync(join(installed(`@sluice/${name}`), "package.json"), "utf8"))

beforeAll(() => {
  for (const name of PACKAGES) unpack(name)
  for (const name of PACKAGES) linkDependencies(name)
  for (const name of ["node", "express", "koa"]) linkTypes(name)
  for (const name of CLIENTS) {
    write(`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" }))
    write(`node_modules/${name}/index.js`, DECOYS[name] ?? "module.exports = {}")
  }
  write("package.json", JSON.stringify({ name: "consumer", private: true, type: "module" }))
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

describe.each(PACKAGES)("the tarball of @sluice/%s", (name) => {
  it("has the build, its manifest, the licence and nothing else", () => {
    const files = filesUnder(installed(`@sluice/${name}`))
    const expected = /^(dist\/[\w.-]+\.(js|d\.ts)|package\.json|README\.md|LICENSE)$/
    const others = files.filter((file) => !expected.test(file) || /\.test(-d)?\./.test(file))
    expect(others.sort()).toEqual(BESIDE[name] ?? [])
    expect(files).toEqual(
      expect.arrayContaining(["LICENSE", "dist/index.d.ts", "dist/index.js", "package.json"]),
    )
  })

  it("points each door at declarations first, then at one file for import and require", () => {
    const doors = Object.entries(manifest(name).exports).filter(([door]) => !door.endsWith(".json"))
    expect(doors.length).toBeGreaterThan(0)
    for (const [, conditions] of doors) {
      expect(Object.keys(conditions)).toEqual(["types", "default"])
      for (const file of Object.values(conditions)) {
        expect(existsSync(join(installed(`@sluice/${name}`), file))).toBe(true)
      }
    }
  })

  it("asks for versions that a registry knows", () => {
    const { dependencies = {}, peerDependencies = {} } = manifest(name)
    const ranges = Object.entries({ ...dependencies, ...peerDependencies })
    expect(ranges.filter(([, range]) => /^(workspace|link|file|catalog):/.test(range))).toEqual([])
  })
})

describe("the tarball of @sluice/cli", () => {
  beforeAll(() => {
    unpack("cli", "dist/main.js")
    linkDependencies("cli")
  })

  it("has the program and nothing else", () => {
    expect(filesUnder(installed("@sluice/cli")).sort()).toEqual(
      ["LICENSE", "README.md", "bin/sluice.js", "dist/main.js", "package.json"].sort(),
    )
  })

  it("runs where it is installed", () => {
    write("rules.yaml", "rules: { field: ip, limit: 5, window: 1 minute }\n")
    const program = join(installed("@sluice/cli"), "bin/sluice.js")
    expect(run(program, ["rules", "check", "rules.yaml"], project).stdout).toBe("1 service, 1 rule: ok\n")
  })
})

describe("the tarball of @sluice/service", () => {
  beforeAll(() => {
    unpack("service", "dist/main.js")
    linkDependencies("service")
  })

  it("has the program, the library, the proto files and nothing else", () => {
    const files = filesUnder(installed("@sluice/service"))
    const expected =
      /^(dist\/[\w.-]+\.(js|d\.ts)|proto\/[\w./]+\.proto|bin\/sluice-service\.js|package\.json|README\.md|LICENSE)$/
    expect(files.filter((file) => !expected.test(file))).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining([
        "LICENSE",
        "dist/main.js",
        "dist/index.js",
        "proto/sluice/v1/rate_limiter.proto",
      ]),
    )
  })

  it("runs where it is installed", () => {
    const program = join(installed("@sluice/service"), "bin/sluice-service.js")
    expect(run(program, ["--version"], project).stdout).toBe("0.0.0\n")
    expect(run(program, ["--help"], project).stdout).toContain("--rules <file>")
  })
})

describe.each(DOORS)("@sluice/%s", (name) => {
  it("is imported by an ES module and has every documented export", () => {
    write(
      "look.mjs",
      `import * as door from "@sluice/${name}"\nconsole.log(JSON.stringify(Object.keys(door)))`,
    )
    expect(missingExports(name, node("look.mjs"))).toEqual([])
  })

  it("is required by a CommonJS module and has every documented export", () => {
    write("look.cjs", `console.log(JSON.stringify(Object.keys(require("@sluice/${name}"))))`)
    expect(missingExports(name, node("look.cjs"))).toEqual([])
  })
})

describe("importing the core", () => {
  /** Each once: a module that is imported and required is both loaded and in the cache. */
  const clientsIn = (loaded: readonly string[]) => [
    ...new Set(
      loaded.filter((path) => /node_modules\/(ioredis|redis|@redis|@aws-sdk|@opentelemetry)\//.test(path)),
    ),
  ]
  it.each([
    ["@sluice/core", "index.js"],
    ["@sluice/core/redis", "redis.js"],
  ])("by %s loads no Redis client, no AWS SDK and no OpenTelemetry", (door, file) => {
    const loaded = modulesLoadedBy(`import "${door}"`)
    expect(loaded).toContain(`node_modules/@sluice/core/dist/${file}`)
    expect(clientsIn(loaded)).toEqual([])
  })

  it("by @sluice/core/otel loads OpenTelemetry's API, and no client", () => {
    const loaded = modulesLoadedBy('import "@sluice/core/otel"')
    expect(loaded).toContain("node_modules/@sluice/core/dist/otel.js")
    expect(clientsIn(loaded)).toEqual(["node_modules/@opentelemetry/api/index.js"])
  })

  it("by @sluice/core/dynamodb loads the client for DynamoDB, and no other", () => {
    const loaded = modulesLoadedBy('import "@sluice/core/dynamodb"')
    expect(loaded).toContain("node_modules/@sluice/core/dist/dynamodb.js")
    expect(clientsIn(loaded)).toEqual(["node_modules/@aws-sdk/client-dynamodb/index.js"])
  })

  it.each(CLIENTS)("would be seen to load %s", (name) => {
    expect(modulesLoadedBy(`import "${name}"`)).toContain(`node_modules/${name}/index.js`)
    expect(modulesLoadedBy(`require("${name}")`)).toContain(`node_modules/${name}/index.js`)
  })
})

const CONSUMER = `
import { createLimiter, fileRules, formatRuleDocument, memoryStore, parseRuleDocument } from "@sluice/core"
import { RateLimitExceededError, RuleConflictError } from "@sluice/core"
import type { Decision, RegisteredRules, Rule, RuleRegistry, RuleSource, Store } from "@sluice/core"
import { type DynamoDBRulesOptions, dynamoDBRegistry, dynamoDBRules } from "@sluice/core/dynamodb"
import { instrument } from "@sluice/core/otel"
import { redisStore, type RedisStoreOptions } from "@sluice/core/redis"
import { rateLimit as expressLimit } from "@sluice/express"
import { rateLimit as fastifyLimit } from "@sluice/fastify"
import { rateLimit as koaLimit } from "@sluice/koa"
import express from "express"
import fastify from "fastify"
import Koa from "koa"

const store: Store = memoryStore({ maxKeys: 1000 })
declare const client: RedisStoreOptions["client"]
const shared: Store = redisStore({ client, prefix: "app:" })
const source: RuleSource = fileRules("rules.yaml")
const rules: readonly Rule[] = parseRuleDocument({ service_id: "checkout", rules: [] })
declare const aws: DynamoDBRulesOptions["client"]
const stored: RuleSource = dynamoDBRules({ client: aws, tableName: "rules", pollMs: 5_000 })
const registry: RuleRegistry = dynamoDBRegistry({ client: aws, tableName: "rules" })
export const conflict = (error: unknown): RegisteredRules | undefined =>
  error instanceof RuleConflictError ? error.found : undefined
void registry.register("checkout", rules, { version: formatRuleDocument("checkout", rules, 7).version })
const limiter = createLimiter({ rules: rules.length > 0 ? stored : source, service: "checkout", store: shared ?? store })

const end: () => void = instrument(limiter, { name: "checkout" })
limiter.on("closed", end)

export async function decide(): Promise<Decision> {
  try {
    return await limiter.enforce({ remoteAddress: "192.0.2.1" }, { cost: 2 })
  } catch (error) {
    if (error instanceof RateLimitExceededError) console.log(error.code, rules.length)
    throw error
  }
}

express().use(expressLimit({ limit: 100, window: "1 minute" }))
new Koa().use(koaLimit({ limit: 100, window: "1 minute" }))
void fastify().register(fastifyLimit, { limit: 100, window: "1 minute" })

// @ts-expect-error a misspelt option is not accepted
createLimiter({ limt: 100, window: "1 minute" })
// @ts-expect-error nor by what measures
instrument(limiter, { nam: "checkout" })
// @ts-expect-error nor by a store
redisStore({ clint: client })
// @ts-expect-error nor by a source
dynamoDBRules({ client: aws, table: "rules" })
// @ts-expect-error nor by an adapter
expressLimit({ limit: 100, windw: "1 minute" })
// @ts-expect-error a decision's members are known
void decide().then(({ alowed }) => alowed)
`

const REQUIRING_CONSUMER = `
import core = require("@sluice/core")
import adapter = require("@sluice/express")
export const store: core.Store = core.memoryStore()
export const middleware = adapter.rateLimit({ limit: 100, window: "1 minute", store })
`

describe("TypeScript accepts a consumer", () => {
  it.each([
    { resolution: "nodenext", module: "nodenext", file: "consumer.ts", text: CONSUMER },
    { resolution: "bundler", module: "preserve", file: "consumer.ts", text: CONSUMER },
    { resolution: "nodenext", module: "nodenext", file: "consumer.cts", text: REQUIRING_CONSUMER },
  ])(
    "with $resolution resolution in $file",
    ({ resolution, module, file, text }) => {
      const compilerOptions = {
        target: "es2023",
        lib: ["es2023"],
        module,
        moduleResolution: resolution,
        types: ["node"],
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        skipLibCheck: true,
      }
      write(file, text)
      write("tsconfig.json", JSON.stringify({ compilerOptions, files: [file] }))
      expect(run(join(ROOT, "node_modules/.bin/tsc"), ["-p", project], project).stdout).toBe("")
    },
    60_000,
  )
})

/** Packs a package with the pnpm that runs the tests and unpacks it into the project. */
function unpack(name: string, built = "dist/index.js"): void {
  const source = join(ROOT, "packages", name)
  if (!existsSync(join(source, built))) throw new Error(`packages/${name} is not built: run pnpm build first`)
  const tarballs = join(project, "tarballs", name)
  mkdirSync(tarballs, { recursive: true })
  const [command, ...args] = pnpm()
  run(command, [...args, "pack", "--pack-destination", tarballs], source)
  const target = installed(`@sluice/${name}`)
  mkdirSync(target, { recursive: true })
  for (const tarball of readdirSync(tarballs)) {
    run("tar", ["-xzf", join(tarballs, tarball), "-C", target, "--strip-components=1"], project)
  }
}

/** The command line of pnpm: the one that runs the tests, else the version that the repository names. */
function pnpm(): [string, ...string[]] {
  const running = process.env.npm_execpath ?? ""
  if (/pnpm(\.[cm]?js)?$/.test(running)) return [process.execPath, realpathSync(running)]
  const { packageManager } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))
  return ["npx", "-y", packageManager]
}

/** Links what a packed package depends on out of the workspace, so that nothing is downloaded. */
function linkDependencies(name: string): void {
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest(name)
  for (const dependency of Object.keys({ ...dependencies, ...peerDependencies })) {
    // Of the clients that an app may have, none has to be there.
    if (peerDependenciesMeta[dependency]?.optional === true) continue
    if (!dependency.startsWith("@sluice/"))
      link(dependency, join(ROOT, "packages", name, "node_modules", dependency))
  }
}

function linkTypes(name: string): void {
  const places = [ROOT, ...PACKAGES.map((workspace) => join(ROOT, "packages", workspace))]
  const place = places.find((path) => existsSync(join(path, "node_modules/@types", name)))
  if (place !== undefined) link(`@types/${name}`, join(place, "node_modules/@types", name))
}

function link(name: string, target: string): void {
  if (existsSync(installed(name))) return
  mkdirSync(dirname(installed(name)), { recursive: true })
  symlinkSync(realpathSync(target), installed(name))
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true })
  writeFileSync(join(project, path), text)
}

/** What a script of the project prints. Node 20 warns that require() of ES modules is new; nothing else may warn. */
function node(...args: string[]): string {
  const { stdout, stderr } = run(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", ...args],
    project,
  )
  expect(stderr).toBe("")
  return stdout
}

function missingExports(name: string, printed: string): string[] {
  const found: unknown[] = JSON.parse(printed)
  return (DOCUMENTED[name] ?? []).filter((documented) => !found.includes(documented))
}

/** The files that Node loads for a script, ES modules and CommonJS, relative to the project. */
function modulesLoadedBy(script: string): string[] {
  const log = join(project, "loaded.txt")
  writeFileSync(log, "")
  write(
    "watcher.mjs",
    `import { appendFileSync } from "node:fs"
     export async function load(url, context, next) {
       appendFileSync(${JSON.stringify(log)}, url + "\\n")
       return next(url, context)
     }`,
  )
  write("register.mjs", 'import { register } from "node:module"\nregister("./watcher.mjs", import.meta.url)')
  write(
    "loading.mjs",
    `import { createRequire } from "node:module"
     const require = createRequire(import.meta.url)
     ${script}
     console.log(JSON.stringify(Object.keys(require.cache)))`,
  )
  const required: string[] = JSON.parse(node("--import", "./register.mjs", "loading.mjs"))
  const imported = readFileSync(log, "utf8")
    .split("\n")
    .filter((url) => url.startsWith("file:"))
  const here = realpathSync(project)
  return [...imported.map((url) => fileURLToPath(url)), ...required].map((path) => relative(here, path))
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

/** What a command prints; throws with all of it when the command fails. */
function run(command: string, args: readonly string[], cwd: string): { stdout: string; stderr: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}\n${stdout}${stderr}`)
  return { stdout, stderr }
}
