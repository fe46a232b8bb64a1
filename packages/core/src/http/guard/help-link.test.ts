import { setImmediate as nextTurn } from "node:timers/promises"
import { type LoadedRules, liveRules, type RuleSource } from "@sluice/rules"
import { expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import { createGuard } from "./create-guard.ts"

const CLIENT: RequestFacts = { remoteAddress: "192.0.2.1" }
const RULE = { name: "one", field: "ip", limit: 1, window: "1 minute" }
const LINK = { link: "https://example.com/limits?a=b" }
const HEADER = ["Link", '<https://example.com/limits?a=b>; rel="help"']

/** A source whose document can be changed. The source is read when the limiter is created. */
function documentOf(first: Partial<LoadedRules>) {
  let document: LoadedRules = { rules: [RULE], problems: [], ...first }
  let changed = (): void => undefined
  const source: RuleSource = {
    load: async () => document,
    loadSync: () => document,
    watch(listener) {
      changed = listener
      return () => undefined
    },
  }
  const change = async (next: Partial<LoadedRules>): Promise<void> => {
    document = { ...document, ...next }
    changed()
    await nextTurn()
  }
  return { source, change }
}

function guardOf(source: RuleSource, options: Partial<LimiterOptions<RequestFacts>> = {}) {
  const guard = createGuard<RequestFacts>({
    ...{ rules: liveRules(source), clock: manualClock(), logger: { warn() {}, error() {} } },
    ...options,
  } as LimiterOptions<RequestFacts>)
  const linkOf = async (facts: RequestFacts = CLIENT) => {
    const { rejection, headers } = await guard.check(facts, { ...facts })
    return {
      rejected: rejection?.headers.find(([name]) => name === "Link"),
      told: headers.map(([name]) => name),
    }
  }
  return { guard, linkOf }
}

it("a refusal contains the service's link in a Link header, as JSON and as plain text", async () => {
  const { guard, linkOf } = guardOf(documentOf({ metadata: { owner: "shop", ...LINK } }).source)
  expect(await linkOf()).toEqual({ rejected: undefined, told: ["RateLimit-Policy", "RateLimit"] })
  for (let time = 0; time < 2; time++) {
    expect((await linkOf()).rejected).toEqual(HEADER)
    expect((await linkOf({ ...CLIENT, headers: { accept: "text/html" } })).rejected).toEqual(HEADER)
  }
  await guard.close()
})

it("a refusal has no Link header if the service has no metadata or no link", async () => {
  for (const metadata of [undefined, { owner: "shop" }]) {
    const { guard, linkOf } = guardOf(documentOf(metadata === undefined ? {} : { metadata }).source)
    await linkOf()
    expect((await linkOf()).rejected).toBeUndefined()
    await guard.close()
  }
})

it("a changed link is used immediately, and an invalid link rejects the whole version of the rules", async () => {
  const { source, change } = documentOf({ metadata: LINK })
  const { guard, linkOf } = guardOf(source)
  await linkOf()
  await change({ metadata: { link: "https://example.com/new" } })
  expect((await linkOf()).rejected).toEqual(["Link", '<https://example.com/new>; rel="help"'])
  await change({ metadata: { link: "https://example.com/\r\nSet-Cookie: a=b" }, rules: [] })
  expect((await linkOf()).rejected).toEqual(["Link", '<https://example.com/new>; rel="help"'])
  expect(guard.limiter.rules).toMatchObject({ isRejected: true })
  await change({ metadata: {}, rules: [RULE] })
  expect((await linkOf()).rejected).toBeUndefined()
  await guard.close()
})

it("a response from onRejected is sent with the Link header", async () => {
  const onRejected = () => ({ status: 429, headers: [], body: "no" })
  const { guard, linkOf } = guardOf(documentOf({ metadata: LINK }).source, { onRejected })
  await linkOf()
  expect((await linkOf()).told).toContain("Link")
  await guard.close()
})
