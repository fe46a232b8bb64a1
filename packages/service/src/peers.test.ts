import { expect, it } from "vitest"
import { newPeer, Peers, peerAddress } from "./peers.ts"

it.each([
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["192.0.2.1", "192.0.2.1"],
  ["2001:db8::1", "2001:db8::1"],
  ["::ffff:c000:201", "::ffff:c000:201"],
  [undefined, "unknown"],
])("takes a peer at %s for %s", (remoteAddress, address) => {
  expect(peerAddress({ remoteAddress })).toBe(address)
})

it("keeps a peer until its last connection and its last call have ended", () => {
  const peers = new Peers()
  const peer = peers.of("192.0.2.1")
  peer.calls = 1
  peers.forgetIfGone(peer)
  expect(peers.of("192.0.2.1")).toBe(peer)
  peer.calls = 0
  peers.forgetIfGone(peer)
  expect(peers.of("192.0.2.1")).not.toBe(peer)
  expect(peers.of("192.0.2.1")).toEqual(newPeer("192.0.2.1"))
})
