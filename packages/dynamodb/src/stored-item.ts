import { createHash } from "node:crypto"
import type { Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import { plainMetadata } from "@sluice/core/rules"
import {
  type LoadedRules,
  parseJsonText,
  type RegisteredRules,
  readRuleDocumentInSlices,
} from "@sluice/rules"
import { type Attributes, canonicalText, plainMembers } from "./attribute-values.ts"
import type { TableItem } from "./table.ts"
import type { TableKey } from "./table-key.ts"

/** The content of an item before it is parsed. */
export interface StoredItem {
  /** A string that stays the same while the content stays the same. */
  readonly stamp: string
  /** Approximate size of the content in characters. */
  readonly size: number
  /**
   * Parses the content in slices, and yields to requests between the slices. Problems name the table, the service and
   * the path.
   */
  read(): Promise<LoadedRules>
}

/**
 * Returns the item of a service. Attributes other than version, metadata and rules belong to other writers and are
 * ignored.
 */
export function storedItem(tableName: string, key: TableKey, service: string, item: Attributes): StoredItem {
  const document = documentOf(key, item)
  const text = canonicalText(document)
  const stamp = createHash("sha256").update(text).digest("base64url")
  return {
    stamp,
    size: text.length,
    read: async () => ({ ...(await readDocument(tableName, service, document)), stamp }),
  }
}

/** Parses an item for a registry. Skips the stamp, because computing it takes tens of milliseconds for 1,000 rules. */
export async function readRegistered(
  tableName: string,
  service: string,
  { key, item }: TableItem,
): Promise<RegisteredRules> {
  return registered(service, await readDocument(tableName, service, documentOf(key, item)))
}

/** Returns the content of an item in the form that a registry returns. */
export function registered(
  service: string,
  { rules, problems, version = 0, metadata: stored }: LoadedRules,
): RegisteredRules {
  const metadata = plainMetadata(stored)
  return { service, version, rules, problems, ...(metadata !== undefined && { metadata }) }
}

async function readDocument(tableName: string, service: string, document: ItemMembers): Promise<LoadedRules> {
  const place = `table ${show(tableName)} service ${show(service)}`
  const { value, problems: unread } = readRulesText(document)
  const { rules, version, metadata, problems } = await readRuleDocumentInSlices(value)
  return {
    rules,
    problems: [...unread, ...problems].map(({ path, ...problem }) => ({
      path: `${place} ${path}`,
      ...problem,
    })),
    ...(version !== undefined && { version }),
    ...(metadata !== undefined && { metadata }),
  }
}

type ItemMembers = Readonly<Record<string, unknown>>

/** The members of a document that are attributes of an item. The service is the item's key. */
const MEMBERS = ["version", "metadata", "rules", "rule"]

function documentOf(key: TableKey, item: Attributes): ItemMembers {
  // Without rules, include the other attributes, because one of them may be a misspelling of `rules`.
  const hasRules = Object.hasOwn(item, "rules") || Object.hasOwn(item, "rule")
  const members = Object.entries(item).filter(([name]) =>
    hasRules ? MEMBERS.includes(name) : name !== key.name,
  )
  return plainMembers(Object.fromEntries(members))
}

/** Parses rules that were stored as a JSON text. */
function readRulesText(document: ItemMembers): {
  readonly value: ItemMembers
  readonly problems: readonly Problem[]
} {
  const name = ["rules", "rule"].find((each) => typeof document[each] === "string")
  if (name === undefined) return { value: document, problems: [] }
  try {
    return { value: { ...document, [name]: parseJsonText(document[name] as string) }, problems: [] }
  } catch (error) {
    const message = `is a string that is not valid JSON: ${(error as Error).message}`
    const problem = { path: name, message, accepted: "a list of rules, or a JSON string of such a list" }
    return { value: { ...document, [name]: [] }, problems: [problem] }
  }
}
