import { readFileSync } from "node:fs"
import ipaddr from "ipaddr.js"
import { expect, it } from "vitest"
import { KNOWN_NETWORKS } from "./known-networks.ts"

const GUIDE = readFileSync(new URL("../../../../docs/production/proxies.md", import.meta.url), "utf8")

it.each(Object.entries(KNOWN_NETWORKS))(
  "the networks of %s are valid and distinct, and the guide states their date and source",
  (name, { date, source, networks }) => {
    const all = networks.trim().split(/\s+/)
    expect(all.length).toBeGreaterThan(20)
    for (const network of all) {
      const [address, prefix] = ipaddr.parseCIDR(network)
      // A network with bits after its prefix would be a mistake in the list.
      const first = address.kind() === "ipv4" ? ipaddr.IPv4 : ipaddr.IPv6
      expect(first.networkAddressFromCIDR(network).toString()).toBe(address.toString())
      // A shorter prefix would trust a large part of the internet.
      expect(prefix).toBeGreaterThanOrEqual(address.kind() === "ipv4" ? 13 : 29)
      expect(address.range()).toBe("unicast")
    }
    expect(new Set(all).size).toBe(all.length)
    expect(date).toMatch(/^20\d\d-\d\d-\d\d$/)
    expect(GUIDE).toContain(`| \`"${name}"\` | ${date} | ${source} |`)
  },
)
