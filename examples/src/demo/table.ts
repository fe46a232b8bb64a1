import type { Paint } from "./paint.ts"
import type { Tally } from "./tally.ts"

const BAR = 10

/** Returns the table of all clients, at most 100 columns wide. */
export function table(tallies: readonly Tally[], nowMs: number, paint: Paint): string {
  const head = line("framework", "client", "rule", "used".padEnd(BAR), "admitted", "refused", "remaining")
  const rows = tallies.map((tally, index) => {
    const isFirst = tallies[index - 1]?.framework !== tally.framework
    const { admitted, refused, remaining, limit } = tally
    return line(
      isFirst ? tally.framework : "",
      tally.client,
      limit === 0 ? tally.rule : `${tally.rule} ${limit} in ${tally.windowMs / 1000} s`,
      bar(tally, paint),
      limit === 0 ? "" : String(admitted),
      limit === 0 ? "" : String(refused),
      limit === 0 ? "" : String(remaining),
      paint,
    ).concat("  ", retry(tally, nowMs, paint))
  })
  return [paint("quiet", `${head}  retry after`), ...rows].join("\n")
}

function line(
  framework: string,
  client: string,
  rule: string,
  used: string,
  admitted: string,
  refused: string,
  remaining: string,
  paint: Paint = (_tone, text) => text,
): string {
  return [
    paint("strong", framework.padEnd(9)),
    client.padEnd(12),
    rule.padEnd(17),
    used,
    paint("good", admitted.padStart(8)),
    refused === "0" ? refused.padStart(7) : paint("bad", refused.padStart(7)),
    remaining.padStart(9),
  ].join("  ")
}

/** Returns a bar that shows the used share of the limit. */
function bar({ limit, remaining }: Tally, paint: Paint): string {
  if (limit === 0) return " ".repeat(BAR)
  const used = Math.round(((limit - remaining) / limit) * BAR)
  return paint(remaining === 0 ? "bad" : "good", "■".repeat(used)) + paint("quiet", "□".repeat(BAR - used))
}

function retry({ retryAtMs, waited }: Tally, nowMs: number, paint: Paint): string {
  if (waited?.isAdmitted === true) return paint("good", `${waited.seconds} s ✓`)
  if (waited?.isAdmitted === false) return paint("bad", `${waited.seconds} s ✗`)
  return retryAtMs === 0 ? "" : paint("told", `${Math.max(0, Math.ceil((retryAtMs - nowMs) / 1000))} s`)
}
