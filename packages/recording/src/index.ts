/**
 * Records of the decisions of a limiter, for billing and audits. docs/production/recording.md has examples.
 * @module @sluice/recording
 */

export { jsonLinesSink } from "./json-lines.ts"
export type { RecorderCloseOptions, RecordOptions } from "./options.ts"
export { recordDecisions } from "./record-decisions.ts"
export type {
  DecisionSink,
  RecordedChange,
  RecordedCheck,
  RecordedDecision,
  RecordedUnits,
  SinkRecord,
} from "./recorded-decision.ts"
export type { DecisionRecorder, RecorderStatus, RecordLosses } from "./recorder.ts"
