import { readFile } from "node:fs/promises"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type RuleSourceUnderTest, ruleSourceContract, type StoredRules } from "@sluice/contracts"
import { expect, it } from "vitest"
import { httpRules } from "../examples/src/http-rules/source.ts"
import { runContract } from "./contracts/run-contract.ts"
import { blocksTestedBy } from "./docs/shown.ts"

/** Starts a service that serves rules and that a test can make fail. */
async function serve(stored: readonly StoredRules[]) {
  const held = { stored, isBroken: false }
  const server: Server = createServer((request, response) => {
    const service = decodeURIComponent(request.url?.split("/").at(-1) ?? "")
    const document = held.stored.find(({ service_id }) => service_id === service)
    response.statusCode = held.isBroken ? 500 : document === undefined ? 404 : 200
    response.end(JSON.stringify(document ?? null))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { held, server, origin: `http://127.0.0.1:${port}` }
}

const NO_LIST = "a service that is asked for its rules need not list them"
const OVER_NETWORK = "it is read over the network"
const POLLED = "it is polled, and the rule book asks again every pollMs"

const overHttp: RuleSourceUnderTest = {
  async create(documents) {
    const { held, server, origin } = await serve(documents)
    return {
      source: httpRules(origin),
      async write(stored) {
        held.stored = stored
        held.isBroken = false
      },
      async breakDown() {
        held.isBroken = true
      },
      async dispose() {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      },
    }
  },
  deviations: [
    ...[
      "loads the same rules synchronously",
      "throws from a synchronous load while the rules cannot be read",
    ].map((behaviour) => ({ behaviour, reason: OVER_NETWORK })),
    ...[
      "calls its watchers when the stored rules have changed",
      "stops calling a watcher that was removed, and still calls the others",
    ].map((behaviour) => ({ behaviour, reason: POLLED })),
    ...[
      "returns the latest rules to a call with fresh: true",
      "lists every service, with its rules",
      "lists nothing if nothing is stored",
      "keeps the stamp of unchanged rules, and changes the stamp of changed ones",
      "rejects a listing while the rules cannot be read",
      "does not list for a signal that has been aborted",
    ].map((behaviour) => ({ behaviour, reason: NO_LIST })),
  ],
}
runContract("rules over HTTP, as the guide loads them,", ruleSourceContract(overHttp))

it.each<[string, (response: ServerResponse) => void, RegExp]>([
  [
    "an HTML page",
    (response) => response.end("<p>hello</p>"),
    /\/rules\/checkout has no rules: SyntaxError: /,
  ],
  [
    "an error with status 503",
    (response) => response.writeHead(503).end(),
    /\/rules\/checkout has no rules: Error: status 503\.$/,
  ],
  ["cut off", (response) => response.destroy(), /\/rules\/checkout has no rules: TypeError: fetch failed\.$/],
])("httpRules rejects with a rule source error if the response is %s", async (_what, answer, message) => {
  const server = createServer((_request, response) => answer(response))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const loading = httpRules(`http://127.0.0.1:${port}`).load("checkout")
  await expect(loading).rejects.toMatchObject({ code: "SLUICE_RULE_SOURCE", cause: expect.any(Error) })
  await expect(loading).rejects.toThrow(message)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

it("docs/extend/rule-sources.md shows the code of httpRules", async () => {
  const [block] = blocksTestedBy("test/own-sources.test.ts", "docs/extend/rule-sources.md", 1)
  const example = await readFile(new URL("../examples/src/http-rules/source.ts", import.meta.url), "utf8")
  expect(block?.text.trim()).toBe(example.trim())
})
