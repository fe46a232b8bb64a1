import { createReadStream } from "node:fs"
import { type FileDocument, type RuleFile, readRuleFile } from "@sluice/rules"
import type { Io } from "./io.ts"
import { UsageError } from "./usage-error.ts"

/** A rules file that was read and parsed. */
export interface ReadFile extends RuleFile {
  /** The name as given; "standard input" for "-". */
  readonly name: string
  /** The path of the file; absent for standard input. */
  readonly path?: string
  readonly text: string
  /** The stored bytes of the text. */
  readonly bytes: Uint8Array
}

/** True if a file with this name is JSON. Any other file is read as YAML, which includes JSON from standard input. */
export function isJsonName(name: string): boolean {
  return name.toLowerCase().endsWith(".json")
}

/** Default size limit of `fileRules`, and therefore of the decision service. */
export const MAX_BYTES: number = 1024 * 1024

/** Options of every command that reads a file of rules. */
export interface ReadOptions {
  /** Maximum size of a file in bytes. Default: `MAX_BYTES`. */
  readonly maxBytes?: number
}

/**
 * Reads a file of rules, or standard input for "-". Returns problems of the rules in `problems`. Rejects with the
 * same UsageErrors as `readText`.
 */
export async function readRulesFile(given: string, options: ReadOptions, io: Io): Promise<ReadFile> {
  const { name, text, bytes } = await readText(given, options, io)
  const file = await readRuleFile(text, isJsonName(given) ? "json" : "yaml")
  return { ...file, name, text, bytes, ...(given !== "-" && { path: given }) }
}

/**
 * Reads the text of a file, or of standard input for "-". Rejects with UsageError if there is no text, or more than
 * `maxBytes` of it. Stops reading at this size, because a device may provide endless data.
 */
export async function readText(
  given: string,
  { maxBytes = MAX_BYTES }: ReadOptions,
  io: Io,
): Promise<Pick<ReadFile, "name" | "text" | "bytes">> {
  const isInput = given === "-"
  const name = isInput ? "standard input" : given
  const bytes = isInput
    ? await readAll(io.stdin, maxBytes)
    : await readFile(given, maxBytes).catch((error: unknown) => fail(name, error))
  if (bytes === undefined) {
    throw new UsageError(
      `${name} has more than ${maxBytes} bytes: shorten it, or raise --max-bytes; apps that load it with fileRules need a higher maxBytes, too`,
    )
  }
  return { name, text: decode(name, bytes), bytes }
}

/** A document whose service is known. */
export type OwnedDocument = FileDocument & { readonly service: string }

/**
 * Returns the documents of a file without problems, each with its service: all of them, or only for the services in
 * `asked`. A document without a service is used if exactly one service is in `asked`. Throws UsageError if the
 * service of a document is unclear.
 */
export function documentsOf(file: ReadFile, asked: readonly string[] = []): readonly OwnedDocument[] {
  const services = [...new Set(asked)]
  const found = file.documents.filter(isOwned)
  const general = file.documents.find(({ service }) => service === undefined)
  if (services.length === 0) {
    if (general === undefined) return found
    throw new UsageError(
      `${file.name}:${general.line}: the document has no service_id: add one, or name the service with --service`,
    )
  }
  return services.map((service) => {
    const own = found.find((document) => document.service === service)
    if (own !== undefined) return own
    if (general !== undefined && services.length === 1) return { ...general, service }
    const there = found.map((document) => JSON.stringify(document.service)).join(", ")
    throw new UsageError(
      `${file.name} has no rules for service ${JSON.stringify(service)}; it has ${there === "" ? "no services" : there}`,
    )
  })
}

function isOwned(document: FileDocument): document is OwnedDocument {
  return document.service !== undefined
}

async function readFile(path: string, maxBytes: number): Promise<Uint8Array | undefined> {
  return readAll(createReadStream(path), maxBytes)
}

/** Returns the bytes of a stream; undefined if there are more than `maxBytes`. */
async function readAll(stream: Io["stdin"], maxBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch (error) {
    throw new UsageError(`${name} is not UTF-8 text: save it as UTF-8`, { cause: error })
  }
}

function fail(name: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "does not exist: correct the path",
    ENOTDIR: "does not exist: correct the path",
    EISDIR: "is a folder: give the path of a YAML or JSON file",
    EACCES: "is not readable by you: change its permissions",
  }
  throw new UsageError(`${name} ${reasons[String(code)] ?? `cannot be read: ${message}`}`, { cause: error })
}
