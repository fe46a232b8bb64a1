import { type StoredItem, storedItem } from "./stored-item.ts"
import type { ItemPage, ItemReadOptions, Table } from "./table.ts"
import { serviceOf } from "./table-key.ts"

/** An item of a table, with the service that it belongs to. */
export interface FoundItem extends StoredItem {
  readonly service: string
}

/**
 * Target size of a page in characters. The SDK takes about 5 ms to deserialize a page of this size, and blocks
 * requests during that time. A measurement showed 100 to 150 ns per character.
 */
const PAGE_CHARACTERS = 32_768
/** Number of items in the first page, when the size of the items is still unknown. */
const FIRST_PAGE = 10

/**
 * Returns all items of a table in pages of at most `pageSize`. After a page with large items, the next page contains
 * fewer items. A single item, which may have up to 400 KB, is deserialized without a pause. The next page is
 * requested while the current one is used.
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
      // Avoid an unhandled rejection, because the next page may fail before it is awaited.
      coming?.catch(() => {})
      yield found
    }
  } finally {
    ended.abort()
  }
}
