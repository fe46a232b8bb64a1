import { type StoredItem, storedItem } from "./stored-item.ts"
import type { ItemPage, ItemReadOptions, Table } from "./table.ts"
import { serviceOf } from "./table-key.ts"

/** An item of a table and whose it is. */
export interface FoundItem extends StoredItem {
  readonly service: string
}

/**
 * How much a page should say at most, in characters. The SDK takes some 5 ms to unpack as much (measured: 100 to 150 ns a
 * character), and does it at a stretch.
 */
const PAGE_CHARACTERS = 32_768
/** The items of the first page, of which it is not known how large they are. */
const FIRST_PAGE = 10

/**
 * All items of a table, a page at a time: `pageSize` at most, and fewer where items are large, as the last page tells. A single large
 * item, of 400 KB at most, takes as long as it takes. While a page is used, the next is on its way.
 */
export async function* scanItems(
  table: Table,
  pageSize: number,
  { consistent, signal }: ItemReadOptions,
): AsyncGenerator<readonly FoundItem[], void, undefined> {
  const key = await table.key(table.what(undefined, "listed"), signal)
  const ended = new AbortController()
  const options: ItemReadOptions = {
    consistent,
    signal: signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]),
  }
  let limit = Math.min(pageSize, FIRST_PAGE)
  let coming: Promise<ItemPage> | undefined = table.scan(limit, undefined, options)
  try {
    while (coming !== undefined) {
      const { items, next }: ItemPage = await coming
      const found = items.map((item): FoundItem => {
        const service = serviceOf(key, item)
        return { service, ...storedItem(table.name, key, service, item) }
      })
      const size = found.reduce((sum, each) => sum + each.size, 0)
      const fitting = Math.floor((PAGE_CHARACTERS / Math.max(size, 1)) * found.length)
      limit = found.length === 0 ? limit : Math.min(pageSize, Math.max(1, fitting))
      coming = next === undefined ? undefined : table.scan(limit, next, options)
      // It may fail before anyone waits for it.
      coming?.catch(() => {})
      yield found
    }
  } finally {
    ended.abort()
  }
}
