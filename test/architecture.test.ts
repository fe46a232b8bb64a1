import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const ROOT = fileURLToPath(new URL("..", import.meta.url))

/** Path inside a tree to the file's text. */
type Files = Readonly<Record<string, string>>

/** A small tree that keeps every rule, with each kind of import that is allowed. */
const TIDY: Files = {
  "package.json": manifest({ devDependencies: ["vitest"] }),
  "packages/core/package.json": manifest({
    dependencies: ["zod"],
    peerDependencies: ["@aws-sdk/client-dynamodb", "@opentelemetry/api"],
    devDependencies: ["only-for-tests"],
  }),
  "packages/express/package.json": manifest({
    dependencies: ["@sluice/core"],
    peerDependencies: ["express"],
    devDependencies: ["express"],
  }),
  "packages/fastify/package.json": manifest({
    dependencies: ["@sluice/core", "fastify-plugin"],
    peerDependencies: ["fastify"],
    devDependencies: ["fastify"],
  }),
  "packages/koa/package.json": manifest({ dependencies: ["@sluice/core"], peerDependencies: ["koa"] }),
  "packages/contracts/package.json": manifest({ dependencies: ["@sluice/core", "expect"] }),
  "packages/cli/package.json": manifest({
    dependencies: ["@sluice/core", "commander", "@aws-sdk/client-dynamodb"],
  }),
  "packages/core/src/errors.ts": "export class Oops extends Error {}",
  "packages/core/src/policy.ts": "export interface Policy { limit: number }",
  "packages/core/src/duration.ts": 'import { Oops } from "./errors.ts"\nexport const fail = () => new Oops()',
  "packages/core/src/algorithms/algorithm.ts":
    'import type { Policy } from "../policy.ts"\nexport type Algorithm = Policy',
  "packages/core/src/algorithms/window.ts":
    'import type { Algorithm } from "./algorithm.ts"\nexport const w: Algorithm = { limit: 1 }',
  "packages/core/src/stores/store.ts":
    'import type { Algorithm } from "../algorithms/algorithm.ts"\nexport type Store = Algorithm',
  "packages/core/src/stores/memory.ts":
    'import { w } from "../algorithms/window.ts"\nimport type { Store } from "./store.ts"\nexport const m: Store = w',
  "packages/core/src/stores/redis/failure.ts": "export const failure = 1",
  "packages/core/src/stores/redis/scripts/reply.ts": "export const reply = 1",
  "packages/core/src/stores/redis/node/node.ts":
    'import { failure } from "../failure.ts"\nimport { reply } from "../scripts/reply.ts"\nexport const node = [failure, reply]',
  "packages/core/src/stores/redis/lane/lane.ts":
    'import { node } from "../node/node.ts"\nimport { reply } from "../scripts/reply.ts"\nexport const lane = [node, reply]',
  "packages/core/src/stores/redis/store.ts":
    'import type { Store } from "../store.ts"\nimport { lane } from "./lane/lane.ts"\nexport const s: Store = { limit: lane.length }',
  "packages/core/src/redis.ts": 'export { s } from "./stores/redis/store.ts"',
  "packages/core/src/stores/memory.test.ts":
    'import { it } from "vitest"\nimport "only-for-tests"\nimport { m } from "./memory.ts"\nit("is", () => m)',
  "packages/core/src/rules/rule.ts": 'import { z } from "zod"\nexport const rule = z',
  "packages/core/src/rules/source.ts":
    'import { rule } from "./rule.ts"\nexport type RuleSource = typeof rule',
  "packages/core/src/rules/file.ts":
    'import { readFile } from "node:fs/promises"\nimport type { RuleSource } from "./source.ts"\nexport const f: RuleSource = readFile',
  "packages/core/src/rules/registry.ts":
    'import type { rule } from "./rule.ts"\nexport type RuleRegistry = typeof rule',
  "packages/core/src/rules/dynamodb/registry.ts":
    'import { D } from "@aws-sdk/client-dynamodb"\nimport type { RuleRegistry } from "../registry.ts"\nexport const d: RuleRegistry = D',
  "packages/core/src/dynamodb.ts": 'export { d } from "./rules/dynamodb/registry.ts"',
  "packages/core/src/limiter/limiter.ts":
    'import type { Store } from "../stores/store.ts"\nexport const l: Store = { limit: 1 }',
  "packages/core/src/http/request.ts": "export interface RequestFacts { url?: string }",
  "packages/core/src/http/client/field.ts":
    'import type { RequestFacts } from "../request.ts"\nexport type Field = RequestFacts',
  "packages/core/src/http/client/field.test.ts": 'import { g } from "../guard/guard.ts"\nexport default g',
  "packages/core/src/http/headers.ts": "export const header = 1",
  "packages/core/src/http/rejection/problem.ts":
    'import { header } from "../headers.ts"\nexport const problem = header',
  "packages/core/src/http/rejection.ts":
    'import { problem } from "./rejection/problem.ts"\nexport const rejection = problem',
  "packages/core/src/http/rule-set/rule-set.ts":
    'import type { Field } from "../client/field.ts"\nimport { rejection } from "../rejection.ts"\nexport const set = (f: Field) => [f, rejection]',
  "packages/core/src/http/options/options.ts":
    'import { set } from "../rule-set/rule-set.ts"\nexport const options = set',
  "packages/core/src/http/asked.ts":
    'import { l } from "../limiter/limiter.ts"\nimport { rule } from "../rules/rule.ts"\nimport { m } from "../stores/memory.ts"\nimport { options } from "./options/options.ts"\nexport const asked = [l, rule, m, options]',
  "packages/core/src/http/guard/guard.ts":
    'import { asked } from "../asked.ts"\nimport type { RequestFacts } from "../request.ts"\nexport const g: RequestFacts[] = asked',
  "packages/core/src/otel/instrument.ts":
    'import { metrics } from "@opentelemetry/api"\nimport { asked } from "../http/asked.ts"\nexport const o = [metrics, asked]',
  "packages/core/src/otel.ts": 'export { o } from "./otel/instrument.ts"',
  "packages/core/src/index.ts":
    'export { g } from "./http/guard/guard.ts"\nexport { f } from "./rules/file.ts"\nexport { fail } from "./duration.ts"',
  "packages/express/src/index.ts":
    'import { g } from "@sluice/core"\nimport type { Request } from "express"\nexport const e = (r: Request) => [g, r]',
  "packages/fastify/src/index.ts":
    'import { g } from "@sluice/core"\nimport type { FastifyInstance } from "fastify"\nimport fp from "fastify-plugin"\nexport default (r: FastifyInstance) => [g, fp, r]',
  "packages/koa/src/index.ts":
    'import { g } from "@sluice/core"\nimport type { Context } from "koa"\nexport const k = (c: Context) => [g, c]',
  "packages/koa/src/index.test.ts":
    'import { it } from "vitest"\nimport { g } from "@sluice/core"\nimport { k } from "./index.ts"\nit("is", () => [g, k])',
  "packages/contracts/src/index.ts":
    'import { deepEqual } from "node:assert"\nimport { g } from "@sluice/core"\nimport { expect } from "expect"\nexport const c = [deepEqual, g, expect]',
  "packages/cli/src/main.ts":
    'import { readFile } from "node:fs/promises"\nimport { DynamoDBClient } from "@aws-sdk/client-dynamodb"\nimport { g } from "@sluice/core"\nimport { Command } from "commander"\nexport const m = [readFile, DynamoDBClient, g, Command]',
  "examples/app.ts": 'import express from "express"\nimport { e } from "@sluice/express"\nexpress().use(e)',
  "examples/app.test.ts": 'import "./app.ts"',
  "test/contract.ts":
    'import type { Store } from "../packages/core/src/stores/store.ts"\nexport const contract: Store = { limit: 1 }',
  "test/contract.test.ts": 'import { contract } from "./contract.ts"\nexport default contract',
  "bench/take.ts": 'import { g } from "@sluice/core"\nexport default g',
}

