/**
 * For packages that load rules: the interface of rules that change, parsed rules, documents in the stored shape, and
 * work in slices. Apps use `@sluice/rules`.
 * @module @sluice/core/rules
 */

export { VERSION } from "./ground/copies.ts"
export { problemWithoutCredentials } from "./ground/errors.ts"
export { SafeEvents } from "./ground/events.ts"
export { locate, type MemberProblem } from "./ground/show.ts"
export { type SignalOption, startCall } from "./ground/signal.ts"
export { atOnce, inSlices, type Pausable, Slices } from "./ground/slices.ts"
export { ignore, keepingAlive, unlessAborted } from "./ground/time.ts"
export {
  formatRuleDocument,
  formatRuleDocumentInSlices,
  type StoredDocument,
  type StoredRule,
} from "./rules/documents/format-document.ts"
export {
  parseRuleDocument,
  pausableDocument,
  type RuleDocument,
  readRuleDocument,
  readRuleDocumentInSlices,
  type UnlocatedDocument,
} from "./rules/documents/rule-document.ts"
export type {
  Edition,
  LiveRules,
  OpenedRules,
  ReaderEvents,
  ReaderListener,
  ReadyOptions,
  RulesReader,
  UntilLoaded,
} from "./rules/live-rules.ts"
export { type ParsedRules, parseRules, requireRules } from "./rules/parsing/parse-rule.ts"
export { ruleName } from "./rules/parsing/rule-name.ts"
export { metadataProblems, plainMetadata } from "./rules/parsing/service-metadata-members.ts"
export { requireService } from "./rules/required-service.ts"
export type { Calendar, ParsedRule, StorableRule } from "./rules/rule.ts"
export type { ServiceMetadata } from "./rules/service-metadata.ts"
export { parseUntilLoaded, type UntilLoadedOptions } from "./rules/until-loaded.ts"
