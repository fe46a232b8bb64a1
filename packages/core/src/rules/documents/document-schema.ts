import * as v from "valibot"
import {
  choice,
  integer,
  isObject,
  type ObjectSchema,
  readShape,
  type Schema,
  says,
  strict,
} from "../../ground/shape.ts"
import { type MemberProblem, show } from "../../ground/show.ts"
import { type RuleMember, renamed } from "../parsing/member.ts"
import { NAMES_ELSEWHERE, RULE_MEMBERS } from "../parsing/rule-members.ts"
import { serviceMetadata } from "../parsing/service-metadata-members.ts"
import { RATE_UNITS } from "../parsing/stored-size.ts"

type StoredMember = Pick<RuleMember, "stored" | "shape" | "storedShape" | "names"> & {
  /** True if an object in a document is invalid without this member. */
  readonly isAlwaysStored?: true
}

/** An object of a document. The names of its members may differ from those in code, and may have older spellings. */
export interface StoredObject {
  readonly shape: ObjectSchema
  readonly spellings: ReadonlyMap<string, Spelling>
}

interface Spelling {
  /** The name in code. */
  readonly name: string
  /** The spelling in written documents. */
  readonly preferred: string
  /** For an object: the names of its direct members in code, by their names in documents. */
  readonly inside: Readonly<Record<string, string>> | undefined
}

function storedObject(
  noun: string,
  members: Readonly<Record<string, StoredMember>>,
  elsewhere: Readonly<Record<string, string>>,
): StoredObject {
  const spellings = new Map<string, Spelling>()
  const entries: Record<string, Schema> = {}
  const older: string[] = []
  for (const [name, member] of Object.entries(members)) {
    const {
      stored: [preferred, ...others] = [name],
      shape,
      storedShape = shape,
      names,
      isAlwaysStored,
    } = member
    const inside =
      names && Object.fromEntries(Object.entries(names).map(([inner, stored]) => [stored, inner]))
    for (const spelling of [preferred, ...others]) {
      spellings.set(spelling, { name, preferred, inside })
      entries[spelling] = isAlwaysStored === true ? storedShape : v.optional(storedShape)
    }
    older.push(...others)
  }
  return { shape: strict(noun, entries, older, elsewhere), spellings }
}

/** The members of an object in a document, by their names in code. */
export interface StoredMembers {
  /** The valid members, without members that are given twice. */
  readonly members: Readonly<Record<string, unknown>>
  /** The spelling of each valid member in the document. */
  readonly spelled: Readonly<Record<string, string>>
  /** The names of the invalid members, without unknown members. */
  readonly bad: ReadonlySet<string>
  readonly problems: MemberProblem[]
}

/** Reads an object of a document. Problems contain the names that the document uses. */
export function readStored({ shape, spellings }: StoredObject, value: unknown): StoredMembers {
  const { good, bad, problems } = readShape(shape, value)
  const found = [...problems]
  const members: Record<string, unknown> = {}
  const spelled: Record<string, string> = {}
  for (const spelling in good) {
    const { name, preferred, inside } = spellings.get(spelling) as Spelling
    const earlier = spelled[name]
    if (earlier === undefined) {
      const given = good[spelling]
      spelled[name] = spelling
      members[name] = inside !== undefined && isObject(given) ? renamed(given, inside) : given
      continue
    }
    delete members[name]
    const message = `is another name for ${show(earlier)}, which is given too`
    found.push({ path: [spelling], message, accepted: `only ${show(preferred)}` })
  }
  // Leave out unknown members, because an unknown name may equal the code name of another member.
  const badInCode = new Set([...bad].flatMap((spelling) => spellings.get(spelling)?.name ?? []))
  return { members, spelled, bad: badInCode, problems: found }
}

/**
 * Accepts any value, because the member is read separately. Otherwise one invalid rule would reject the valid rules,
 * and an invalid unit would reject the limit.
 */
const READ_LATER = v.unknown()

/** Number of requests per unit of time. */
export const storedRate: StoredObject = storedObject(
  "a rate",
  {
    limit: {
      stored: ["requests_per_unit", "request_per_unit", "requestsPerUnit"],
      shape: RULE_MEMBERS.limit.storedShape as Schema,
    },
    unit: { shape: choice("a unit", RATE_UNITS), isAlwaysStored: true },
  },
  { limit: "requests_per_unit", max: "requests_per_unit", per: "unit", window: "unit" },
)

const { name, field, ...otherMembers } = RULE_MEMBERS
/** One stored rule. A rule contains either `rate`, or `limit` and `window`. */
export const storedRule: StoredObject = storedObject(
  "a rule",
  { name, field, rate: { shape: READ_LATER }, ...(otherMembers as Readonly<Record<string, StoredMember>>) },
  { ...NAMES_ELSEWHERE, timezone: "time_zone", tz: "time_zone" },
)

const SERVICE = says(
  "a service id",
  "a string of 1 to 256 characters, or 0 or a positive whole number below 2^53 (longer numbers need quotes)",
)
/** A service id that is a string. */
export const serviceName: Schema = v.pipe(
  v.string(SERVICE),
  v.minLength(1, SERVICE),
  v.maxLength(256, SERVICE),
)
/** The version of a document. */
export const documentVersion: Schema = integer(says("a version", "0 or a positive whole number"), 0)

/** The stored shape of one service's rules. */
export const ruleDocument: StoredObject = storedObject(
  "a rule document",
  {
    service: {
      stored: ["service_id", "Service_id", "serviceId"],
      shape: v.union([serviceName, integer(SERVICE, 0)], SERVICE),
    },
    version: { shape: documentVersion },
    metadata: { shape: serviceMetadata },
    rules: { stored: ["rules", "rule"], shape: READ_LATER },
  },
  { descriptors: "sluice rules import", services: "service_id", service: "service_id", name: "service_id" },
)
