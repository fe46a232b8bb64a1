import type { Problem } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { RuleDocument } from "../documents/rule-document.ts"
import type { TextPlace } from "../documents/text-places.ts"
import type { LoadedRules } from "../source.ts"

/** The rules of a file: each service has its own document, or the one that names no service. */
export interface FileDocuments {
  /** Services that have a document of their own. */
  readonly services: readonly string[]
  /** What is wrong with documents whose service is not known. */
  readonly problems: readonly Problem[]
  /** Services that had rules in this file or an earlier edition of it, and no document without rules since then. */
  readonly expected: ReadonlySet<string>
  rulesOf(service: string): LoadedRules
  /** Returns what is wrong beside the rules of the service: invalid documents of others, or none for the service. */
  otherProblems(service: string): readonly Problem[]
}

/** A document as it was read from a file, its problems with line and column. */
export interface ReadDocument extends RuleDocument {
  /** Where it begins; known if an earlier document is for the same service. */
  readonly start?: TextPlace
}

/** A document with the problems as they are reported: with the place of the document in the file. */
interface PlacedDocument extends ReadDocument {
  readonly index: number
}

/**
 * Returns what the documents of a file are together. A problem is reported to the service that it concerns.
 *
 * `earlier` has the services that the previous edition of the file expected. One of them without a document is a problem,
 * because a typo in its service_id would otherwise remove its limits.
 */
export function fileDocuments(
  read: readonly ReadDocument[],
  earlier: ReadonlySet<string> = new Set(),
): FileDocuments {
  const documents = read.map((document, index): PlacedDocument => ({ ...document, index }))
  const own = new Map<string | undefined, PlacedDocument>()
  // It is not known whose these are, so every service gets them.
  const general: Problem[] = []
  for (const document of documents) {
    const place = read.length === 1 ? "" : `[${document.index}]`
    const { service, start } = document
    const earlier = own.get(service)
    if (!isReadable(document)) {
      general.push(...document.problems.map((problem) => below(place, problem)))
    } else if (earlier !== undefined) {
      const second = { ...secondDocument(place, service, earlier.index), ...start }
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
        return { rules: [], problems: [...general, noDocument("no longer has", service)] }
      }
      if (document === undefined) {
        const [only] = own.keys()
        // Several documents need not have one for each service; a single one was meant for the service that asks.
        const isAmiss = read.length === 1 && only !== undefined
        return { rules: [], problems: isAmiss ? [otherService(service, only)] : general }
      }
      const { rules, version, problems } = document
      return { rules, problems: [...general, ...problems], ...(version !== undefined && { version }) }
    },
    otherProblems(service) {
      const mine = documentOf(service)
      const others = [...own.values()].flatMap((document) => (document === mine ? [] : document.problems))
      return mine === undefined ? [noDocument("does not have", service), ...others] : others
    },
  }
}

/** Whether it is known whose rules these are. */
export function isReadable({ problems }: Pick<RuleDocument, "problems">): boolean {
  return !problems.some(({ path }) => path === "" || /^(?:[sS]ervice_id|serviceId)$/.test(path))
}

/** The problem with the place of its document put before its path. */
export function below(place: string, { path, ...problem }: Problem): Problem {
  const gap = place.startsWith("service") && path !== "" ? " " : place === "" || path === "" ? "" : "."
  return { path: `${place}${gap}${path}`, ...problem }
}

/** What is wrong with a document for whose service there is an earlier one. */
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
    accepted: `service_id: ${show(service)}, with \`rules: []\` if it has no rules`,
  }
}

function otherService(service: string, only: string): Problem {
  return {
    path: "service_id",
    message: `${show(only)} is not the service ${show(service)}, so there are no rules`,
    accepted: `${show(service)}, or no service_id for every service`,
  }
}
