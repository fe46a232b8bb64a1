import { memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import type { Block } from "../docs/blocks.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { type Descriptor, type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { type Started, startService } from "./started.ts"

const [rules, config] = blocksTestedBy("test/service/envoy-guide.test.ts", "docs/service/envoy.md", 2) as [
  Block,
  Block,
]

/** The parts of Envoy's configuration that determine the descriptors. */
interface Action {
  readonly remote_address?: object
  readonly request_headers?: { readonly header_name: string; readonly descriptor_key: string }
}
interface Route {
  readonly match: { readonly prefix: string }
  readonly route: { readonly rate_limits: readonly { readonly actions: readonly Action[] }[] }
}

/** Returns the first member with this name, at any depth. */
function found(holder: unknown, name: string): unknown {
  if (typeof holder !== "object" || holder === null) return undefined
  if (Object.hasOwn(holder, name)) return (holder as Readonly<Record<string, unknown>>)[name]
  return Object.values(holder)
    .map((value) => found(value, name))
    .find((value) => value !== undefined)
}

const envoyConfig: unknown = parse(config.text)
const routes = found(envoyConfig, "routes") as readonly Route[]
const domain = found(envoyConfig, "domain") as string

/**
 * Returns the descriptors that Envoy would send for a request. Skips an item of the configuration if one of its
 * actions does not find its header.
 */
function descriptorsOf(address: string, headers: Readonly<Record<string, string>>): Descriptor[] {
  const { route } = routes.find(({ match }) => headers[":path"]?.startsWith(match.prefix)) as Route
  return route.rate_limits.flatMap(({ actions }) => {
    const entries = actions.map((action) => entryOf(action, address, headers))
    return entries.every((entry) => entry !== undefined) ? [Object.fromEntries(entries)] : []
  })
}

function entryOf(
  { remote_address, request_headers }: Action,
  address: string,
  headers: Readonly<Record<string, string>>,
): readonly [key: string, value: string] | undefined {
  if (remote_address !== undefined) return ["remote_address", address]
  if (request_headers === undefined) throw new Error("the test does not know this action")
  const value = headers[request_headers.header_name]
  return value === undefined ? undefined : [request_headers.descriptor_key, value]
}

describe("the configuration of the guide", () => {
  let started: Started
  let envoy: EnvoyAsking
  const clock = manualClock()
  const store = memoryStore({ clock })
  beforeAll(async () => {
    started = await startService(rules.text, { shared: { store, clock, storeTimeoutMs: 20_000 } })
    envoy = openEnvoy(started.grpc)
  })
  afterAll(async () => {
    envoy.close()
    await started.stop()
    await store.close()
    expect(started.faults).toEqual([])
  })

  /** Returns the number of admitted requests, and the rule that refuses the next request. */
  const admitted = async (address: string, headers: Readonly<Record<string, string>>): Promise<string> => {
    for (let count = 0; count < 200; count++) {
      const { overall, metadata } = await envoy.ask(domain, descriptorsOf(address, headers))
      if (overall === "OVER_LIMIT") return `${count}, then ${metadata.policy}`
    }
    return "all"
  }

  it("limits each client by the rules shown next to it", async () => {
    const get = { ":method": "GET", ":path": "/" }
    expect(await admitted("192.0.2.1", { ...get, "x-user-id": "ada" })).toBe("5, then per-user")
    expect(await admitted("192.0.2.2", get)).toBe("100, then per-ip")
    expect(await admitted("192.0.2.4", { ":method": "POST", ":path": "/orders/7?now" })).toBe(
      "20, then orders",
    )
  })

  it("calls the gRPC port over HTTP/2, with a timeout that exceeds the timeout of Redis", () => {
    expect(found(envoyConfig, "timeout")).toBe("0.2s")
    expect(JSON.stringify(found(envoyConfig, "clusters"))).toContain("http2_protocol_options")
    expect(JSON.stringify(found(envoyConfig, "clusters"))).toContain('"port_value":50051')
  })
})
