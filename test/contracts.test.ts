import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type Behaviour, storeContract } from "@sluice/contracts"
import { type Clock, memoryStore, type Store } from "@sluice/core"
import { describe, expect, it } from "vitest"
import { methodsOf } from "../packages/core/src/stores/testing/methods-of.ts"
import { blocksTestedBy } from "./docs/shown.ts"

/** Returns the names of the behaviors that begin with `group` and that this store lacks. */
async function missing(create: (clock: Clock) => Store, group = ""): Promise<readonly string[]> {
  const failed: string[] = []
  const behaviors: readonly Behaviour[] = storeContract({ create, effort: 0.02 })
  for (const { name, show } of behaviors.filter((each) => each.name.startsWith(group))) {
    await show().catch(() => failed.push(name))
  }
  return failed
}

/** Returns a function that creates a memory store with some changed methods. */
function wrong(change: (store: Store) => Partial<Store>) {
  return (clock: Clock): Store => {
    const store = memoryStore({ clock })
    const whole: Store = { ...methodsOf(store), subscribe: (listener) => store.subscribe(listener) }
    return { ...whole, ...change(whole) }
  }
}

describe("the store contract", () => {
  it("is met by the memory store", async () => {
    expect(await missing(wrong(() => ({})))).toEqual([])
  })

  it.each<[string, (store: Store) => Partial<Store>, string]>([
    [
      "grants everything",
      (store) => ({
        take: async (checks) => ({ ...(await store.take(checks)), granted: true }),
      }),
      "several checks of a request: ",
    ],
    [
      "takes each check separately",
      (store) => ({
        async take(checks) {
          const alone = []
          for (const check of checks) alone.push(await store.take([check]))
          return {
            nowMs: alone[0]?.nowMs ?? 0,
            granted: alone.every(({ granted }) => granted),
            checks: alone.flatMap((answer) => answer.checks),
          }
        },
      }),
      "several checks of a request: ",
    ],
    [
      "takes units when it is read",
      (store) => ({
        async read(checks) {
          await store.take(checks)
          return store.read(checks)
        },
      }),
      "read: ",
    ],
    ["ignores a refund", () => ({ refund() {} }), "refund: "],
    [
      "refunds twice",
      (store) => ({
        async refund(refunds) {
          await store.refund(refunds)
          await store.refund(refunds)
        },
      }),
      "refund: ",
    ],
    ["ignores a reset", () => ({ reset() {} }), "reset: "],
    [
      "treats two clients as one",
      (store) => ({
        take: (checks) => store.take(checks.map((check) => ({ ...check, partition: "one" }))),
        read: (checks) => store.read(checks.map((check) => ({ ...check, partition: "one" }))),
      }),
      "keys: ",
    ],
    [
      "refuses requests in shadow mode",
      (store) => ({
        take: (checks) => store.take(checks.map((check) => ({ ...check, shadow: false }))),
      }),
      "shadow checks: ",
    ],
    ["continues to work after being closed", () => ({ close() {} }), "closed: "],
    [
      "counts every rule in fixed windows",
      (store) => ({
        take: (checks) =>
          store.take(
            checks.map((check) => ({ ...check, policy: { ...check.policy, algorithm: "fixed-window" } })),
          ),
      }),
      "any trace: ",
    ],
  ])("is not met by a store that %s", async (_what, change, group) => {
    expect(await missing(wrong(change), group)).not.toEqual([])
  })
})

it("a contract suite runs in node:test, as the README shows", () => {
  const [block] = blocksTestedBy("test/contracts.test.ts", "packages/contracts/README.md", 1)
  const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-"], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    input: block?.text ?? "",
    encoding: "utf8",
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    maxBuffer: 2 ** 26,
  })
  expect(stdout).toMatch(/^(#|ℹ) fail 0$/m)
  expect(Number(/^(?:#|ℹ) pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300)
  expect(status).toBe(0)
})
