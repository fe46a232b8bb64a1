import type { Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import type { RuleDocument } from "@sluice/core/rules"
import type { LoadedRules } from "../source.ts"
import type { TextPlace } from "../text/text-places.ts"

/** The rules of a file. Each service has its own document, or uses the document without a service. */
export interface FileDocuments {
  /** Services that have a document of their own. */
  readonly services: readonly string[]
  /** Problems of documents whose service is not known. */
  readonly problems: readonly Problem[]
  /** Services that had rules in this or an earlier version of the file, without an empty document since then. */
  readonly expected: ReadonlySet<string>
  rulesOf(service: string): LoadedRules
  /**
   * Returns problems that do not concern the rules of the service: invalid documents of other services, or a missing
   * document for this one.
   */
  otherProblems(service: string): readonly Problem[]
}

/** A document as read from a file. Its problems have line and column. */
export interface ReadDocument
  extends Pick<RuleDocument, "service" | "version" | "metadata" | "rules" | "problems"> {
  /** Where the document begins; known if an earlier document is for the same service. */
  readonly start?: TextPlace
}

/** A document whose problems are ready to report, with the place of the document in the file. */
interface PlacedDocument extends ReadDocument {
  readonly index: number
}

/**
 * Combines the documents of a file. Each problem is reported to the service that it concerns.
 *
 * `earlier` are the services that the previous version of the file expected. If one of them lacks a document, that is a
 * problem: a typo in its service_id would otherwise remove its limits. Problems are marked with `inFile`.
 */
export function fileDocuments(
  read: readonly ReadDocument[],
  earlier: ReadonlySet<string> = new Set(),
  inFile: Pick<Problem, "file"> = {},
): FileDocuments {
  const documents = read.map((document, index): PlacedDocument => ({ ...document, index }))
  const own = new Map<string | undefined, PlacedDocument>()
  // Problems of documents with an unknown service, reported to every service.
  const general: Problem[] = []
  for (const document of documents) {
    const place = read.length === 1 ? "" : `[${document.index}]`
    const { service, start } = document
    const earlier = own.get(service)
    if (!isReadable(document)) {
      general.push(...document.problems.map((problem) => below(place, problem)))
    } else if (earlier !== undefined) {
      const second = { ...inFile, ...secondDocument(place, service, earlier.index), ...start }
      own.set(service, { ...earlier, problems: [...earlier.problems, second] })
    } else {
      const name = read.length === 1 || service === undefined ? place : `service ${show(service)}`
      own.set(service, { ...document, problems: document.problems.map((problem) => below(name, problem)) })
    }
  }
  const documentOf = (service: string) => own.get(service) ?? own.get(undefined)
  const expected = new Set(earlier)
  for (const [service, { rules, problems }] of own) {
    if (service === undefined) continue
    if (rules.length > 0) expected.add(service)
    else if (problems.length === 0) expected.delete(service)
  }
  return {
    services: [...own.keys()].filter((service) => service !== undefined),
    problems: general,
    expected,
    rulesOf(service) {
      const document = documentOf(service)
      if (document === undefined && expected.has(service)) {
        return { rules: [], problems: [...general, { ...inFile, ...noDocument("no longer has", service) }] }
      }
      if (document === undefined) {
        const [only] = own.keys()
        // A file with several documents may lack one for this service. A single document was probably meant for it.
        const isAmiss = read.length === 1 && only !== undefined
        return { rules: [], problems: isAmiss ? [{ ...inFile, ...otherService(service, only) }] : general }
      }
      const { rules, version, metadata, problems } = document
      return {
        rules,
        problems: [...general, ...problems],
        ...(version !== undefined && { version }),
        ...(metadata !== undefined && { metadata }),
      }
    },
    otherProblems(service) {
      const mine = documentOf(service)
      const others = [...own.values()].flatMap((document) => (document === mine ? [] : document.problems))
      return mine === undefined ? [{ ...inFile, ...noDocument("does not have", service) }, ...others] : others
    },
  }
}

/** True if it is known which service the rules belong to. */
export function isReadable({ problems }: Pick<RuleDocument, "problems">): boolean {
  return !problems.some(({ path }) => path === "" || /^(?:[sS]ervice_id|serviceId)$/.test(path))
}

/** Returns the problem with the place of its document put before its path. */
export function below(place: string, { path, ...problem }: Problem): Problem {
  const gap = place.startsWith("service") && path !== "" ? " " : place === "" || path === "" ? "" : "."
  return { path: `${place}${gap}${path}`, ...problem }
}

/** Returns the problem of a second document for the same service. */
export function secondDocument(place: string, service: string | undefined, earlier: number): Problem {
  const whose = service === undefined ? "without service_id" : `for service ${show(service)}`
  return {
    path: place,
    message: `is the second document ${whose}, after [${earlier}]`,
    accepted: "one document for each service",
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
