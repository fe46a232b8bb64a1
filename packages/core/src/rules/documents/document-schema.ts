import * as v from "valibot"
import type { RateUnit } from "../../ground/duration.ts"
import { choice, integer, type Schema, says, strict } from "../../ground/shape.ts"
import { storedRejection } from "../parsing/rejection-members.ts"
import { member, NAMES_ELSEWHERE } from "../parsing/rule-members.ts"
import { serviceMetadata } from "../parsing/service-metadata-members.ts"

const UNITS: readonly RateUnit[] = ["second", "minute", "hour", "day", "week"]

const RATE_SPELLINGS = ["request_per_unit", "requestsPerUnit"]
/** The spellings of the limit of a rate. The first one is preferred. */
export const LIMIT_SPELLINGS: readonly string[] = ["requests_per_unit", ...RATE_SPELLINGS]
const OTHER_MESSAGES = ["rejection_message", "errorMessage"]
/** The spellings of the rejection message. The first one is preferred. */
export const MESSAGE_SPELLINGS: readonly string[] = ["request_rejection_message", ...OTHER_MESSAGES]

/** Number of requests per unit of time. */
export const storedRate = strict(
  "a rate",
  {
    requests_per_unit: v.optional(member.limit),
    unit: choice("a unit", UNITS),
    /** Other spellings. */
    request_per_unit: v.optional(member.limit),
    requestsPerUnit: v.optional(member.limit),
  },
  RATE_SPELLINGS,
  { limit: "requests_per_unit", max: "requests_per_unit", per: "unit", window: "unit" },
)

/**
 * Accepts any value, because the member is read separately. One invalid rule must not reject the valid ones, nor an
 * invalid unit the limit.
 */
const readLater = () => v.optional(v.unknown())

/** One stored rule. It has a `rate`, or `limit` and `window`. Other members are as in code, but in snake_case. */
export const storedRule = strict(
  "a rule",
  {
    name: v.optional(member.name),
    field: v.optional(member.field),
    rate: readLater(),
    limit: v.optional(member.limit),
    window: v.optional(member.window),
    request_rejection_message: v.optional(member.rejectionMessage),
    rejection: v.optional(storedRejection),
    on_missing: v.optional(member.onMissing),
    on_store_failure: v.optional(member.onStoreFailure),
    algorithm: v.optional(member.algorithm),
    align: v.optional(member.align),
    buckets: v.optional(member.buckets),
    burst: v.optional(member.burst),
    refill: v.optional(member.refill),
    throttle: readLater(),
    count_rejected: v.optional(member.countRejected),
    penalty: v.optional(member.penalty),
    notify: v.optional(member.notify),
    cost: v.optional(member.cost),
    match: v.optional(member.match),
    allow: v.optional(member.allow),
    deny: v.optional(member.deny),
    overrides: v.optional(member.overrides),
    shadow: v.optional(member.shadow),
    /** Other spellings. */
    rejection_message: v.optional(member.rejectionMessage),
    errorMessage: v.optional(member.rejectionMessage),
  },
  OTHER_MESSAGES,
  NAMES_ELSEWHERE,
)

/** The accepted service ids, for error messages. */
export const SERVICE_ACCEPTED =
  "a string of 1 to 256 characters, or a whole number from 0 to 9007199254740991 (longer numbers need quotes)"
const SERVICE = says("a service id", SERVICE_ACCEPTED)
/** The service that the rules of a document belong to. */
export const serviceId: Schema = v.union(
  [v.pipe(v.string(), v.minLength(1, SERVICE), v.maxLength(256, SERVICE)), integer(SERVICE, 0)],
  SERVICE,
)

/** The stored shape of one service's rules. */
export const ruleDocument = strict(
  "a rule document",
  {
    service_id: v.optional(serviceId),
    version: v.optional(integer(says("a version", "a whole number from 0"), 0)),
    metadata: v.optional(serviceMetadata),
    rules: readLater(),
    /** Older spellings. */
    Service_id: v.optional(serviceId),
    serviceId: v.optional(serviceId),
    rule: readLater(),
  },
  ["Service_id", "serviceId", "rule"],
  { descriptors: "sluice rules import", services: "service_id", service: "service_id", name: "service_id" },
)
