import type { TableDescription } from "@aws-sdk/client-dynamodb"
import { type Attributes, plainValue } from "./attribute-values.ts"
import { TableError } from "./failure.ts"

/** The type of a table's key: a string or a number. */
export type KeyType = "S" | "N"

/** The key attribute that identifies a service in a table. */
export interface TableKey {
  /** Name of the attribute: "service_id" in tables that the registry creates. */
  readonly name: string
  readonly type: KeyType
}

/** The default key of new tables. */
export const DEFAULT_KEY: TableKey = { name: "service_id", type: "S" }

/** Returns the key of a table from its description. Throws TableError if rules cannot be looked up by this key. */
export function keyOf({ KeySchema = [], AttributeDefinitions = [] }: TableDescription): TableKey {
  const [partition, sort] = ["HASH", "RANGE"].map(
    (kind) => KeySchema.find(({ KeyType }) => KeyType === kind)?.AttributeName,
  )
  if (sort !== undefined) {
    throw new TableError(
      `its key has a sort key, ${JSON.stringify(sort)}, so a service can have several items; use a table without a sort key`,
    )
  }
  const type = AttributeDefinitions.find(({ AttributeName }) => AttributeName === partition)?.AttributeType
  if (partition === undefined || (type !== "S" && type !== "N")) {
    throw new TableError(
      `its key ${JSON.stringify(partition)} is of type ${type}; use a table whose key is a string or a number`,
    )
  }
  return { name: partition, type }
}

/** Matches a number in the form in which DynamoDB returns it, so that "7" and "07" are different services. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/

/**
 * Returns the key of a service's item. Returns undefined if the service cannot be a key because it is not a number,
 * empty, or longer than 2048 bytes.
 */
export function keyFor({ name, type }: TableKey, service: string): Attributes | undefined {
  if (type === "S") {
    return service !== "" && Buffer.byteLength(service) <= 2048 ? { [name]: { S: service } } : undefined
  }
  const isNumber = NUMBER.test(service) && service !== "-0" && service.replace(/\D/g, "").length <= 38
  return isNumber ? { [name]: { N: service } } : undefined
}

/** Returns the service that the item belongs to. */
export function serviceOf({ name }: TableKey, item: Attributes): string {
  return String(plainValue(item[name]))
}
