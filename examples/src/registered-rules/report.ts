import type { Paint } from "../demo/paint.ts"
import type { Round } from "./round.ts"

/** A round, with the result that the rules require. */
export interface Judged {
  readonly round: Round
  readonly admitted: number
  readonly rule: string
}

/** Whether the round has the result that the rules require. */
export function isKept({ round, admitted, rule }: Judged): boolean {
  return round.admitted === admitted && round.rule === rule
}

/** Returns a table of rounds, at most 100 columns wide. */
export function table(rounds: readonly Judged[], paint: Paint): string {
  const head = row("", "user", "asked", "admitted", "refused", "by", "told")
  const rows = rounds.map((judged) => {
    const { user, admitted, refused, rule, told } = judged.round
    const mark = isKept(judged) ? paint("good", "✓") : paint("bad", "✗")
    const line = row("", user, String(admitted + refused), String(admitted), String(refused), rule, told)
    const wanted = isKept(judged) ? "" : paint("bad", `  wanted ${judged.admitted} ${judged.rule}`)
    return `${mark}${line}${wanted}`.trimEnd()
  })
  return [paint("quiet", ` ${head}`.trimEnd()), ...rows].join("\n")
}

function row(
  ...[mark = "", user = "", asked = "", admitted = "", refused = "", by = "", told = ""]: string[]
): string {
  const numbers = [asked.padStart(6), admitted.padStart(9), refused.padStart(8)].join("")
  return `${mark} ${user.padEnd(6)}${numbers}  ${by.padEnd(10)}${told}`
}
