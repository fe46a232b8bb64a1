import type { Socket } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { type PacedConnection, Pacing, PeerPace } from "./pacing.ts"

/** A connection that records whether it is read, like Node's handle of a socket. */
class Connection implements PacedConnection {
  readonly pace: PeerPace
  isRead = true
  /** Whether Node itself has paused the stream. */
  isPausedByNode = false
  readonly socket: Socket
  readonly ready: Socket

  constructor(pace: PeerPace) {
    this.pace = pace
    const set = (isRead: boolean) => () => {
      this.isRead = isRead
    }
    const _handle = { readStop: set(false), readStart: set(true) }
    this.socket = { _handle, isPaused: () => this.isPausedByNode } as unknown as Socket
    this.ready = this.socket
  }
}

function open(pacing: Pacing, pace: PeerPace, count: number): Connection[] {
  const connections = Array.from({ length: count }, () => new Connection(pace))
  for (const connection of connections) pacing.add(connection)
  return connections
}

const read = (connections: readonly Connection[]): number => connections.filter(({ isRead }) => isRead).length

it("the service pauses the connections of a peer that cause too much work, then resumes them in growing numbers", async () => {
  const pacing = new Pacing()
  const [busy, quiet] = [new PeerPace(), new PeerPace()]
  const others = open(pacing, quiet, 2)
  const many = open(pacing, busy, 10)
  for (let call = 0; call < 128; call++) pacing.spend(busy, 1)
  expect([read(many), read(others)]).toEqual([10, 2])
  pacing.spend(busy, 1)
  expect([read(many), read(others)]).toEqual([0, 2])
  const late = open(pacing, busy, 1)
  expect(read(late)).toBe(0)
  const counts: number[] = []
  for (let turn = 0; turn < 4; turn++) {
    await nextTurn()
    counts.push(read(many) + read(late))
  }
  expect(counts).toEqual([1, 3, 7, 11])
})

it("the service counts work from zero in each turn, and resumes the connection that has waited longest", async () => {
  const pacing = new Pacing()
  const pace = new PeerPace()
  const many = open(pacing, pace, 4)
  for (let turn = 0; turn < 5; turn++) {
    pacing.spend(pace, 100)
    await nextTurn()
  }
  expect(read(many)).toBe(4)
  pacing.spend(pace, 200)
  await nextTurn()
  expect(many.map(({ isRead }) => isRead)).toEqual([true, false, false, false])
  pacing.spend(pace, 200)
  expect(read(many)).toBe(0)
  await nextTurn()
  expect(many.map(({ isRead }) => isRead)).toEqual([false, true, false, false])
})

it("the service does not resume a connection that has closed, or that Node has paused for its unread responses", async () => {
  const pacing = new Pacing()
  const pace = new PeerPace()
  const [closed, full, other] = open(pacing, pace, 3) as [Connection, Connection, Connection]
  pacing.spend(pace, 200)
  pacing.remove(closed)
  full.isPausedByNode = true
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  expect([closed.isRead, full.isRead, other.isRead]).toEqual([false, false, true])
})
