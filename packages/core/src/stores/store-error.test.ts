import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { StoreUnavailableError } from "../ground/errors.ts"
import { withinDeadline } from "./store-error.ts"

const forever = new Promise<never>(() => undefined)

describe("withinDeadline", () => {
  it.each([60_000, undefined])("settles like the store's answer, with a timeout of %s", async (timeoutMs) => {
    const error = new Error("down")
    await expect(withinDeadline(Promise.resolve("answer"), timeoutMs)).resolves.toBe("answer")
    await expect(withinDeadline(Promise.reject(error), timeoutMs)).rejects.toBe(error)
  })

  it.each([60_000, undefined])(
    "rejects with the error that a thenable throws, with a timeout of %s",
    async (timeoutMs) => {
      const error = new Error("no promise")
      const thenable = {
        // biome-ignore lint/suspicious/noThenProperty: a store that others wrote
        then() {
          throw error
        },
      } as unknown as Promise<string>
      await expect(withinDeadline(thenable, timeoutMs)).rejects.toBe(error)
    },
  )

  it("rejects if the store does not answer in time, and names the timeout", async () => {
    const error = await withinDeadline(forever, 5).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ message: "The store did not answer within 5 ms.", kind: "timeout" })
  })

  it("sets no deadline for a store that enforces its own", async () => {
    const silent = withinDeadline(forever, undefined).then(() => "settled")
    await expect(Promise.race([silent, sleep(20, "silent")])).resolves.toBe("silent")
  })
})