const CORE = "packages/core/src"

/** What breaks which rules: the file, its text, and exactly the rules that must be reported for it. */
const BREACHES: readonly (readonly [why: string, file: string, text: string, rules: readonly string[]])[] = [
  [
    "a ground file imports a room above it",
    `${CORE}/clock.ts`,
    'import { w } from "./algorithms/window.ts"\nexport const c = w',
    ["core-ground-imports-ground"],
  ],
  [
    "errors.ts imports another ground file",
    `${CORE}/errors.ts`,
    'import type { Policy } from "./policy.ts"\nexport class Oops extends Error { policy?: Policy }',
    ["core-errors-import-nothing"],
  ],
  [
    "an algorithm imports a store's type",
    `${CORE}/algorithms/up.ts`,
    'import type { Store } from "../stores/store.ts"\nexport type Up = Store',
    ["core-algorithms-imports-down"],
  ],
  [
    "a store imports a type of rules inline",
    `${CORE}/stores/inline.ts`,
    'import { type RuleSource } from "../rules/source.ts"\nexport type Up = RuleSource',
    ["core-stores-imports-down"],
  ],
  [
    "a store names a type by an import expression",
    `${CORE}/stores/expression.ts`,
    'export type Up = import("../limiter/limiter.ts").L',
    ["core-stores-imports-down"],
  ],
  [
    "rules re-export a type of stores",
    `${CORE}/rules/re-export.ts`,
    'export type { Store } from "../stores/store.ts"',
    ["core-rules-imports-down"],
  ],
  [
    "rules import an algorithm",
    `${CORE}/rules/algorithm.ts`,
    'import { w } from "../algorithms/window.ts"\nexport const up = w',
    ["core-rules-imports-down"],
  ],
  [
    "the limiter imports http lazily",
    `${CORE}/limiter/lazy.ts`,
    'export const up = () => import("../http/asked.ts")',
    ["core-limiter-imports-down"],
  ],
  [
    "the limiter imports a rule's type",
    `${CORE}/limiter/rule.ts`,
    'import type { rule } from "../rules/rule.ts"\nexport type Up = typeof rule',
    ["core-limiter-imports-down"],
  ],
  [
    "http imports a door",
    `${CORE}/http/door.ts`,
    'import { fail } from "../index.ts"\nexport const up = fail',
    ["core-http-imports-down"],
  ],
  [
    "who is asking imports a header",
    `${CORE}/http/client/header.ts`,
    'import { header } from "../headers.ts"\nexport const up = header',
    ["http-client-imports-down"],
  ],
  [
    "headers import a rejection",
    `${CORE}/http/headers/up.ts`,
    'import { rejection } from "../rejection.ts"\nexport const up = rejection',
    ["http-headers-imports-down"],
  ],
  [
    "a rejection imports a type of who is asking",
    `${CORE}/http/rejection/up.ts`,
    'export type { Field } from "../client/field.ts"',
    ["http-rejection-imports-down"],
  ],
  [
    "a rule set imports options",
    `${CORE}/http/rule-set/up.ts`,
    'import { options } from "../options/options.ts"\nexport const up = options',
    ["http-rule-set-imports-down"],
  ],
  [
    "options import what asks all parts",
    `${CORE}/http/options/up.ts`,
    'import { asked } from "../asked.ts"\nexport const up = asked',
    ["http-options-imports-down"],
  ],
  [
    "what every part of http may import imports a part",
    `${CORE}/http/callbacks.ts`,
    'export { header as up } from "./headers.ts"',
    ["http-shared-imports-down"],
  ],
  [
    "what speaks to a server imports what asks it",
    `${CORE}/stores/redis/node/up.ts`,
    'import { lane } from "../lane/lane.ts"\nexport const up = lane',
    ["stores-redis-node-imports-down"],
  ],
  [
    "a client of Redis imports what speaks by it",
    `${CORE}/stores/redis/clients/up.ts`,
    'import { node } from "../node/node.ts"\nexport const up = node',
    ["stores-redis-clients-imports-down"],
  ],
  [
    "what reads a script's reply imports the store",
    `${CORE}/stores/redis/scripts/up.ts`,
    'import type { s } from "../store.ts"\nexport type Up = typeof s',
    ["stores-redis-scripts-imports-down"],
  ],
  [
    "a lane imports the store",
    `${CORE}/stores/redis/lane/up.ts`,
    'import type { s } from "../store.ts"\nexport type Up = typeof s',
    ["stores-redis-lane-imports-down"],
  ],
  [
    "what the guard asks imports the guard",
    `${CORE}/http/up.ts`,
    'import type { g } from "./guard/guard.ts"\nexport type Up = typeof g',
    ["http-guard-on-top"],
  ],
  [
    "what measures imports the guard",
    `${CORE}/otel/up.ts`,
    'import type { g } from "../http/guard/guard.ts"\nexport type Up = typeof g',
    ["http-guard-on-top"],
  ],
  [
    "a file beside the rooms",
    `${CORE}/utils.ts`,
    'import type { Policy } from "./policy.ts"\nexport type Util = Policy',
    ["core-known-rooms"],
  ],
  [
    "a store imports a room that is not on the map",
    `${CORE}/stores/stray.ts`,
    'import type { Shed } from "../shed/shed.ts"\nexport type Stray = Shed',
    ["core-stores-imports-down"],
  ],
  [
    "a file in a room that is not on the map",
    `${CORE}/shed/shed.ts`,
    'export { Oops as Shed } from "../errors.ts"',
    ["core-known-rooms"],
  ],
  [
    "the algorithm port imports an algorithm",
    `${CORE}/algorithms/algorithm.ts`,
    'import type { plain } from "./plain.ts"\nexport type Algorithm = typeof plain',
    ["port-algorithms-algorithm"],
  ],
  [
    "the store port imports a store",
    `${CORE}/stores/store.ts`,
    'import type { plain } from "./plain.ts"\nexport type Store = typeof plain',
    ["port-stores-store"],
  ],
  [
    "the source port imports a source",
    `${CORE}/rules/source.ts`,
    'import type { plain } from "./plain.ts"\nexport type RuleSource = typeof plain',
    ["port-rules-source"],
  ],
  [
    "the request port imports what reads requests",
    `${CORE}/http/request.ts`,
    'import type { plain } from "./plain.ts"\nexport type RequestFacts = typeof plain',
    ["http-shared-imports-down", "port-http-request"],
  ],
  [
    "the core imports the type of a Redis client",
    `${CORE}/stores/ioredis.ts`,
    'import type { Redis } from "ioredis"\nexport type R = Redis',
    ["core-loads-no-client", "no-undeclared-dependency"],
  ],
  [
    "the core imports an AWS client where nothing knows DynamoDB",
    `${CORE}/rules/aws.ts`,
    'import { D } from "@aws-sdk/client-dynamodb"\nexport const d = D',
    ["core-loads-no-client"],
  ],
  [
    "what knows DynamoDB imports another client",
    `${CORE}/rules/dynamodb/redis.ts`,
    'import type { Redis } from "ioredis"\nexport type R = Redis',
    ["dynamodb-loads-its-client-alone", "no-undeclared-dependency"],
  ],
  [
    "a source beside DynamoDB's imports it",
    `${CORE}/rules/aside.ts`,
    'import type { d } from "./dynamodb/registry.ts"\nexport type Aside = typeof d',
    ["dynamodb-by-its-own-door"],
  ],
  [
    "the Redis door leads to DynamoDB",
    `${CORE}/redis.ts`,
    'export { d } from "./rules/dynamodb/registry.ts"',
    ["dynamodb-by-its-own-door"],
  ],
  [
    "what measures imports OpenTelemetry's SDK",
    `${CORE}/otel/sdk.ts`,
    'import { MeterProvider } from "@opentelemetry/sdk-metrics"\nexport const p = MeterProvider',
    ["no-undeclared-dependency", "otel-loads-its-api-alone"],
  ],
  [
    "another room imports OpenTelemetry's API",
    `${CORE}/http/measured.ts`,
    'import { metrics } from "@opentelemetry/api"\nexport const m = metrics',
    ["otel-by-its-own-door"],
  ],
  [
    "the DynamoDB door leads to what measures",
    `${CORE}/dynamodb.ts`,
    'export { o } from "./otel/instrument.ts"',
    ["otel-by-its-own-door"],
  ],
  [
    "the registry port imports a registry",
    `${CORE}/rules/registry.ts`,
    'import type { plain } from "./plain.ts"\nexport type RuleRegistry = typeof plain',
    ["port-rules-registry"],
  ],
  [
    "the core imports a framework's type",
    `${CORE}/http/framework.ts`,
    'import type { Request } from "express"\nexport type R = Request',
    ["core-imports-no-adapter", "no-undeclared-dependency"],
  ],
  [
    "the core imports a dependency for development",
    `${CORE}/http/dev.ts`,
    'import dev from "only-for-tests"\nexport default dev',
    ["no-dev-dependency-in-core"],
  ],
  [
    "the core imports what only the root declares",
    `${CORE}/http/root.ts`,
    'import { it } from "vitest"\nexport const i = it',
    ["no-undeclared-dependency"],
  ],
  [
    "an import leads nowhere",
    `${CORE}/http/nowhere.ts`,
    'import { gone } from "./gone.ts"\nexport const n = gone',
    ["no-unresolvable"],
  ],
  [
    "a file that nothing imports and that imports nothing",
    `${CORE}/http/left-over.ts`,
    "export const left = 1",
    ["no-orphans"],
  ],
  [
    "two files that import each other's types",
    `${CORE}/http/chicken.ts`,
    'import type { Egg } from "./egg.ts"\nexport type Chicken = Egg[]',
    ["no-circular"],
  ],
  [
    "an adapter imports a path inside the core",
    "packages/express/src/inside.ts",
    'import { g } from "../../core/src/http/guard/guard.ts"\nexport const i = g',
    ["express-imports-core-and-its-framework", "packages-by-their-names"],
  ],
  [
    "an adapter imports the core's door by path",
    "packages/koa/src/by-path.ts",
    'import type { g } from "../../core/src/index.ts"\nexport type I = typeof g',
    ["packages-by-their-names"],
  ],
  [
    "an adapter's test imports a path inside the core",
    "packages/fastify/src/inside.test.ts",
    'import { g } from "../../core/src/http/guard/guard.ts"\nexport const i = g',
    ["packages-by-their-names"],
  ],
  [
    "the program imports an adapter",
    "packages/cli/src/adapter.ts",
    'import { e } from "@sluice/express"\nexport const i = e',
    ["cli-imports-core-and-its-own-packages"],
  ],
  [
    "the program imports a Redis client",
    "packages/cli/src/redis.ts",
    'import { Redis } from "ioredis"\nexport const r = Redis',
    ["cli-imports-core-and-its-own-packages", "no-undeclared-dependency"],
  ],
  [
    "an adapter imports another adapter",
    "packages/koa/src/sibling.ts",
    'import { e } from "@sluice/express"\nexport const i = e',
    ["koa-imports-core-and-its-framework"],
  ],
  [
    "an adapter imports another framework",
    "packages/fastify/src/other.ts",
    'import type { Request } from "express"\nexport type R = Request',
    ["fastify-imports-core-and-its-framework", "no-undeclared-dependency"],
  ],
  [
    "a package imports a test",
    "packages/koa/src/tested.test.ts",
    'import { contract } from "../../../test/contract.ts"\nexport default contract',
    ["packages-stand-alone"],
  ],
  [
    "a contract imports a test runner",
    "packages/contracts/src/runner.ts",
    'import { it } from "vitest"\nexport { it }',
    ["contracts-import-core-and-their-own-packages", "no-undeclared-dependency"],
  ],
  [
    "somebody imports what has no purpose by its name",
    `${CORE}/rules/tidy.ts`,
    'import { any } from "./utils.ts"\nexport const tidy = any',
    ["named-for-its-purpose"],
  ],
  [
    "an example imports a path inside a package",
    "examples/inside.ts",
    'import { e } from "../packages/express/src/index.ts"\nexport default e',
    ["examples-use-public-names"],
  ],
  [
    "an example imports a test",
    "examples/tested.ts",
    'import { contract } from "../test/contract.ts"\nexport default contract',
    ["examples-stand-alone"],
  ],
]

