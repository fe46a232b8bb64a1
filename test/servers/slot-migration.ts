import { type ClusterMember, lines } from "./cluster-view.ts"
import type { RedisServer } from "./redis-server.ts"
import { ReplyError } from "./resp.ts"

/** Number of slots to move in one step. The number is small, so that clients encounter only a few half-moved slots. */
const AT_ONCE = 256
const KEYS_AT_ONCE = 1_000

/**
 * Moves every slot of `from`, with its keys, to `heirs` in turn, while all nodes serve requests. Clients are
 * redirected with ASK during the move of a slot, and with MOVED after it. No key is lost, and no key is served by two
 * nodes.
 */
export async function moveSlots(from: ClusterMember, heirs: readonly ClusterMember[]): Promise<void> {
  const slots = await slotsOf(from.node)
  for (let i = 0, turn = 0; i < slots.length; i += AT_ONCE, turn++) {
    const heir = heirs[turn % heirs.length]
    if (heir === undefined) throw new Error("there is no other primary to take the slots")
    await moveSome(slots.slice(i, i + AT_ONCE), from, heir, heirs)
  }
}

/** Moves some slots to one node, in the order of the Redis cluster specification. The new owner is informed first. */
async function moveSome(
  slots: readonly number[],
  from: ClusterMember,
  to: ClusterMember,
  heirs: readonly ClusterMember[],
): Promise<void> {
  const onEach = (node: RedisServer, ...args: readonly string[]): Promise<unknown> =>
    Promise.all(slots.map((slot) => node.command("CLUSTER", "SETSLOT", slot, ...args)))
  await onEach(to.node, "IMPORTING", from.id)
  await onEach(from.node, "MIGRATING", to.id)
  await Promise.all(slots.map((slot) => moveKeys(slot, from.node, to.node)))
  await onEach(to.node, "NODE", to.id)
  await onEach(from.node, "NODE", to.id).catch((error: unknown) => {
    // A node that has lost its last slot becomes a replica of the new owner as soon as it learns of the change.
    if (!(error instanceof ReplyError) || !error.message.includes("only with masters")) throw error
  })
  await Promise.all(heirs.filter((heir) => heir !== to).map((heir) => onEach(heir.node, "NODE", to.id)))
}

async function moveKeys(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  for (;;) {
    const keys = await from.command("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE)
    if (!Array.isArray(keys) || keys.length === 0) return
    await from.command("MIGRATE", to.host, to.port, "", 0, 5_000, "REPLACE", "KEYS", ...keys.map(String))
  }
}

/** Returns the slots that a node serves, according to itself. */
async function slotsOf(node: RedisServer): Promise<number[]> {
  const myself = (await lines(node, "NODES")).find((line) => line.includes("myself")) ?? ""
  return myself
    .split(" ")
    .slice(8)
    .filter((range) => /^\d/.test(range))
    .flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number)
      return Array.from({ length: last - first + 1 }, (_, k) => first + k)
    })
}
