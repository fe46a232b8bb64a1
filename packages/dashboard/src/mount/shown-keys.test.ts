import { createLimiter } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { hashedKeys, plainKeys, valuesOf } from "./shown-keys.ts"

/** Returns the text of a client's counter under a rule with these fields. */
async function keyOf(
  field: string | readonly string[],
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const limiter = createLimiter({ field, limit: 1, window: "1 minute", fields: (name) => () => values[name] })
  let key: string | undefined
  limiter.on("decided", (_decision, [counter]) => {
    key = counter?.partition
  })
  await limiter.decide({ remoteAddress: "192.0.2.7" })
  return key as string
}

describe("the key of a client", () => {
  it.each<[string | readonly string[], Readonly<Record<string, string>>, readonly string[]]>([
    ["user", { user: "ada" }, ["ada"]],
    ["user", { user: "@ada" }, ["@ada"]],
    ["user", { user: "#7" }, ["#7"]],
    ["user", { user: "@3:ada" }, ["@3:ada"]],
    ["user", { user: "a:b, c" }, ["a:b, c"]],
    ["ip", {}, ["192.0.2.7"]],
    [["plan", "user"], { plan: "pro", user: "7:@x" }, ["pro", "7:@x"]],
    [["user", "ip"], { user: "ada" }, ["ada", "192.0.2.7"]],
    ["service", {}, []],
  ])("of the fields %o with %o has the values %o", async (field, values, expected) => {
    const key = await keyOf(field, values)
    expect(valuesOf(key)).toEqual(expected)
    expect(plainKeys.show(key)).toBe(expected.join(", "))
  })

  it("is its only value if the lengths in it are wrong, because another program may have written it", () => {
    for (const key of ["@1:a4x", "@1:a-3:", "@1:ax"]) expect(valuesOf(key)).toEqual([key])
  })

  it("is hashed with a secret of the process, always to the same text", () => {
    const [show, other] = [hashedKeys().show, hashedKeys().show]
    expect(show("ada")).toMatch(/^hash:[0-9a-f]{8}$/)
    expect(show("ada")).toBe(show("ada"))
    expect(show("ada")).not.toBe(show("eve"))
    expect(show("ada")).not.toBe(other("ada"))
  })

  it("has the same hash after thousands of other keys", () => {
    const { show } = hashedKeys()
    const first = show("ada")
    for (let i = 0; i < 10_001; i++) show(`client ${i}`)
    expect(show("ada")).toBe(first)
  })

  it("is known by its hash once it has been shown, and has an identifier in full length", () => {
    const { show, isShownAs, isHash, id } = hashedKeys()
    const shown = show("ada")
    expect([isShownAs("ada", shown), isShownAs("eve", shown), isShownAs("ada", "ada")]).toEqual([
      true,
      false,
      false,
    ])
    expect([isShownAs("", show("")), isShownAs("@shared", show("@shared"))]).toEqual([true, true])
    expect([isHash(shown), isHash("ada"), isHash(`${shown}0`)]).toEqual([true, false, false])
    expect(id("ada")).toMatch(new RegExp(`^${shown.slice("hash:".length)}[0-9a-f]{56}$`))
    expect(plainKeys.isShownAs("@3:pro1:7", "pro, 7")).toBe(true)
  })
})
