const MS_PER_UNIT: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

const PART = "(\\d+(?:\\.\\d+)?) *(ms|s(?:econds?)?|m(?:inutes?)?|h(?:ours?)?|d(?:ays?)?)"

/** Returns the milliseconds of "90 seconds", "1 minute", "15m", "6m0s" or "17ms"; NaN for anything else. */
export function durationMs(text: string): number {
  if (!new RegExp(`^(?:${PART})+$`).test(text)) return Number.NaN
  let ms = 0
  for (const [, number, unit = ""] of text.matchAll(new RegExp(PART, "g")))
    ms += Number(number) * (unit === "ms" ? 1 : (MS_PER_UNIT[unit.charAt(0)] as number))
  return ms
}

const DAY_S = 86_400

/** Returns a time for people, such as "90 s" or, for more than two days, "22 days". Rounds up. */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  return seconds > 2 * DAY_S ? `${Math.ceil(seconds / DAY_S)} days` : `${seconds} s`
}
