import { describe, expect, it } from "vitest"
import { keySlot } from "./key-slot.ts"

// test/redis/clients.test.ts compares the slots with the replies of a real server.
describe("keySlot", () => {
  it.each([
    ["the specification's example", "123456789", 0x31c3],
    ["an empty key", "", 0],
    ["only the text between braces", "{user1000}.following", keySlot("user1000")],
    ["only the text between the first pair of braces", "foo{bar}{zap}", keySlot("bar")],
    ["an inner brace as text", "foo{{bar}}zap", keySlot("{bar")],
    ["only the text between braces that follow other text", "x{bar}", keySlot("bar")],
    ["an unmatched closing brace as text", "a}{b}", keySlot("b")],
  ])("hashes %s", (_, key, slot) => {
    expect(keySlot(key)).toBe(slot)
  })

  it("hashes the whole key if its first pair of braces is empty or incomplete", () => {
    expect(keySlot("foo{}{bar}")).not.toBe(keySlot("bar"))
    expect(keySlot("foo{}{bar}")).not.toBe(keySlot(""))
    expect(keySlot("}a{b")).not.toBe(keySlot("b"))
    expect(keySlot("a}b")).not.toBe(keySlot("a"))
  })
})
