import { type ClusterMember, lines } from "./cluster-view.ts"
import type { RedisServer } from "./redis-server.ts"
import { ReplyError } from "./resp.ts"

/** Slots under way at once: few enough that clients meet only a few of them half moved. */
const AT_ONCE = 256
const KEYS_AT_ONCE = 1_000

/**
 * Moves every slot that `from` serves, with its keys, to `heirs` in turn, while all of them serve: clients are sent on
 * with ASK during a slot's move and with MOVED after it. No key is lost or served by two nodes.
 */
export async function moveSlots(from: ClusterMember, heirs: readonly ClusterMember[]): Promise<void> {
  const slots = await slotsOf(from.node)
  for (let i = 0, turn = 0; i < slots.length; i += AT_ONCE, turn++) {
    const heir = heirs[turn % heirs.length]
    if (heir === undefined) throw new Error("there is no other primary to take the slots")
    await moveSome(slots.slice(i, i + AT_ONCE), from, heir, heirs)
  }
}

/** The order is the one that Redis' cluster specification gives; the first to be told is the one that takes the keys. */
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
    // Who has lost its last slot becomes a replica of the new owner, as soon as that one has told it.
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

/** The slots that a node says it serves. */
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
