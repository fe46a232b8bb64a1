import { inspect } from "node:util"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { errorWithoutCredentials, withoutCredentials } from "./credentials.ts"
import { RuleSourceError, StoreUnavailableError } from "./errors.ts"

describe("a text without credentials", () => {
  it.each([
    ["redis://user:pw@host:6379/0", "redis://…@host:6379/0"],
    ["redis://:pw@host", "redis://…@host"],
    ["redis://token@host", "redis://…@host"],
    ["connect ENOENT //user:pw@host:6379", "connect ENOENT //…@host:6379"],
    ["http://user:p@w//o r/d#?@host:6379 failed", "http://…@host:6379 failed"],
    ["getaddrinfo ENOTFOUND user:pw@host", "getaddrinfo ENOTFOUND …@host"],
    ["user:p@w@host", "…@host"],
    ["first redis://a:b@c\nthen redis://d:e@f", "first redis://…@c\nthen redis://…@f"],
  ])("%j becomes %j", (text, clean) => {
    expect(withoutCredentials(text)).toBe(clean)
    expect(withoutCredentials(clean)).toBe(clean)
  })

  it.each([
    "no rules for bob@example.com",
    "redis://host:6379 is not a client; use redisStore of @sluice/core/redis",
    "User: arn:aws:sts::1:assumed-role/admin/bob@example.com is not authorized",
    "Cannot find module file:///work/node_modules/.pnpm/ioredis@5.4.1/index.js",
    "/work/node_modules/.pnpm/ioredis@5.4.1/index.js does not exist",
    "@sluice/core",
  ])("%j has none", (text) => {
    expect(withoutCredentials(text)).toBe(text)
  })

  it("is made in linear time, whatever the text", () => {
    for (const piece of [":", "//", "@", "://", " :@", "@sluice/", "//:@"]) {
      expect(withoutCredentials(`${piece.repeat(200_000)}@`)).toMatch(/@$/)
    }
  })
})

/** A part of a URL that no other part of these errors is, with what URLs have to escape. */
const part = fc
  .string({ unit: fc.constantFrom(..."abcXYZ019:/@#?%&=+ \\\"'.-_"), minLength: 1, maxLength: 20 })
  .map((text) => `S3cr${text}eT`)

describe("an error", () => {
  it("has no user and no password in anything that Node prints of it, whatever they are", () => {
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

  it("is the same one where it holds none", () => {
    const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { port: 6379 })
    const error = new Error("it failed", { cause })
    expect(errorWithoutCredentials(error)).toBe(error)
    for (const other of [undefined, null, 7, { url: "redis://a:b@c" }]) {
      expect(errorWithoutCredentials(other)).toBe(other)
    }
  })

  it("keeps its class, its code and its frames, and loses the command of ioredis", () => {
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

  it("may be its own cause, or have members that cannot be read", () => {
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
