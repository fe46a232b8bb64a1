import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { InvalidOptionError, InvalidRuleError } from "@sluice/core"
import {
  hashText,
  interval,
  mustBe,
  type OptionCheck,
  requireOptions,
  show,
  wholeNumber,
} from "@sluice/core/kit"
import { ignore } from "@sluice/core/rules"
import { type LiveSource, liveRules } from "../book/live-source.ts"
import type { FoundRules, LoadedNow, RuleSource } from "../source.ts"
import { type FileContent, readContent, readContentSync } from "./file-content.ts"
import type { FileDocuments } from "./file-documents.ts"
import { watchFile } from "./watch-file.ts"

/** Options of `fileRules`. */
export interface FileRulesOptions {
  /** Maximum size of the file in bytes. Default: 1 MiB. */
  readonly maxBytes?: number | undefined
  /**
   * Poll interval in milliseconds, in addition to the notifications of the file system. Some file systems, such as
   * network file systems, send no notifications. Default: 5000.
   */
  readonly pollMs?: number | undefined
  /**
   * True if the file must exist with valid rules when a limiter is created. Default: true. With false, the file may
   * appear later. The limiter then needs `defaultRules` or `onRulesMissing`, which apply until the file exists.
   */
  readonly required?: boolean | undefined
}

/** Number of services in a page of `loadAll`. */
const PAGE = 100
const CHECKS: Readonly<Record<string, OptionCheck>> = {
  maxBytes: wholeNumber("size", "bytes"),
  pollMs: interval,
  required: mustBe("a boolean", "true or false", (value) => typeof value === "boolean"),
}

/**
 * Creates a source of the rules in a YAML file. If the file's name ends in ".json", it must be JSON. The file
 * contains one document in the stored format, or one document for each service. A document without `service_id`
 * applies to every service without its own document. `loadAll` does not list that document. Instead, a rule book
 * loads it by the service's name. A service whose document disappears keeps its rules, because a typo in `service_id`
 * looks the same. `rules: []` removes them.
 *
 * The file is read when a limiter is created. Creating the limiter throws if the file is missing or cannot be read,
 * or if a rule of the limiter's service is invalid. While the file is watched, it is reloaded when it changes or is
 * replaced (editors, Kubernetes). `load` rejects with {@link RuleSourceError} if the file is missing, empty, too
 * large, not text, or not YAML or JSON. The error names the file and what to do. Watching does not keep the process
 * alive.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { fileRules } from "@sluice/rules"
 *
 * const limiter = createLimiter({ service: "checkout", rules: fileRules("rules.yaml") })
 * ```
 * @throws {@link InvalidOptionError} for an invalid path or option.
 */
export function fileRules(path: string | URL, options: FileRulesOptions = {}): LiveSource {
  const file = filePath(path)
  requireOptions("fileRules()", options, CHECKS)
  const { maxBytes = 1024 * 1024, pollMs = 5_000, required = true } = options
  const listeners = new Set<() => void>()
  let content: FileContent | undefined
  let reading: Promise<FileContent> | undefined
  /** The read that begins when `reading` ends. */
  let next: Promise<FileContent> | undefined
  /** The text or the error of the last read. Listeners are called whenever it changes. */
  let seen: string | undefined
  let stopWatching: (() => void) | undefined

  const announce = (now: string): void => {
    const isNews = seen !== undefined && seen !== now
    seen = now
    if (isNews) for (const listener of [...listeners]) listener()
  }
  const keep = (read: FileContent): FileContent => {
    content = read
    announce(`text ${read.text}`)
    return read
  }
  const fail = (error: unknown): never => {
    announce(`error ${(error as Error).message}`)
    throw error
  }
  const loadSync = (service: string): LoadedNow => {
    try {
      const { documents } = keep(readContentSync(file, maxBytes, content))
      return { ...documents.rulesOf(service), otherProblems: documents.otherProblems(service) }
    } catch (error) {
      return fail(error)
    }
  }
  /**
   * Reads the file. Concurrent calls share one read. A fresh read begins after the call, because the caller may know
   * of a very recent write.
   */
  const read = (isFresh = false): Promise<FileContent> => {
    if (isFresh && reading !== undefined) {
      next ??= reading.catch(ignore).then(() => {
        next = undefined
        return read(true)
      })
      return next
    }
    // Ignore the stamp, because it does not change if the file is written twice within a tick of the file system's
    // clock.
    if (isFresh && content !== undefined) content = { ...content, stamp: "" }
    reading ??= readContent(file, maxBytes, content)
      .then(keep, fail)
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  const stopUnused = (): void => {
    if (listeners.size > 0) return
    stopWatching?.()
    stopWatching = undefined
  }

  const source: RuleSource = {
    name: `rules file ${JSON.stringify(file)}`,
    async load(service, { signal, fresh } = {}) {
      signal?.throwIfAborted()
      return (await read(fresh)).documents.rulesOf(service)
    },
    ...(required && { loadSync }),
    async *loadAll({ signal, fresh } = {}) {
      signal?.throwIfAborted()
      const { documents } = await read(fresh)
      const { services, problems } = documents
      if (services.length === 0 && problems.length > 0) throw new InvalidRuleError(problems)
      for (let at = 0; at < services.length; at += PAGE) {
        yield services.slice(at, at + PAGE).map((service) => foundRules(service, documents))
      }
    },
    watch(changed) {
      // Wrap the callback, so that stopping one watch does not stop another watch with the same callback.
      const listener = (): void => changed()
      listeners.add(listener)
      stopWatching ??= watchFile(file, pollMs, (isNotified) => void read(isNotified).catch(ignore))
      return () => {
        listeners.delete(listener)
        stopUnused()
      }
    },
    close() {
      listeners.clear()
      stopUnused()
    },
  }
  return { ...source, ...liveRules(source) }
}

function foundRules(service: string, documents: FileDocuments): FoundRules {
  const rules = documents.rulesOf(service)
  const stamp = hashText(JSON.stringify(rules))
  return { service, stamp, read: () => rules }
}

function filePath(path: string | URL): string {
  if (path instanceof URL && path.protocol === "file:") return fileURLToPath(path)
  if (typeof path === "string" && path !== "" && !path.includes("\0")) return resolve(path)
  const message = `${show(path instanceof URL ? path.href : path)} is not the path of a file`
  throw new InvalidOptionError([
    { path: "path", message, accepted: 'a path such as "rules.yaml", or a file: URL' },
  ])
}
