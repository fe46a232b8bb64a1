import { hash } from "node:crypto"
import type { Problem } from "../../ground/errors.ts"
import { locate, show } from "../../ground/show.ts"
import { parseJsonText } from "../documents/json-text.ts"
import { readRuleDocumentInSlices } from "../documents/rule-document.ts"
import type { RegisteredRules } from "../registry.ts"
import type { LoadedRules } from "../source.ts"
import { type Attributes, canonicalText, plainMembers } from "./attribute-values.ts"
import type { TableItem } from "./table.ts"
import type { TableKey } from "./table-key.ts"

/** What an item says of rules, not yet parsed. */
export interface StoredItem {
  /** The same text as long as the item says the same. */
  readonly stamp: string
  /** About how much it says, in characters. */
  readonly size: number
  /** Parses it, in slices between which requests have their turn. Problems name the table, the service and the path. */
  read(): Promise<LoadedRules>
}

/** The item of a service. The attributes beside version and rules are others' and not looked at. */
export function storedItem(tableName: string, key: TableKey, service: string, item: Attributes): StoredItem {
  const document = documentOf(key, item)
  const text = canonicalText(document)
  const stamp = hash("sha256", text, "base64url")
  return {
    stamp,
    size: text.length,
    read: async () => ({ ...(await readDocument(tableName, service, document)), stamp }),
  }
}

/** Parses an item for a registry. It needs no stamp, which takes tens of milliseconds for 1,000 rules. */
export async function readRegistered(
  tableName: string,
  service: string,
  { key, item }: TableItem,
): Promise<RegisteredRules> {
  return registered(service, await readDocument(tableName, service, documentOf(key, item)))
}

/** What an item says, as a registry returns it. */
export function registered(service: string, { rules, problems, version = 0 }: LoadedRules): RegisteredRules {
  return { service, version, rules, problems }
}

async function readDocument(tableName: string, service: string, document: ItemMembers): Promise<LoadedRules> {
  const place = `table ${show(tableName)} service ${show(service)}`
  const { value, problems: unread } = readRulesText(document)
  const { rules, version, problems } = await readRuleDocumentInSlices(value)
  return {
    rules,
    problems: [...unread, ...problems].map((problem) => below(place, problem)),
    ...(version !== undefined && { version }),
  }
}

type ItemMembers = Readonly<Record<string, unknown>>

/** The members of a document that are attributes of an item; the service is its key. */
const MEMBERS = ["version", "rules", "rule"]

function documentOf(key: TableKey, item: Attributes): ItemMembers {
  // Without rules, the rest may tell what they were meant to be called.
  const hasRules = Object.hasOwn(item, "rules") || Object.hasOwn(item, "rule")
  const members = Object.entries(item).filter(([name]) =>
    hasRules ? MEMBERS.includes(name) : name !== key.name,
  )
  return plainMembers(Object.fromEntries(members))
}

/** Rules that someone stored as a text of JSON, as a value. */
function readRulesText(document: ItemMembers): {
  readonly value: ItemMembers
  readonly problems: readonly Problem[]
} {
  const name = ["rules", "rule"].find((each) => typeof document[each] === "string")
  if (name === undefined) return { value: document, problems: [] }
  try {
    return { value: { ...document, [name]: parseJsonText(document[name] as string) }, problems: [] }
  } catch (error) {
    const message = `is a text that is not JSON: ${(error as Error).message}`
    const problem = locate("", {
      path: [name],
      message,
      accepted: "a list of rules, or the JSON text of one",
    })
    return { value: { ...document, [name]: [] }, problems: [problem] }
  }
}

function below(place: string, { path, ...problem }: Problem): Problem {
  return { path: `${place} ${path}`, ...problem }
}
