import type { Imports } from "./program.ts"

export const UNDO_IMPORTS: Imports = {
  "@sluice/express-rate-limit-store": ["SluiceStore"],
  "express-rate-limit": ["rateLimit"],
  "node:http": ["createServer"],
}

/**
 * The body of a program that sends six concurrent requests under a limit of four. Three of the admitted requests fail
 * after the other two requests were refused. The program prints the statuses and then the remaining hits. The hits
 * depend on how this Node version tracks async context.
 */
export const UNDO_HITS = `
const store = new SluiceStore()
const limit = rateLimit({
  limit: 4,
  max: 4,
  windowMs: 86_400_000,
  skipFailedRequests: true,
  legacyHeaders: false,
  keyGenerator: () => "ann",
  handler: (req, res) => end(res, 429),
  store,
})
const end = (res, status) => {
  res.statusCode = status
  res.end()
}
const waiting = []
const server = createServer((req, res) => limit(req, res, () => waiting.push(res)))
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
let refused = 0
const asked = Array.from({ length: 6 }, async () => {
  const { status } = await fetch("http://127.0.0.1:" + server.address().port)
  if (status === 429) refused++
  return status
})
const until = async (isDone) => {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 5))
}
await until(() => waiting.length === 4 && refused === 2)
waiting.reverse().forEach((res, i) => end(res, i === 2 ? 200 : 500))
console.log(JSON.stringify((await Promise.all(asked)).sort()))
await until(async () => (await store.get("ann")).totalHits === 1)
console.log(JSON.stringify(await store.get("ann"), ["totalHits"]))
server.close()
server.closeAllConnections()
await store.shutdown()
`
