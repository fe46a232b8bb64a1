import { createPaint } from "./paint.ts"
import { refusedResponse } from "./refused-response.ts"
import { createScreen } from "./screen.ts"
import { startServers } from "./servers.ts"
import { invitation, summary } from "./summary.ts"
import { table } from "./table.ts"
import { startTraffic, untilMinuteHasRoom } from "./traffic.ts"
import { verdict } from "./verdict.ts"

const REDRAW_MS = 80

const { stdin, stdout } = process
const isTerminal = stdout.isTTY === true
const paint = createPaint(isTerminal, process.env.NO_COLOR)
const print = (text: string): void => void stdout.write(`${text}\n`)

const servers = await startServers()
print(`\n${paint("strong", "Sluice")}: three servers, three clients each, real HTTP, counters in memory.`)
for (const { framework, url } of servers) {
  if (framework !== "Express") continue
  print(`While it runs, open ${paint("strong", `${url}/limits`)} to see which clients Express refuses.\n`)
}

await untilMinuteHasRoom(Date.now())
const { tallies, done } = startTraffic(servers)
const screen = createScreen((text) => stdout.write(text), isTerminal)
const redraw = setInterval(() => screen.update(table(tallies, Date.now(), paint)), REDRAW_MS)
await done
clearInterval(redraw)
screen.finish(table(tallies, Date.now(), paint))

const refusal = tallies.find(({ rule, firstRefusal }) => rule === "search" && firstRefusal)?.firstRefusal
if (refusal !== undefined) {
  print(`\n${paint("quiet", "A refused client gets:")}\n\n${refusedResponse(refusal, paint)}\n`)
}

const broken = verdict(tallies)
if (broken.length > 0) {
  for (const what of broken) print(`${paint("bad", "✗")} ${what}`)
  process.exitCode = 1
} else {
  print(summary(tallies, paint))
  if (stdin.isTTY === true && isTerminal) {
    print(`\n${invitation(servers, paint)}`)
    await new Promise<void>((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve())
    })
    print("")
  }
}
await Promise.all(servers.map((server) => server.close()))
