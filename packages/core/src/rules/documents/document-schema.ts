import { z } from "zod"
import type { RateUnit } from "../../ground/duration.ts"
import { choice, says, strict } from "../../ground/shape.ts"
import { member } from "../parsing/rule-members.ts"
import { storedThrottle } from "../parsing/throttle-members.ts"

const UNITS: readonly [RateUnit, ...RateUnit[]] = ["second", "minute", "hour", "day", "week"]

/** How much in which unit. */
export const storedRate = strict(
  "a rate",
  {
    requests_per_unit: member.limit.optional(),
    unit: choice("a unit", UNITS),
    /** Older spelling. */
    requestsPerUnit: member.limit.optional(),
  },
  ["requestsPerUnit"],
)

/** One rule as it is stored: a `rate`, or `limit` and `window`; the other members as in code, in snake_case. */
export const storedRule = strict(
  "a rule",
  {
    name: member.name.optional(),
    field: member.field.optional(),
    rate: storedRate.optional(),
    limit: member.limit.optional(),
    window: member.window.optional(),
    request_rejection_message: member.rejectionMessage.optional(),
    on_missing: member.onMissing.optional(),
    on_store_failure: member.onStoreFailure.optional(),
    algorithm: member.algorithm.optional(),
    align: member.align.optional(),
    buckets: member.buckets.optional(),
    burst: member.burst.optional(),
    refill: member.refill.optional(),
    throttle: storedThrottle.optional(),
    count_rejected: member.countRejected.optional(),
    penalty: member.penalty.optional(),
    cost: member.cost.optional(),
    match: member.match.optional(),
    allow: member.allow.optional(),
    deny: member.deny.optional(),
    shadow: member.shadow.optional(),
    /** Older spelling. */
    errorMessage: member.rejectionMessage.optional(),
  },
  ["errorMessage"],
)

/** What a service id in a document may be. */
export const SERVICE_ACCEPTED =
  "a text of 1 to 256 characters, or a whole number from 0 to 9007199254740991; a longer one in quotes"
const SERVICE = says("a service id", SERVICE_ACCEPTED)
/** Whose rules a document has. */
export const serviceId: z.ZodUnion<readonly [z.ZodString, z.ZodInt]> = z.union(
  [z.string().min(1, SERVICE).max(256, SERVICE), z.int(SERVICE).min(0, SERVICE)],
  SERVICE,
)

/** The stored shape of one service's rules. Has no transformation, so that a JSON Schema can be made from it. */
export const ruleDocument = strict(
  "a rule document",
  {
    service_id: serviceId.optional(),
    version: z
      .int(says("a version", "a whole number from 0"))
      .min(0, says("a version", "a whole number from 0"))
      .optional(),
    rules: z.union([z.array(storedRule), storedRule]).optional(),
    /** Older spellings. */
    Service_id: serviceId.optional(),
    serviceId: serviceId.optional(),
    rule: storedRule.optional(),
  },
  ["Service_id", "serviceId", "rule"],
)
