import { inspect } from "node:util"
import { runInNewContext } from "node:vm"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"
import { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "./errors.ts"

describe("withoutCredentials()", () => {
  it.each([
    ["redis://user:pw@host:6379/0", "redis://…@host:6379/0"],
    ["redis://:pw@host", "redis://…@host"],
    ["redis://token@host", "redis://…@host"],
    ["connect ENOENT //user:pw@host:6379", "connect ENOENT //…@host:6379"],
    ["http://user:p@w//o r/d#?@host:6379 failed", "http://…@host:6379 failed"],
    ["getaddrinfo ENOTFOUND user:pw@host", "getaddrinfo ENOTFOUND …@host"],
    ["user:p@w@host", "…@host"],
    ["redis://cache:6379?password=pw", "redis://cache:6379?…"],
    ['"https://host/r.yaml?token=pw&x=1": 403', '"https://host/r.yaml?…": 403'],
    ["stat '/app/https:/host/r.yaml?token=pw'", "stat '/app/https:/host/r.yaml?…'"],
    ["https://host/r.yaml?pw", "https://host/r.yaml?…"],
    ["http://user:p?a=w@host?token=pw failed", "http://…@host?… failed"],
    ["unknown option --redis-password=pw", "unknown option --redis-password=…"],
    ['{"host":"h","password":"p w","db":1}', '{"host":"h","password":…,"db":1}'],
    ["{ secretAccessKey: 'p\\'w', region: 'eu' }", "{ secretAccessKey: …, region: 'eu' }"],
    ["first redis://a:b@c\nthen redis://d:e@f", "first redis://…@c\nthen redis://…@f"],
  ])("converts %j to %j", (text, clean) => {
    expect(withoutCredentials(text)).toBe(clean)
    expect(withoutCredentials(clean)).toBe(clean)
  })

  it.each([
    "no rules for bob@example.com",
    "redis://host:6379 is not a client; use redisStore of @sluice/redis",
    "User: arn:aws:sts::1:assumed-role/admin/bob@example.com is not authorized",
    "Cannot find module file:///work/node_modules/.pnpm/ioredis@5.4.1/index.js",
    "/work/node_modules/.pnpm/ioredis@5.4.1/index.js does not exist",
    "@sluice/core",
    "unexpected token: expected a token=> at https://host/r.yaml",
    "Is it https://host/r.yaml?",
  ])("returns %j unchanged", (text) => {
    expect(withoutCredentials(text)).toBe(text)
  })

  it("takes linear time for any string", () => {
    for (const piece of [":", "//", "@", "://", " :@", "@sluice/", "//:@"]) {
      expect(withoutCredentials(`${piece.repeat(200_000)}@`)).toMatch(/@$/)
    }
  })
})

/**
 * A part of a URL that differs from all other parts of these errors. The part contains characters that URLs have to
 * escape.
 */
const part = fc
  .string({ unit: fc.constantFrom(..."abcXYZ019:/@#?%&=+ \\\"'.-_"), minLength: 1, maxLength: 20 })
  .map((text) => `S3cr${text}eT`)

/** Returns an error whose message was replaced after its stack was captured. */
function changed(error: Error): Error {
  String(error.stack)
  error.message = "short"
  return error
}

describe("an error", () => {
  it("shows neither user nor password when Node prints it, whatever characters they contain", () => {
    fc.assert(
      fc.property(part, part, fc.constantFrom("http:", "redis:", ""), (user, password, protocol) => {
        const url = `${protocol}//${user}:${password}@host:6379`
        const node = Object.assign(new Error(`connect ENOENT ${url}`), { code: "ENOENT", address: url })
        const causes = new AggregateError([node], "all failed", { cause: url })
        for (const error of [
          new StoreUnavailableError(`Redis at ${url} failed: ${node.message}`, { cause: node }),
          new RuleSourceError("The rules cannot be read", { cause: new Error("twice", { cause: causes }) }),
        ]) {
          const printed = inspect(error, { depth: null, showHidden: true })
          expect(printed).not.toContain("S3cr")
          expect(printed).toContain("ENOENT")
        }
      }),
    )
  })

  it("is returned as the same object if it contains no credentials", () => {
    const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { port: 6379 })
    const error = new Error("it failed", { cause })
    expect(errorWithoutCredentials(error)).toBe(error)
    for (const other of [undefined, null, 7, { url: "redis://host" }, ["a"], new Map([["port", 6379]])]) {
      expect(errorWithoutCredentials(other)).toBe(other)
    }
  })

  it("keeps its class, code and stack, but not the ioredis command with its arguments", () => {
    class ReplyError extends Error {
      override readonly name = "ReplyError"
      readonly command = { name: "auth", args: ["user", "pw"] }
      readonly code = 7
    }
    const error = new ReplyError("WRONGPASS")
    const copy = errorWithoutCredentials(error) as ReplyError
    expect(copy).toBeInstanceOf(ReplyError)
    expect(copy).toMatchObject({ name: "ReplyError", message: "WRONGPASS", code: 7, stack: error.stack })
    expect(inspect(copy)).not.toContain("pw")
  })

  const url = "redis://user:S3cret@host:6379"
  it.each<[string, unknown]>([
    ["a member that is an object", Object.assign(new Error("403"), { config: { url, headers: {} } })],
    ["an object that was thrown", { message: `connect ENOENT ${url}` }],
    ["an object as a cause", new Error("x", { cause: { options: [{ url }] } })],
    ["an error of another realm", runInNewContext(`new Error("connect ENOENT ${url}")`)],
    ["the name", Object.assign(new Error("x"), { name: `Error at ${url}` })],
    ["a member under a symbol", Object.assign(new Error("x"), { [Symbol("url")]: url })],
    ["a member that is a URL", Object.assign(new Error("x"), { url: new URL(url) })],
    ["a member that is a map", Object.assign(new Error("x"), { hosts: new Map([["first", url]]) })],
    ["a member named like a secret", Object.assign(new Error("x"), { accessToken: "S3cret" })],
    ["a header", Object.assign(new Error("x"), { headers: { Authorization: "Bearer S3cret" } })],
    ["the stack of a message that was changed", changed(new Error(`connect ENOENT ${url}`))],
    [
      "a message beside a member that cannot be read",
      Object.defineProperty(new Error(url), "detail", {
        get() {
          throw new Error("no")
        },
      }),
    ],
  ])("contains no password in %s", (_, thrown) => {
    const { cause } = new RuleSourceError("The rules cannot be read", { cause: thrown })
    expect(`${inspect(cause, { depth: 9, showHidden: true })} ${(cause as Error).stack}`).not.toContain(
      "S3cret",
    )
    expect(inspect(thrown, { depth: 9, showHidden: true })).toContain("S3cret")
  })

  it("contains no password in its problems", () => {
    const problem = { path: "rules[0]", message: `${url} is not a URL`, rule: url, line: 7 }
    expect(new InvalidRuleError([problem]).problems).toEqual([
      { path: "rules[0]", message: "redis://…@host:6379 is not a URL", rule: "redis://…@host:6379", line: 7 },
    ])
  })

  it("keeps only about 200 members, because the search is limited", () => {
    let reads = 0
    const socket = () =>
      new Proxy(
        {},
        {
          ownKeys: () => Array.from({ length: 50 }, (_, index) => `member${index}`),
          getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
          get: () => {
            reads++
            return reads > 300 ? url : socket()
          },
        },
      )
    const error = Object.assign(new Error("403"), { response: socket() })
    expect(inspect(errorWithoutCredentials(error), { depth: 20 })).not.toContain("S3cret")
    expect(reads).toBeLessThan(1_000)
  })

  it("may be its own cause, or have members whose getters throw", () => {
    const own = new Error("redis://user:pw@host")
    own.cause = own
    expect(inspect(errorWithoutCredentials(own), { depth: null })).not.toContain("pw")
    const failing = Object.defineProperty(new Error("x"), "detail", {
      get() {
        throw new Error("no")
      },
    })
    expect(errorWithoutCredentials(failing)).toBe(failing)
  })
})
