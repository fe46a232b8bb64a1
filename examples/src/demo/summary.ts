import type { Paint } from "./paint.ts"
import type { ExampleServer } from "./servers.ts"
import type { Tally } from "./tally.ts"

/** Returns a summary of the run, if the results of every client agree with the limits. */
export function summary(tallies: readonly Tally[], paint: Paint): string {
  const sum = (count: (tally: Tally) => number): number =>
    tallies.reduce((all, tally) => all + count(tally), 0)
  const patient = tallies.filter(({ waited }) => waited?.isAdmitted === true)
  const waits = [...new Set(patient.map(({ waited }) => waited?.seconds))].sort().join(" or ")
  const done = paint("good", "✓")
  return [
    `${done} ${sum(({ sent }) => sent) + patient.length} requests: ` +
      `${sum(({ admitted }) => admitted) + patient.length} admitted, ` +
      `${sum(({ refused }) => refused)} refused, and every limit admitted exactly what it says.`,
    `${done} The client ${patient[0]?.client} waited the ${waits} s that it was told, and was admitted: ` +
      `${patient.map(({ framework }) => framework).join(", ")}.`,
    "",
    "Next, an app with rules in DynamoDB and counters in Redis, until you press Ctrl-C:",
    `  ${paint("strong", "npx -y pnpm@10.34.9 start:express")}   or start:fastify, start:koa`,
  ].join("\n")
}

/** Returns instructions for calling the servers by hand. curl sends one request for each number in the brackets. */
export function invitation(servers: readonly ExampleServer[], paint: Paint): string {
  return [
    "Still serving. Ask six times in a second, where three are admitted:",
    "",
    ...servers.map(
      ({ framework, url }) => `  ${framework.padEnd(9)}${paint("strong", `curl -i "${url}/search?q=[1-6]"`)}`,
    ),
    "",
    paint("quiet", "Ctrl-C ends it."),
  ].join("\n")
}
