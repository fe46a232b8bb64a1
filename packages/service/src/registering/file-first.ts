import { basename } from "node:path"
import {
  type FileRulesOptions,
  type FoundRules,
  fileRules,
  InvalidRuleError,
  type LoadedRules,
  type LoadOptions,
  type RuleRegistry,
  type RuleSource,
  RuleSourceError,
} from "@sluice/core"
import { Code, StatusError } from "../status-error.ts"
import type { RulesHome } from "./rules-home.ts"

/**
 * A file of rules before another home: a service that the file has is the file's, and cannot be registered; all others are
 * the other's. One that the file gets later is the file's from then on; what was registered of it counts again when the
 * file no longer has it. A document without `service_id` is for services that neither has.
 *
 * Nothing can be registered while the file cannot be read, since it may have the service. Closing the source closes both.
 * @throws {@link InvalidOptionError} for a wrong path or option.
 */
export function fileFirst(path: string, other: RulesHome, options: FileRulesOptions = {}): RulesHome {
  const file = fileRules(path, options)
  return {
    source: sourceOf(file, other.source),
    registry: registryOf(file, basename(path), other.registry),
  }
}

function sourceOf(file: RuleSource, other: RuleSource): RuleSource {
  return {
    name: `${file.name} before ${other.name}`,
    async load(service, options = {}) {
      const registered = await other.load(service, options)
      // Only for a service that both may have need it be known which the file names.
      if (isThere(registered) && !(await servicesOf(file, options)).has(service)) return registered
      const loaded = await file.load(service, options)
      if (!isOfAnother(loaded)) return loaded
      // Unless it does not say whose it is: then this rejects.
      await servicesOf(file, options)
      return NONE
    },
    async *loadAll(options = {}) {
      const own = new Set<string>()
      for await (const page of listed(file, options)) {
        for (const { service } of page) own.add(service)
        yield page
      }
      for await (const page of listed(other, options)) yield page.filter(({ service }) => !own.has(service))
    },
    ...(other.pollMs !== undefined && { pollMs: other.pollMs }),
    watch(changed) {
      const stops = [file, other].map((source) => source.watch?.(changed))
      return () => {
        for (const stop of stops) stop?.()
      }
    },
    async close() {
      await Promise.all([file, other].map((source) => source.close?.()))
    },
  }
}

function registryOf(file: RuleSource, name: string, other: RuleRegistry): RuleRegistry {
  /** Rejects with StatusError for a service that is the file's, with {@link RuleSourceError} where that cannot be told. */
  const requireOther = async (service: string, signal: AbortSignal | undefined): Promise<void> => {
    if (!(await servicesOf(file, signal && { signal })).has(service)) return
    const message = `Service ${JSON.stringify(service)} is in ${name}: change it there.`
    throw new StatusError(Code.FAILED_PRECONDITION, message)
  }
  return {
    async register(service, rules, options = {}) {
      await requireOther(service, options.signal)
      return other.register(service, rules, options)
    },
    async get(service, options = {}) {
      await requireOther(service, options.signal)
      return other.get(service, options)
    },
    async *list(options = {}) {
      const own = await servicesOf(file, options.signal && { signal: options.signal })
      for await (const registered of other.list(options)) if (!own.has(registered.service)) yield registered
    },
    async remove(service, options) {
      await requireOther(service, options?.signal)
      return other.remove(service, options)
    },
  }
}

/** Whether anything is stored. */
function isThere({ rules, problems, version, stamp }: LoadedRules): boolean {
  return rules.length > 0 || problems.length > 0 || version !== undefined || stamp !== undefined
}

/**
 * A file of one document says of every other service that it is not the one of the document: to who has one service alone
 * that is a mistake. Here it is any service that nobody has registered.
 */
function isOfAnother({ rules, problems }: LoadedRules): boolean {
  return rules.length === 0 && problems.some(({ path }) => path === "service_id")
}

const NONE: LoadedRules = { rules: [], problems: [] }

/** Those that have a document of their own. Rejects with {@link RuleSourceError} where that cannot be told. */
async function servicesOf(file: RuleSource, options: LoadOptions = {}): Promise<Set<string>> {
  const services = new Set<string>()
  try {
    for await (const page of listed(file, options)) for (const { service } of page) services.add(service)
  } catch (error) {
    // Wrong rules of a file are no mistake of who registers others.
    if (error instanceof InvalidRuleError) throw new RuleSourceError(error.message, { cause: error })
    throw error
  }
  return services
}

async function* listed(source: RuleSource, options: LoadOptions): AsyncGenerator<readonly FoundRules[]> {
  yield* source.loadAll?.(options) ?? []
}
