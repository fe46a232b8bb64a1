import { expect, it } from "vitest"
import { onAbort, orAborted } from "./time.ts"

it("of many who share a signal, those are called back who have not stopped that", () => {
  const aborting = new AbortController()
  const called: string[] = []
  const stop = onAbort(aborting.signal, () => called.push("stops"))
  onAbort(aborting.signal, () => called.push("stays"))
  stop()
  aborting.abort()
  expect(called).toEqual(["stays"])
})

it("a signal keeps nobody who has what it was waiting for", async () => {
  const aborting = new AbortController()
  const { signal } = aborting
  let reads = 0
  // Who still listened would look why it has been aborted.
  Object.defineProperty(signal, "reason", { get: () => reads++ })
  expect(await orAborted(Promise.resolve("work"), signal)).toBe("work")
  await expect(orAborted(Promise.reject(new Error("failed")), signal)).rejects.toThrow("failed")
  aborting.abort()
  expect(reads).toBe(0)
})

it("work that ends after the signal was aborted changes nothing, however it ends", async () => {
  const aborting = new AbortController()
  const works = [
    async () => "done",
    async () => {
      throw new Error("failed")
    },
  ]
  const begun = new Promise<void>((begin) => setImmediate(begin))
  const waiting = works.map((work) => orAborted(begun.then(work), aborting.signal))
  aborting.abort(new Error("enough"))
  for (const each of waiting) await expect(each).rejects.toThrow("enough")
  await begun
})
