import { createHash } from "node:crypto"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import * as v from "valibot"
import { InvalidOptionError, InvalidRuleError } from "../../ground/errors.ts"
import { integer, memberProblems, says, strict } from "../../ground/shape.ts"
import { locate, show } from "../../ground/show.ts"
import { ignore, LONGEST_TIMER_MS } from "../../ground/time.ts"
import type { FoundRules, LoadedNow, RuleSource } from "../source.ts"
import { type FileContent, readContent, readContentSync } from "./file-content.ts"
import type { FileDocuments } from "./file-documents.ts"
import { watchFile } from "./watch-file.ts"

/** Options of `fileRules`. */
export interface FileRulesOptions {
  /** A larger file is refused: default 1 MiB. */
  readonly maxBytes?: number | undefined
  /**
   * How often the file is looked at beside the notifications of the file system, which some (network) file systems do
   * not send: milliseconds, default 5000.
   */
  readonly pollMs?: number | undefined
  /**
   * Whether the file must be there, with valid rules, when a limiter is created: default true. With false the file may appear
   * later, and the limiter needs `defaultRules` or `onRulesMissing`, which apply until then.
   */
  readonly required?: boolean | undefined
}

/** Services in a page of `loadAll`. */
const PAGE = 100
const SIZE = says("a size", "a positive whole number of bytes")
const INTERVAL = says("an interval", `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`)
const optionsShape = strict("the options of fileRules", {
  maxBytes: v.optional(integer(SIZE, 1)),
  pollMs: v.optional(integer(INTERVAL, 1, LONGEST_TIMER_MS)),
  required: v.optional(v.boolean(says("a boolean", "true or false"))),
})

/**
 * The rules in a file of YAML, or of JSON when its name ends in ".json": one document in the stored shape or several,
 * one for each service. A document without `service_id` is for every service that has none of its own. A service whose
 * document disappears keeps its rules, because a typo in `service_id` looks the same. `rules: []` removes them.
 *
 * Such a document is not among those that `loadAll` lists: a rule book asks for it by the service's name.
 *
 * The file is read when a limiter is created, which throws if the file is missing or cannot be read, or if a rule of the
 * limiter's service is invalid. While it is watched, the file is reloaded when it changes, also by being replaced (editors,
 * Kubernetes). It is read once per change, however many services load from it. `load` rejects with {@link RuleSourceError},
 * which names the file and what to do, if it is missing, empty, too large, not text or not YAML or JSON. Keeps no process
 * alive.
 * @example
 * ```ts
 * import { createLimiter, fileRules } from "@sluice/core"
 *
 * const limiter = createLimiter({ service: "checkout", rules: fileRules("rules.yaml") })
 * ```
 * @throws {@link InvalidOptionError} for a wrong path or option.
 */
export function fileRules(path: string | URL, options: FileRulesOptions = {}): RuleSource {
  const file = filePath(path)
  const { maxBytes = 1024 * 1024, pollMs = 5_000, required = true } = checkedOptions(options)
  const listeners = new Set<() => void>()
  let content: FileContent | undefined
  let reading: Promise<FileContent> | undefined
  /** The read that begins when that one has ended. */
  let next: Promise<FileContent> | undefined
  /** The text or the error of the last read: listeners hear of every other one. */
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
  const readNow = (): Promise<FileContent> => readContent(file, maxBytes, content).then(keep, fail)
  const loadSync = (service: string): LoadedNow => {
    try {
      const { documents } = keep(readContentSync(file, maxBytes, content))
      return { ...documents.rulesOf(service), otherProblems: documents.otherProblems(service) }
    } catch (error) {
      return fail(error)
    }
  }
  /** Who asks at the same time shares one read. */
  const read = (): Promise<FileContent> => {
    reading ??= readNow().finally(() => {
      reading = undefined
    })
    return reading
  }
  /** The same, for who knows that the file may have been written just now: by a read that begins after the call. */
  const readAnew = (): Promise<FileContent> => {
    if (reading !== undefined) {
      next ??= reading.catch(ignore).then(() => {
        next = undefined
        return readAnew()
      })
      return next
    }
    // The stamp stays the same when the file is written twice within a tick of the file system's clock.
    if (content !== undefined) content = { ...content, stamp: "" }
    return read()
  }
  const look = async (isNotified: boolean): Promise<void> => {
    await (isNotified ? readAnew() : read()).catch(ignore)
  }
  const stopUnused = (): void => {
    if (listeners.size > 0) return
    stopWatching?.()
    stopWatching = undefined
  }

  return {
    name: `rules file ${JSON.stringify(file)}`,
    async load(service, { signal, fresh } = {}) {
      signal?.throwIfAborted()
      return (await (fresh === true ? readAnew() : read())).documents.rulesOf(service)
    },
    ...(required && { loadSync }),
    async *loadAll({ signal, fresh } = {}) {
      signal?.throwIfAborted()
      const { documents } = await (fresh === true ? readAnew() : read())
      const { services, problems } = documents
      if (services.length === 0 && problems.length > 0) throw new InvalidRuleError(problems)
      for (let at = 0; at < services.length; at += PAGE) {
        yield services.slice(at, at + PAGE).map((service) => foundRules(service, documents))
      }
    },
    watch(changed) {
      // A function of its own, so that two watches with the same callback stop only themselves.
      const listener = (): void => changed()
      listeners.add(listener)
      stopWatching ??= watchFile(file, pollMs, look)
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
}

function foundRules(service: string, documents: FileDocuments): FoundRules {
  const rules = documents.rulesOf(service)
  const stamp = createHash("sha256").update(JSON.stringify(rules)).digest("base64")
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

function checkedOptions(options: FileRulesOptions): FileRulesOptions {
  const problems = memberProblems(optionsShape, options)
  if (problems.length === 0) return options
  throw new InvalidOptionError(problems.map((problem) => locate("", problem)))
}

/** Failed reads are for those who load. */
