import type { TableDescription } from "@aws-sdk/client-dynamodb"
import { type Attributes, plainValue } from "./attribute-values.ts"
import { TableError } from "./failure.ts"

/** What a table's key can be: a text or a number. */
export type KeyType = "S" | "N"

/** The key by which a table finds the rules of a service. */
export interface TableKey {
  /** The attribute: "service_id" in tables that the registry creates. */
  readonly name: string
  readonly type: KeyType
}

/** The key of tables that are created, unless another is given. */
export const DEFAULT_KEY: TableKey = { name: "service_id", type: "S" }

/** The key of a table as DynamoDB describes it. Throws TableError when rules cannot be found by it. */
export function keyOf({ KeySchema = [], AttributeDefinitions = [] }: TableDescription): TableKey {
  const [partition, sort] = ["HASH", "RANGE"].map(
    (kind) => KeySchema.find(({ KeyType }) => KeyType === kind)?.AttributeName,
  )
  if (sort !== undefined) {
    throw new TableError(
      `its key has a sort key, ${JSON.stringify(sort)}, and so no single item for a service; use a table whose key is service_id alone`,
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

/** A number as DynamoDB writes it, so that "7" and "07" are not one service: at most 38 digits. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/

/** The key of a service's item; undefined where no item can have it: not a number, empty, or longer than 2048 bytes. */
export function keyFor({ name, type }: TableKey, service: string): Attributes | undefined {
  if (type === "S") {
    return service !== "" && Buffer.byteLength(service) <= 2048 ? { [name]: { S: service } } : undefined
  }
  const isNumber = NUMBER.test(service) && service !== "-0" && service.replace(/\D/g, "").length <= 38
  return isNumber ? { [name]: { N: service } } : undefined
}

/** The service whose item this is. */
export function serviceOf({ name }: TableKey, item: Attributes): string {
  return String(plainValue(item[name]))
}
