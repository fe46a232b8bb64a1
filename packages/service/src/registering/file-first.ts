import { basename } from "node:path"
import { InvalidRuleError, RuleSourceError } from "@sluice/core"
import {
  type FileRulesOptions,
  type FoundRules,
  fileRules,
  type LoadedRules,
  type LoadOptions,
  type RuleRegistry,
  type RuleSource,
} from "@sluice/rules"
import { Code, StatusError } from "../status-error.ts"
import type { RulesHome } from "./rules-home.ts"

/**
 * Creates a home for rules in which a file takes precedence over another home. Rules for a service in the file cannot
 * be registered. The other home contains all other services. A document without `service_id` applies to services that
 * neither home contains.
 *
 * If a registered service is added to the file, the rules in the file apply. If the service is removed from the file,
 * the registered rules apply again.
 *
 * Rules cannot be registered while the file cannot be read, because the file may contain the service. Closing the
 * source closes both homes.
 * @throws {@link InvalidOptionError} for an invalid path or option.
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
    name: `${file.name} and ${other.name}`,
    async load(service, options = {}) {
      const registered = await other.load(service, options)
      // Read the names in the file only if the other home contains the service.
      if (isThere(registered) && !(await servicesOf(file, options)).has(service)) return registered
      const loaded = await file.load(service, options)
      if (!isOfAnother(loaded)) return loaded
      // This call rejects if the service of a document is unknown.
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
  /**
   * Rejects with StatusError for a service in the file, and with {@link RuleSourceError} if the file cannot be read.
   */
  const requireOther = async (service: string, signal: AbortSignal | undefined): Promise<void> => {
    if (!(await servicesOf(file, signal && { signal })).has(service)) return
    const message = `The rules of service ${JSON.stringify(service)} are in ${name}; change them there.`
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

/** Whether the home stores anything for the service. */
function isThere({ rules, problems, version, stamp }: LoadedRules): boolean {
  return rules.length > 0 || problems.length > 0 || version !== undefined || stamp !== undefined
}

/**
 * True if the file contains one document and this document is for another service. The file source reports this as a
 * problem, because it may be a mistake in a program with only one service. Here, it means that the file does not
 * contain the service.
 */
function isOfAnother({ rules, problems }: LoadedRules): boolean {
  return rules.length === 0 && problems.some(({ path }) => path === "service_id")
}

const NONE: LoadedRules = { rules: [], problems: [] }

/**
 * Returns the services that have their own document. Rejects with {@link RuleSourceError} if the file cannot be
 * read or is invalid.
 */
async function servicesOf(file: RuleSource, options: LoadOptions = {}): Promise<Set<string>> {
  const services = new Set<string>()
  try {
    for await (const page of listed(file, options)) for (const { service } of page) services.add(service)
  } catch (error) {
    // Change the type of the error, because the caller that registers other rules did not cause the invalid rules in
    // the file.
    if (error instanceof InvalidRuleError) throw new RuleSourceError(error.message, { cause: error })
    throw error
  }
  return services
}

async function* listed(source: RuleSource, options: LoadOptions): AsyncGenerator<readonly FoundRules[]> {
  yield* source.loadAll?.(options) ?? []
}
