import { manualClock } from "@sluice/core/testing"
import { expect, it } from "vitest"
import { type RateLimitOptions, rateLimit, type SvelteKitEvent } from "./sveltekit.ts"

// test/packages/fetch.check.ts runs the hook in a real app, and builds its prerendered pages.

const ok = (): Response => new Response("ok")

function eventOf(path: string, more: Partial<SvelteKitEvent> = {}): SvelteKitEvent {
  const url = new URL(path, "http://shop.example")
  return {
    ...{ request: new Request(url), url, params: {}, route: { id: null }, locals: {}, isSubRequest: false },
    getClientAddress: () => "192.0.2.1",
    ...more,
  }
}

/** Returns a function that sends events to a hook with a limit of 1, and resolves to the statuses of the responses. */
async function started(more: object = {}) {
  const options = {
    limit: 1,
    window: "1 minute",
    clock: manualClock(),
    ...more,
  } as RateLimitOptions<SvelteKitEvent>
  const handle = rateLimit(options)
  return async (...events: readonly SvelteKitEvent[]) => {
    const all: number[] = []
    for (const event of events) all.push((await handle({ event, resolve: ok })).status)
    return all
  }
}

it("the hook stores the decision in the locals, and counts each client", async () => {
  const send = await started({ limit: 2 })
  const event = eventOf("/")
  const bob = { getClientAddress: () => "192.0.2.2" }
  expect(await send(event, eventOf("/"), eventOf("/"), eventOf("/", bob))).toEqual([200, 200, 429, 200])
  expect(event.locals).toMatchObject({ rateLimit: { allowed: true, remaining: 1 } })
})

it("the hook does not count the fetch of a load function", async () => {
  const send = await started()
  const inner = { isSubRequest: true }
  expect(await send(eventOf("/", inner), eventOf("/", inner), eventOf("/"))).toEqual([200, 200, 200])
})

it("the hook reads the page of a data request, its route and its parameters", async () => {
  const page = {
    route: { id: "/blog/[slug]" },
    params: { slug: "a" },
    url: new URL("http://shop.example/blog/a"),
  }
  const send = await started({
    field: ["route", "param:slug"],
    match: { path: "/blog/*" },
    onMissing: "deny",
  })
  expect(await send(eventOf("/blog/a", page), eventOf("/blog/a/__data.json", page))).toEqual([200, 429])
})

it("the hook reads no page of a remote call, because the client chooses the page", async () => {
  const call = (id: string) => eventOf("/_app/remote/x", { route: { id }, isRemoteRequest: true })
  const send = await started({ field: "route", onMissing: "deny" })
  expect(await send(call("/a"), call("/b"))).toEqual([400, 400])
})

it("the hook rejects a request without an address, except in a build", async () => {
  const failing = (message: string) => ({
    getClientAddress: () => {
      throw new Error(message)
    },
  })
  const send = await started()
  const unsupported = () => eventOf("/", failing("`adapter-x` does not specify `getClientAddress`"))
  await expect(send(unsupported())).rejects.toThrow(/clientAddress: is missing.*adapter-x/)
  const build = failing("Cannot read `clientAddress` during prerendering")
  expect(await send(eventOf("/", build), eventOf("/", build))).toEqual([200, 200])
  const own = await started({ clientAddress: () => "192.0.2.1" })
  expect(await own(unsupported(), unsupported())).toEqual([200, 429])
})
