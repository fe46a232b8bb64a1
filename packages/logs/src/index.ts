/**
 * Reads access logs, shows the requests that rules would have refused, and suggests limits. The command `sluice` of
 * @sluice/cli prints the results of these functions. docs/rules/limits.md explains how to read the results.
 * @module @sluice/logs
 */

export { LogError } from "./log-error.ts"
export type { LogRecord, LogSummary, Logs, ReadLogOptions } from "./reading/log.ts"
export { type FileLine, readLines } from "./reading/read-lines.ts"
export { readLogs } from "./reading/read-logs.ts"
export { type ReplayLogsOptions, replayLogs } from "./replay/replay-logs.ts"
export type { RefusedClient, ReplayResult, RuleResult } from "./replay/result.ts"
export { replayLines } from "./replay/text.ts"
export { replayReport } from "./report/report-html.ts"
export type { EstimatedNumber, SuggestCandidate, SuggestGroup, SuggestResult } from "./suggest/result.ts"
export { suggestedRules, suggestedRulesFile, suggestedStoredRules } from "./suggest/rules-file-text.ts"
export { type SuggestOptions, suggestLimits } from "./suggest/suggest-limits.ts"
export { suggestLines } from "./suggest/text.ts"
export type { WindowLength } from "./suggest/window-length.ts"
export type { WindowAlgorithm } from "./suggest/window-peaks.ts"
export type { TextLine } from "./text-line.ts"
