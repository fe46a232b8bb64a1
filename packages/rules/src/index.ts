/**
 * Rules that change while the process runs: a rule book that keeps the rules of many services up to date, rules in files,
 * and the ports of sources and registries.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { fileRules } from "@sluice/rules"
 *
 * const limiter = createLimiter({ service: "checkout", rules: fileRules("rules.yaml") })
 * ```
 * @module @sluice/rules
 */

export {
  type Edition,
  formatRuleDocument,
  formatRuleDocumentInSlices,
  type LiveRules,
  type ParsedRule,
  parseRuleDocument,
  type ReadyOptions,
  type RuleDocument,
  readRuleDocument,
  readRuleDocumentInSlices,
  ruleName,
  type ServiceMetadata,
  type SignalOption,
  type StorableRule,
  type StoredDocument,
  type StoredRule,
} from "@sluice/core/rules"

export { type LiveSource, liveRules } from "./book/live-source.ts"

export { createRuleBook } from "./book/open-book.ts"

export type { RuleBookOptions } from "./book/options.ts"

export {
  type MetadataOption,
  type RegisteredRules,
  type RegistryCallOptions,
  type RemoveOptions,
  RuleConflictError,
  type RuleRegistry,
  type VersionOption,
} from "./registry.ts"

export type { RefreshOptions, RuleBook, RuleBookEvents } from "./rule-book.ts"

export type { FoundRules, LoadedNow, LoadedRules, LoadOptions, RuleSource } from "./source.ts"

export { type FileRulesOptions, fileRules } from "./sources/file.ts"

export type { FileProblem } from "./sources/read-documents.ts"

export { type FileDocument, type RuleFile, readRuleFile } from "./sources/rule-file.ts"

export { staticRules } from "./sources/static.ts"

export { exactNumber, parseJsonText } from "./text/json-text.ts"