/** What the breaches need beside them; not a breach by itself. */
const ACCOMPLICES: Files = {
  ...Object.fromEntries(
    ["algorithms", "stores", "rules", "http"].map((room) => [
      `${CORE}/${room}/plain.ts`,
      "export const plain = 1",
    ]),
  ),
  [`${CORE}/rules/utils.ts`]: "export const any = 1",
  [`${CORE}/http/egg.ts`]: 'import type { Chicken } from "./chicken.ts"\nexport type Egg = Chicken[]',
}

const PACKAGES = [
  "@aws-sdk/client-dynamodb",
  "@opentelemetry/api",
  "@opentelemetry/sdk-metrics",
  "commander",
  "expect",
  "express",
  "fastify",
  "fastify-plugin",
  "ioredis",
  "koa",
  "only-for-tests",
  "vitest",
  "zod",
]

interface Violation {
  readonly from: string
  readonly rule: { readonly name: string }
}

const trees: string[] = []
afterAll(() => {
  for (const tree of trees) rmSync(tree, { recursive: true, force: true })
})

describe("the machine that checks import direction", () => {
  it("finds nothing in a tree that keeps every rule", () => {
    expect(cruise(TIDY)).toEqual({ failed: false, violations: [] })
  })

  describe("reports", () => {
    let found: ReturnType<typeof cruise>

    beforeAll(() => {
      const breaches = Object.fromEntries(BREACHES.map(([, file, text]) => [file, text]))
      found = cruise({ ...TIDY, ...ACCOMPLICES, ...breaches })
    })

    it("a failure to whoever runs it", () => {
      expect(found.failed).toBe(true)
    })

    it.each(BREACHES)("%s", (_why, file, _text, rules) => {
      const broken = found.violations.filter(({ from }) => from === file).map(({ rule }) => rule.name)
      expect([...new Set(broken)].sort()).toEqual([...rules].sort())
    })

    it("nothing about the files beside the breaches", () => {
      const breaching = new Set(BREACHES.map(([, file]) => file))
      const innocent = found.violations.filter(({ from }) => !breaching.has(from))
      expect(innocent.map(({ from, rule }) => `${from} ${rule.name}`)).toEqual([])
    })
  })
})

