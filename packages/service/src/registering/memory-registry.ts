import { InvalidOptionError } from "@sluice/core"
import {
  type FoundRules,
  formatRuleDocumentInSlices,
  type LoadedRules,
  type LoadOptions,
  type RegisteredRules,
  type RemoveOptions,
  RuleConflictError,
  type RuleRegistry,
  type RuleSource,
  readRuleDocumentInSlices,
} from "@sluice/rules"

/** A registry that stores rules in the memory of this process. The registry is also the source for a rule book. */
export interface MemoryRegistry extends RuleRegistry, RuleSource {
  loadAll(options?: LoadOptions): AsyncIterable<readonly FoundRules[]>
  watch(changed: () => void): () => void
}

type Version = number | "any" | undefined

/**
 * The stored rules of a service. `stamp` changes with every write, while version numbers start again after a removal.
 */
interface Stored {
  readonly registered: RegisteredRules
  readonly stamp: string
}

/** Number of services in one page of `loadAll`. */
const PAGE = 100

/**
 * Creates a registry for a single process, to try the service without installing anything. The rules are lost when the
 * process ends.
 *
 * The registry stores rules in the same shape as a table, so a caller reads the same rules back as from a table.
 */
export function memoryRegistry(): MemoryRegistry {
  const stored = new Map<string, Stored>()
  const listeners = new Set<() => void>()
  let writes = 0

  const announce = (): void => {
    for (const listener of [...listeners]) listener()
  }
  const conflict = (service: string, expected: Version): RuleConflictError => {
    const found = stored.get(service)?.registered
    const there = found === undefined ? "no rules" : `version ${found.version}`
    const wanted =
      expected === undefined
        ? "no rules were"
        : expected === 0
          ? "rules without a version were"
          : `version ${expected} was`
    const advice =
      found === undefined
        ? "Write without a version to register them again"
        : `Read the stored rules, and write again with version: ${found.version}`
    // Use the same words as the error of a DynamoDB table.
    const message = `Service ${JSON.stringify(service)} has ${there}, but ${wanted} expected. Nothing was changed. ${advice}`
    return new RuleConflictError(message, service, found)
  }

  const loadSync = (service: string): LoadedRules => {
    const found = stored.get(service)
    return found === undefined ? NONE : loaded(found)
  }

  return {
    name: "the registry in memory",
    async register(service, rules, { version, metadata: given, signal } = {}) {
      signal?.throwIfAborted()
      if (version !== undefined) requireVersion(version)
      const document = await formatRuleDocumentInSlices(service, rules, undefined, given)
      const { rules: kept } = await readRuleDocumentInSlices(document)
      const found = stored.get(service)?.registered
      const metadata = given === undefined ? found?.metadata : document.metadata
      // Treat version 0 as undefined, which expects that nothing is stored, because stored versions start at 1.
      if (version !== "any" && (version || undefined) !== found?.version) throw conflict(service, version)
      writes += 1
      const registered = {
        ...{ service, version: (found?.version ?? 0) + 1, rules: kept, problems: [] },
        ...(metadata !== undefined && { metadata }),
      }
      stored.set(service, { registered, stamp: String(writes) })
      announce()
      return registered
    },
    async get(service, { signal } = {}) {
      signal?.throwIfAborted()
      return stored.get(service)?.registered
    },
    async *list({ signal } = {}) {
      signal?.throwIfAborted()
      for (const { registered } of [...stored.values()]) yield registered
    },
    async remove(service, options) {
      // Callers in plain JavaScript may omit the options.
      const { version, signal }: Partial<RemoveOptions> = options ?? {}
      signal?.throwIfAborted()
      requireVersion(version)
      const found = stored.get(service)?.registered
      if (found === undefined) return false
      if (version !== "any" && version !== found.version) throw conflict(service, version)
      stored.delete(service)
      announce()
      return true
    },
    async load(service, { signal } = {}) {
      signal?.throwIfAborted()
      return loadSync(service)
    },
    loadSync,
    async *loadAll({ signal } = {}) {
      signal?.throwIfAborted()
      const all = [...stored.values()].map(
        (each): FoundRules => ({
          service: each.registered.service,
          stamp: each.stamp,
          read: () => loaded(each),
        }),
      )
      for (let at = 0; at < all.length; at += PAGE) yield all.slice(at, at + PAGE)
    },
    watch(changed) {
      // Add a new function, so that two watches with the same callback can be stopped independently.
      const listener = (): void => changed()
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
  }
}

const NONE: LoadedRules = { rules: [], problems: [] }

function loaded({ registered: { service: _service, ...registered }, stamp }: Stored): LoadedRules {
  return { ...registered, stamp }
}

function requireVersion(version: unknown): void {
  const isVersion =
    Number.isSafeInteger(version) && (version as number) >= 0 && version !== Number.MAX_SAFE_INTEGER
  if (version === "any" || isVersion) return
  const message = version === undefined ? "is missing" : `${String(JSON.stringify(version))} is not a version`
  throw new InvalidOptionError([
    { path: "version", message, accepted: '0 or a positive whole number, or "any" to accept any version' },
  ])
}
