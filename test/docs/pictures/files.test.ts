import { readdirSync, readFileSync } from "node:fs"
import { dynamoDBRules } from "@sluice/dynamodb"
import { describe, expect, it } from "vitest"
import { drawDiagrams, RULES_POLL_MS } from "../../../docs/pictures/diagrams.ts"
import { FAILURES_TO_OPEN, RECOVERED_AFTER_S } from "../../../docs/pictures/outage.ts"
import { CHAIN, REFUSAL, STORE_TIMEOUT_MS } from "../../../docs/pictures/request.ts"
import { MIRROR_EVERY_MS } from "../../../docs/pictures/stores.ts"
import { compileClientAddress } from "../../../packages/core/src/request/client-address.ts"
import { findDocuments, ROOT } from "../documents.ts"

const diagrams = await drawDiagrams()
const documents = findDocuments().map((path) => ({ path, text: readFileSync(ROOT + path, "utf8") }))

describe.each(diagrams)("the picture $file", ({ file, description, svg }) => {
  it("equals the picture that `pnpm pictures` draws", () => {
    expect(readFileSync(`${ROOT}docs/pictures/${file}`, "utf8")).toBe(svg)
  })

  it("appears in a document, with its <desc> as alt text", () => {
    const [, desc] = /<desc [^>]*>(.*)<\/desc>/.exec(svg) ?? []
    expect(desc).toBe(description)
    const images = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/!\[([^\]]*)\]\(([^)]*)\)/g)].map(([, alt, target = ""]) => ({
        alt,
        target: new URL(target, `file:///${path}`).pathname,
      })),
    )
    const own = images.filter(({ target }) => target === `/docs/pictures/${file}`)
    expect(own.length).toBeGreaterThan(0)
    for (const { alt } of own) expect(alt).toBe(description)
  })

  it("contains a title and both color schemes, and loads no other file", () => {
    expect(svg).toMatch(/<title id="title">[^<]+<\/title>/)
    expect(svg).toContain("@media (prefers-color-scheme:dark)")
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|url\(|href|@import|<script/,
    )
  })
})

it("docs/pictures contains no picture that `pnpm pictures` does not draw", () => {
  const files = readdirSync(`${ROOT}docs/pictures`).filter((name) => name.endsWith(".svg"))
  expect(files.toSorted()).toEqual(diagrams.map(({ file }) => file).toSorted())
})

it("the picture of the system shows the default interval at which rules are loaded", () => {
  const client = { send: () => Promise.reject(new Error("never sent")) }
  expect(dynamoDBRules({ client, tableName: "rules" }).pollMs).toBe(RULES_POLL_MS)
})

it.each([
  ["packages/core/src/limiter/options/parse-options.ts", `options.storeTimeoutMs ?? ${STORE_TIMEOUT_MS},`],
  ["packages/redis/src/node/breaker.ts", `FAILURES_TO_OPEN = ${FAILURES_TO_OPEN}\n`],
  ["packages/core/src/decision/store-health.ts", `STEADY_MS = ${RECOVERED_AFTER_S}_000\n`],
  ["packages/scale/src/mirrored/options.ts", `everyMs = ${MIRROR_EVERY_MS},`],
])("the pictures show the value in %s", (file, line) => {
  expect(readFileSync(ROOT + file, "utf8")).toContain(line)
})

it("the picture of a refusal shows lines of the refusal in the README", () => {
  const readme = readFileSync(`${ROOT}README.md`, "utf8")
  expect(REFUSAL.map(([line]) => line).filter((line) => !readme.includes(line))).toEqual([])
})

it("the picture of proxies shows the client that trustedProxies: 2 selects", () => {
  const read = compileClientAddress({ trustedProxies: 2 }, () => {})
  const { forged, client, cdn, balancer } = CHAIN
  const header = `${forged}, ${client}, ${cdn}`
  expect(read({ headers: { "x-forwarded-for": header }, socket: { remoteAddress: balancer } } as never)).toBe(
    client,
  )
})
