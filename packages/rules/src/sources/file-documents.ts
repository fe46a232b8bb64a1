import type { Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import type { LoadedRules } from "../source.ts"
import type { ReadDocument } from "./read-documents.ts"

/** The rules of a file. Each service has its own document, or uses the document without a service. */
export interface FileDocuments {
  /** Services that have their own document. */
  readonly services: readonly string[]
  /** Problems of documents whose service is unknown. */
  readonly problems: readonly Problem[]
  /** Services that had rules in this or an earlier version of the file and were not emptied since then. */
  readonly expected: ReadonlySet<string>
  rulesOf(service: string): LoadedRules
  /**
   * Returns problems that do not concern the rules of the service: invalid documents of other services, or the lack
   * of a document for this service.
   */
  otherProblems(service: string): readonly Problem[]
}

/**
 * Combines the documents of a file. Each problem contains the path of the file, and is reported to the service that
 * it concerns.
 *
 * `earlier` are the services that the previous version of the file expected. Reports a problem if one of these
 * services lacks a document. Otherwise, a typo in its service_id would remove its limits.
 */
export function fileDocuments(
  documents: readonly ReadDocument[],
  file: string,
  earlier: ReadonlySet<string> = new Set(),
): FileDocuments {
  const own = new Map<string | undefined, LoadedRules>()
  // Problems of documents with an unknown service, reported to every service.
  const general: Problem[] = []
  const expected = new Set(earlier)
  for (const { service, isReadable, duplicate, rules, version, metadata, ...document } of documents) {
    const problems = document.problems.map((problem) => ({ ...problem, file }))
    const first = own.get(service)
    if (!isReadable) general.push(...problems)
    else if (duplicate !== undefined && first !== undefined) {
      own.set(service, { ...first, problems: [...first.problems, { ...duplicate, file }] })
    } else {
      own.set(service, {
        rules,
        problems,
        ...(version !== undefined && { version }),
        ...(metadata !== undefined && { metadata }),
      })
    }
  }
  for (const [service, { rules, problems }] of own) {
    if (service === undefined) continue
    if (rules.length > 0) expected.add(service)
    else if (problems.length === 0) expected.delete(service)
  }
  const documentOf = (service: string) => own.get(service) ?? own.get(undefined)
  return {
    services: [...own.keys()].filter((service) => service !== undefined),
    problems: general,
    expected,
    rulesOf(service) {
      const document = documentOf(service)
      if (document !== undefined) return { ...document, problems: [...general, ...document.problems] }
      if (expected.has(service)) {
        return { rules: [], problems: [...general, { file, ...noDocument("no longer has", service) }] }
      }
      const [only] = own.keys()
      // A file with several documents need not contain one for this service. A single document, however, was probably
      // meant for it.
      const isAmiss = documents.length === 1 && only !== undefined
      return { rules: [], problems: isAmiss ? [{ file, ...otherService(service, only) }] : general }
    },
    otherProblems(service) {
      const mine = documentOf(service)
      const others = [...own.values()].flatMap((document) => (document === mine ? [] : document.problems))
      return mine === undefined ? [{ file, ...noDocument("does not have", service) }, ...others] : others
    },
  }
}

function noDocument(verb: string, service: string): Problem {
  return {
    path: "",
    message: `the file ${verb} a document for service ${show(service)}`,
    accepted: `a document with service_id: ${show(service)}, and \`rules: []\` if it has no rules`,
  }
}

function otherService(service: string, only: string): Problem {
  return {
    path: "service_id",
    message: `${show(only)} is not the service ${show(service)}, which therefore has no rules`,
    accepted: `${show(service)}, or no service_id, so that the rules apply to every service`,
  }
}
