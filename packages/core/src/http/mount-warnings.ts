import { type Logger, type Warner, warnOncePerLogger } from "../warnings.ts"

/** Says that a limiter with these rules has met a request twice. */
export function warnMountedTwice(warner: Warner, ruleNames: readonly string[]): void {
  warner.once(
    "SLUICE_MOUNTED_TWICE",
    `The limiter${withRules(ruleNames)} met the same request twice: it is mounted twice. ` +
      "The request was counted once; remove one of the mounts.",
  )
}

/** Says that a limiter was made where a request is handled, once for all limiters with this logger. */
export function warnCreatedInHandler(logger: Logger | undefined): void {
  warnOncePerLogger(
    logger,
    "SLUICE_CREATED_IN_HANDLER",
    "A limiter was created while a request was being handled, so it counts nothing beyond that request. " +
      "Create it once, when the app starts, and mount it: app.use(rateLimit({ … })).",
  )
}

/** A source may have thousands. */
function withRules(names: readonly string[]): string {
  if (names.length === 0) return ""
  const named = names.slice(0, 3).map((name) => `"${name}"`)
  return ` with rule${names.length > 1 ? "s" : ""} ${named.join(", ")}${names.length > 3 ? ", …" : ""}`
}
