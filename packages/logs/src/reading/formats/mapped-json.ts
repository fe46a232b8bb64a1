import { LogError } from "../../log-error.ts"
import { type FieldMap, type LogFormat, SKIPPED } from "./format.ts"
import { jsonRecords, objectReader } from "./json-lines.ts"
import { valueAt } from "./json-value.ts"

/**
 * Any JSON lines, read by the fields of `--map`. A line counts as another message of the app if it contains no mapped
 * field except the time.
 */
export const mappedJson: LogFormat = {
  name: "json",
  encoding: "utf8",
  open(file, map) {
    const sources = sourcesOf(map)
    if (map.time === undefined || sources.length === 0) {
      throw new LogError(
        "JSON lines need to know where their fields are: add, for example, --map time=ts --map ip=client.addr",
      )
    }
    const toRecord = jsonRecords({ names: [], hasQuery: false }, file, map)
    return objectReader((object, number) => {
      const isRequest = sources.some((source) => valueAt(object, source) !== undefined)
      return isRequest ? toRecord(object, { atMs: Number.NaN }, number) : SKIPPED
    }, true)
  },
}

function sourcesOf(map: FieldMap): readonly string[] {
  return Object.entries(map).flatMap(([field, source]) => (field === "time" ? [] : [source]))
}
