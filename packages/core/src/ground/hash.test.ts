import crypto from "node:crypto"
import { afterEach, expect, it, vi } from "vitest"

afterEach(() => {
  vi.doUnmock("node:crypto")
  vi.resetModules()
})

it("hash returns the same digest of a string as node:crypto", async () => {
  const { hash } = await import("./hash.ts")
  expect(hash("sha1", "abc")).toBe(crypto.createHash("sha1").update("abc").digest("hex"))
})

// Also, test/packages/too-old.check.ts loads the packages in a Node version that is too old.
it("hash.ts fails to load with a one-line error in a Node version without crypto.hash", async () => {
  vi.doMock("node:crypto", () => ({ hash: undefined }))
  await expect(import("./hash.ts")).rejects.toMatchObject({
    code: "SLUICE_NODE_TOO_OLD",
    message: `Sluice needs Node 20.19 or a later 20.x, or Node 22.12 or later. This is Node ${process.versions.node}.`,
  })
})
