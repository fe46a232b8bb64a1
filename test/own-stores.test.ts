import { readFileSync } from "node:fs"
import { storeContract } from "@sluice/contracts"
import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { mapStore } from "../examples/src/own-store/store.ts"

describe("a custom store that implements Store", () => {
  for (const { name, show } of storeContract({
    create: (clock) => mapStore(() => clock.now()),
    effort: 0.2,
  })) {
    it(name, show)
  }
})

it.each([
  ["postgres/store.ts", 50],
  ["own-store/store.ts", 110],
])("the example %s contains at most %i lines of code", (file, most) => {
  const text = readFileSync(new URL(`../examples/src/${file}`, import.meta.url), "utf8")
  const code = text.split("\n").filter((line) => !/^\s*($|\/\/|\/\*\*|\*)/.test(line))
  expect(code.length).toBeLessThanOrEqual(most)
})

it("the interface Store consists of eight members", () => {
  const { text } = portOf(
    readFileSync(new URL("../packages/core/src/stores/store.ts", import.meta.url), "utf8"),
  )
  const members = text.split("\n").filter((line) => /^ {2}(readonly )?\w+[?(:]/.test(line))
  expect(members.map((line) => /\w+(?=[?(:])/.exec(line)?.[0])).toEqual([
    ...["isShared", "status", "take", "read", "refund", "reset", "subscribe", "close"],
  ])
  expect(Object.keys(memoryStore({ clock: manualClock() }))).toEqual(["isShared"])
})

/** Returns the text of the interface `Store`. */
function portOf(source: string): { readonly text: string } {
  const text = /^export interface Store \{\n(.*?)^\}/ms.exec(source)?.[1]
  if (text === undefined) throw new Error("The file has no interface Store.")
  return { text }
}
