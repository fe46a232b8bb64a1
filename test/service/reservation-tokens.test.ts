import { createHash, createHmac } from "node:crypto"
import { memoryStore, type Store } from "@sluice/core"
import { type DecisionServiceParts, rulesInMemory, tokens } from "@sluice/service"
import { expect, it, onTestFinished } from "vitest"
import { DOORS_AND_CONNECT, type Door } from "./door-clients.ts"
import { openService } from "./started.ts"

const INVALID_ARGUMENT = 3
const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16
const DECIDE = { chat: "token-of-chat", search: "token-of-search", "*": "token-for-every-service" }
const REGISTER = tokens({ "*": "token-of-the-rules" })

type Placed = { readonly settled?: boolean; readonly error?: { readonly code: number } | null }

/** Returns a function that starts an instance. All instances share counters and, unless `parts` has others, the tokens. */
async function instances() {
  const home = rulesInMemory()
  const rules = [{ name: "five", field: "user", concurrent: 5 }]
  for (const service of ["chat", "search"]) await home.registry.register(service, rules)
  const memory = memoryStore()
  // Instances have different stores with the same counters, because one store accepts only one limiter of a service.
  const store = (): Store => ({
    ...{
      isShared: true,
      close() {},
      take: (checks) => memory.take(checks),
      read: (checks) => memory.read(checks),
    },
    ...{ refund: (refunds) => memory.refund(refunds), reset: (keys) => memory.reset(keys) },
  })
  const start = async (
    open: (typeof DOORS_AND_CONNECT)[number][1],
    parts: Partial<DecisionServiceParts> = {},
  ) => {
    const shared = { store: store(), storeTimeoutMs: 20_000, logger: { warn() {}, error() {} } }
    const given = { shared, tokens: REGISTER, decideTokens: tokens(DECIDE), ...parts }
    const door = open(await openService(home, given))
    onTestFinished(() => door.close())
    return door
  }
  return start
}

async function reserve(door: Door, token: string | undefined, service = "chat"): Promise<string> {
  const request = { service, request: '{"user":"ada"}', reserve: true }
  return (await door.call("ShouldForwardRequest", request, token)).value.reservation as string
}

async function settle(door: Door, token: string | undefined, ...texts: string[]): Promise<unknown[]> {
  const settlements = texts.map((reservation) => ({ reservation }))
  const { code, value } = await door.call("Settle", { settlements }, token)
  if (code !== 0) return [code]
  return (value.results as Placed[]).map(({ settled, error }) => error?.code ?? settled ?? false)
}

for (const [name, open] of DOORS_AND_CONNECT) {
  it(`a reservation over ${name} is settled with a token of its service, at any instance with the same tokens`, async () => {
    const wrong: string[] = []
    const start = await instances()
    const [first, second] = [
      await start(open),
      await start(open, { onWrongToken: (path) => wrong.push(path) }),
    ]
    const text = await reserve(first, DECIDE.chat)
    expect(text).toMatch(/^[\w-]+\.[\w-]{22}$/)
    expect(await settle(second, undefined, text)).toEqual([UNAUTHENTICATED])
    expect(await settle(second, "token-of-the-rules", text)).toEqual([PERMISSION_DENIED])
    wrong.length = 0
    const other = await reserve(first, DECIDE.search, "search")
    expect(await settle(second, DECIDE.search, text, other)).toEqual([PERMISSION_DENIED, true])
    expect(wrong).toEqual(["/sluice.v1.RateLimiter/Settle"])
    const renewed = await second.call("Renew", { reservations: [text] }, DECIDE["*"])
    const [{ reservation }] = renewed.value.renewals as [{ reservation: string }]
    expect(await settle(first, DECIDE.chat, reservation)).toEqual([true])
    expect(await settle(second, DECIDE["*"], text)).toEqual([false])
  })
}

const [, open] = DOORS_AND_CONNECT[1] as (typeof DOORS_AND_CONNECT)[number]

it("a reservation with any changed byte is not accepted", async () => {
  const door = await (await instances())(open)
  const text = await reserve(door, DECIDE["*"])
  const changed = Array.from(
    text,
    (byte, i) => text.slice(0, i) + (byte === "A" ? "B" : "A") + text.slice(i + 1),
  )
  const [unsigned = "", signature = ""] = text.split(".")
  const more = [
    unsigned,
    `${unsigned}.`,
    `${text}A`,
    `${text}.`,
    `${unsigned}.${"ł".repeat(22)}`,
    `.${signature}`,
  ]
  const results = await settle(door, DECIDE["*"], ...changed, ...more, text)
  expect(results.slice(0, -1)).toEqual([...changed, ...more].map(() => INVALID_ARGUMENT))
  expect(results.at(-1)).toBe(true)
})

it("a caller that may decide cannot sign a text of its own", async () => {
  const door = await (await instances())(open)
  const [unsigned = ""] = (await reserve(door, DECIDE.chat)).split(".")
  const forged = Object.values(DECIDE).map((token) => {
    const key = createHash("sha256").update(token).digest()
    const mac = createHmac("sha256", key).update(`sluice reservation ${unsigned}`).digest()
    return `${unsigned}.${mac.toString("base64url", 0, 16)}`
  })
  expect(await settle(door, DECIDE.chat, ...forged)).toEqual(forged.map(() => INVALID_ARGUMENT))
})

it("a reservation is signed with the token for decisions if no token registers rules, and not without tokens", async () => {
  const start = await instances()
  const decideOnly = await start(open, { tokens: tokens({}) })
  const none = await start(open, { tokens: tokens({}), decideTokens: tokens({}) })
  const signed = await reserve(decideOnly, DECIDE.chat)
  expect(await settle(none, undefined, signed)).toEqual([INVALID_ARGUMENT])
  expect(await settle(decideOnly, DECIDE.chat, signed)).toEqual([true])
  const text = await reserve(none, undefined)
  expect(text).toMatch(/^[\w-]+$/)
  expect(await settle(decideOnly, DECIDE.chat, text)).toEqual([INVALID_ARGUMENT])
  expect(await settle(none, undefined, text)).toEqual([true])
})
