import { readFile } from "node:fs/promises"
import { expect, it } from "vitest"
import { onNodeHttp } from "./contracts/adapter/on-node-http.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"
import { blocksTestedBy } from "./docs/shown.ts"

adapterContract("the adapter of docs/extend/adapters.md, on node:http", onNodeHttp)

it("docs/extend/adapters.md shows the code of the adapter that is tested", async () => {
  const [block] = blocksTestedBy("test/node-http.test.ts", "docs/extend/adapters.md", 1)
  const example = await readFile(new URL("../examples/src/adapter/rate-limit.ts", import.meta.url), "utf8")
  expect(example).toContain(block?.text ?? "no block")
})
