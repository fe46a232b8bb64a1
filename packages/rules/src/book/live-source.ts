import { InvalidOptionError, type Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import { type LiveRules, type OpenedRules, type RulesReader, VERSION } from "@sluice/core/rules"
import type { RuleSource } from "../source.ts"
import { OpenBook } from "./open-book.ts"
import { isSource, parseBookOptions } from "./options.ts"
import { ServiceReading } from "./service-reading.ts"

/** A source that limiters accept as their `rules`. */
export interface LiveSource extends RuleSource, LiveRules {}

/**
 * Converts your own source to an object that limiters accept as their `rules`. Each limiter opens its own rule book
 * on the source, with the limiter's clock and logger, and later closes the book. `fileRules`, `staticRules` and
 * `dynamoDBRules` do not need this call.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { liveRules, type RuleSource, readRuleDocument } from "@sluice/rules"
 *
 * const source: RuleSource = {
 *   pollMs: 5_000,
 *   load: async (service) => readRuleDocument(await (await fetch(`https://rules.example/${service}`)).json()),
 * }
 * const limiter = createLimiter({ service: "checkout", rules: liveRules(source), onRulesMissing: "allow" })
 * ```
 * @throws {@link InvalidOptionError} if the source has no `load`.
 */
export function liveRules(source: RuleSource): LiveRules {
  if (!isSource(source)) {
    const accepted = "a RuleSource, which has load(service)"
    throw new InvalidOptionError([{ path: "", message: `${show(source)} is not a rule source`, accepted }])
  }
  return {
    ...(source.name !== undefined && { name: source.name }),
    coreVersion: VERSION,
    readsSynchronously: source.loadSync !== undefined,
    open(service, reader) {
      // A copy with other members, as `{ ...fileRules(path), watch }` makes, is a separate source.
      const opened: RuleSource = isSource(this) ? this : source
      if ((opened.loadSync !== undefined) !== this.readsSynchronously) throw new InvalidOptionError([COPIED])
      return openOwnBook(opened, service, reader)
    },
  }
}

/** Reject such a copy, because the limiter has already checked whether the original needs default rules. */
const COPIED: Problem = {
  path: "rules",
  message: "is a copy of live rules, with or without loadSync() unlike the original",
  accepted: "liveRules(copy)",
}

/** Opens a book for this reader alone. Its warnings are emitted by the reader. */
function openOwnBook(source: RuleSource, service: string, reader: RulesReader): OpenedRules {
  const { clock, logger, events } = reader
  const book = new OpenBook(parseBookOptions({ source, clock, logger }))
  book.on("warning", (warning) => events.emit("warning", warning))
  return new ServiceReading(book, service, reader, () => book.close())
}
