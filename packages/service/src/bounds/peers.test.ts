import { expect, it } from "vitest"
import { newPeer, Peers, peerAddress } from "./peers.ts"

it.each([
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["192.0.2.1", "192.0.2.1"],
  ["2001:db8::1", "2001:db8::1"],
  ["::ffff:c000:201", "::ffff:c000:201"],
  [undefined, "unknown"],
])("the service treats a peer at the address %s as %s", (remoteAddress, address) => {
  expect(peerAddress({ remoteAddress })).toBe(address)
})

it("the service treats an IPv6 /64 as one peer, and each IPv4 address as a separate peer", () => {
  const peers = new Peers()
  expect(peers.of("2001:db8:1:2:3::4")).toBe(peers.of("2001:db8:1:2::5"))
  expect(peers.of("2001:db8:1:2::5").address).toBe("2001:db8:1:2::/64")
  expect(peers.of("2001:db8:1:3::5")).not.toBe(peers.of("2001:db8:1:2::5"))
  expect(peers.of("fe80::1%eth0")).toBe(peers.of("fe80::2%eth0"))
  expect(peers.of("::ffff:192.0.2.1")).toBe(peers.of("192.0.2.1"))
  expect(peers.of("192.0.2.2")).not.toBe(peers.of("192.0.2.1"))
  expect(peers.of("unknown").address).toBe("unknown")
})

it("the service keeps a peer until its last connection and its last call have ended", () => {
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

it("the service keeps a peer that has reconnected, even when a late call of its old connection ends", () => {
  const peers = new Peers()
  const before = peers.of("192.0.2.1")
  peers.forgetIfGone(before)
  const after = peers.of("192.0.2.1")
  after.connections = 1
  peers.forgetIfGone(before)
  expect(peers.of("192.0.2.1")).toBe(after)
})
