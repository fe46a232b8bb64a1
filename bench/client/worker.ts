import { CLIENTS } from "./contenders.ts"

// Sends the calls of one process, and prints what became of them: worker.ts <client> <url> <limit> <windowMs> <calls> <workers>

const [name = "", url = "", limit, windowMs, calls, workers] = process.argv.slice(2)
const create = CLIENTS[name]
if (create === undefined) throw new Error(`${name} is not a client of this benchmark`)
const send = await create(Number(limit), Number(windowMs))

let begun = 0
let failed = 0
const latenciesMs: number[] = []
const startedAt = performance.now()
await Promise.all(
  Array.from({ length: Number(workers) }, async () => {
    while (begun++ < Number(calls)) {
      const sentAt = performance.now()
      const status = await send(url).catch((error) => error.response?.status ?? error.message)
      if (status !== 200) failed++
      latenciesMs.push(performance.now() - sentAt)
    }
  }),
)
process.stdout.write(
  `${JSON.stringify({ failed, wallMs: performance.now() - startedAt, latenciesMs })}\n`,
)
process.exit(0)
