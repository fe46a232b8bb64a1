import { mustBe, requireValue } from "../ground/option-checks.ts"
import type { RequestFacts } from "./request.ts"

const checkRule = mustBe(
  "the name of a rule",
  'a string such as "per-user"',
  (value) => typeof value === "string",
)
const checkKey = mustBe(
  "the key of a client",
  'the partition of a counter, or a list of values such as ["ada"]',
  (value) =>
    typeof value === "string" || (Array.isArray(value) && value.every((one) => typeof one === "string")),
)

/** A client that is named by a rule and by the key under which the rule counts it, instead of by a request. */
export class NamedClient implements RequestFacts {
  readonly rule: string
  /** The text of a counter, or the values of the rule's fields. */
  readonly key: string | readonly string[]
  declare readonly method?: undefined

  /** Throws InvalidOptionError. */
  constructor(rule: string, key: string | readonly string[]) {
    requireValue("rule", rule, checkRule)
    requireValue("key", key, checkKey)
    this.rule = rule
    this.key = key
  }
}
