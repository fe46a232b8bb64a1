import { expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { claimNames, releaseNames } from "./name-claims.ts"

const setUp = () => {
  const store = memoryStore({ clock: manualClock() })
  const told: string[] = []
  const [one, other, third] = [{}, {}, {}]
  return {
    told,
    one,
    other,
    third,
    claim: (owner: object, names: readonly string[], toTell?: string, service = "app") =>
      claimNames(store, service, names, owner, toTell === undefined ? undefined : () => told.push(toTell)),
    release: (owner: object) => releaseNames(store, owner),
  }
}

it("a name has one owner, which may claim it again, and is free in another service or store", () => {
  const { claim, one, other } = setUp()
  expect(claim(one, ["a", "b"])).toEqual([])
  expect(claim(one, ["b", "a"])).toEqual([])
  expect(claim(other, ["a", "c", "b"])).toEqual(["a", "b"])
  expect(claim(other, ["a"], undefined, "another app")).toEqual([])
  expect(setUp().claim(other, ["a"])).toEqual([])
})

it("a claim with one taken name claims nothing, and released names are free", () => {
  const { claim, one, other, third } = setUp()
  claim(one, ["a", "b"])
  expect(claim(other, ["a", "c"])).toEqual(["a"])
  expect(claim(third, ["c"])).toEqual([])
  claim(one, ["b"])
  expect(claim(other, ["a"])).toEqual([])
  expect(claim(third, ["b"])).toEqual(["b"])
})

it("a listener that waits for names is called once when names are released, and not when others are claimed", () => {
  const { claim, release, told, one, other, third } = setUp()
  claim(one, ["a", "b"])
  claim(other, ["a"], "other")
  claim(third, ["c"], "third")
  claim(one, ["a", "b", "d"])
  expect(told).toEqual([])
  claim(one, ["a"])
  expect(told).toEqual(["other"])
  claim(other, ["a"], "other again")
  release(one)
  expect(told).toEqual(["other", "other again"])
  release(third)
  expect(told).toHaveLength(2)
})

it("a listener is not called after it has claimed its names or given up", () => {
  const { claim, release, told, one, other, third } = setUp()
  claim(one, ["a"])
  claim(other, ["a"], "other")
  claim(third, ["a"], "third")
  claim(other, ["b"], "other")
  release(third)
  release(one)
  expect(told).toEqual([])
  expect(claim(third, ["a"])).toEqual([])
})