/** Runs the repository's own configuration over a tree of these files. */
function cruise(files: Files): { failed: boolean; violations: readonly Violation[] } {
  const tree = mkdtempSync(join(tmpdir(), "sluice-architecture-"))
  trees.push(tree)
  for (const name of ["tsconfig.json", "tsconfig.base.json"]) copyFileSync(join(ROOT, name), join(tree, name))
  for (const [path, text] of Object.entries({ ...files, ...installed() })) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text)
  }
  const depcruise = join(ROOT, "node_modules/.bin/depcruise")
  const args = ["--config", join(ROOT, ".dependency-cruiser.mjs"), "packages", "examples", "test", "bench"]
  const json = spawnSync(depcruise, [...args, "--output-type", "json"], { cwd: tree, encoding: "utf8" })
  const plain = spawnSync(depcruise, args, { cwd: tree, encoding: "utf8" })
  return { failed: plain.status !== 0, violations: JSON.parse(json.stdout).summary.violations }
}

function installed(): Files {
  return Object.fromEntries(
    PACKAGES.flatMap((name) => [
      [`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" })],
      [`node_modules/${name}/index.js`, "module.exports = {}"],
    ]),
  )
}

function manifest(dependencies: Readonly<Record<string, readonly string[]>>): string {
  const versions = Object.entries(dependencies).map(([kind, names]) => [
    kind,
    Object.fromEntries(names.map((name) => [name, "1.0.0"])),
  ])
  return JSON.stringify({
    name: "fixture",
    version: "1.0.0",
    type: "module",
    ...Object.fromEntries(versions),
  })
}
