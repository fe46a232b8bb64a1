import { randomBytes } from "node:crypto"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Decision, DecisionCall, Limiter } from "@sluice/core"
import {
  beforeDeadline,
  createWarner,
  Incident,
  outsideRequests,
  soundTime,
  textOf,
  waitOf,
} from "@sluice/core/kit"
import { type ParsedRecordOptions, parseCloseOptions, type RecorderCloseOptions } from "./options.ts"
import {
  changesOf,
  type DecisionSink,
  grantsOf,
  type RecordedChange,
  type RecordedUnits,
  type RecordHead,
  type Refunds,
  recordOf,
  type SinkRecord,
} from "./recorded-decision.ts"

/** The number of records for each outcome. */
export interface RecorderStatus {
  /** Number of records that are not written yet, including the batch that is being written. */
  readonly waiting: number
  /** Number of records that the sink has written. */
  readonly written: number
  /** Number of records that were lost. */
  readonly lost: RecordLosses
}

/** Number of lost records for each reason. */
export interface RecordLosses {
  /** Decisions that were not recorded, because `maxWaiting` records waited for the sink. */
  readonly bufferFull: number
  /** Records of batches for which the sink threw or rejected. The sink may have written some of these records. */
  readonly sinkFailed: number
  /** Records that were not written before `close` timed out. The sink may still write one batch of them. */
  readonly closed: number
}

/** Records decisions until the recorder is closed. Closing the limiter ends the recording, too. */
export interface DecisionRecorder {
  /** The number of records for each outcome. */
  readonly status: RecorderStatus
  /**
   * Stops recording and waits at most `withinMs` until the records are written. Never rejects because of the sink.
   * Instead, records that are not written in time are counted as lost. Only the first call has an effect.
   */
  close(options?: RecorderCloseOptions): Promise<void>
}

/** Keeps records in a bounded buffer, and passes them to the sink in batches. A decision never waits for the sink. */
export class Recorder<Request> implements DecisionRecorder {
  readonly #limiter: Limiter<Request>
  readonly #service: string
  readonly #sink: DecisionSink
  readonly #options: ParsedRecordOptions
  readonly #losses: Incident
  readonly #full: Error
  readonly #lost = { bufferFull: 0, sinkFailed: 0, closed: 0 }
  /** Distinguishes the records of this recorder from those of other processes. */
  readonly #id = randomBytes(8).toString("hex")
  /** Number of records so far, including lost ones. */
  #records = 0
  #waiting: SinkRecord[] = []
  /** Number of records in the batch that the sink is currently writing. */
  #writing = 0
  #written = 0
  /** Settles when all waiting records are written; undefined if no record is waiting. */
  #writingAll: Promise<void> | undefined
  /** Aborts the wait for a batch to fill up. */
  #pause: AbortController | undefined
  #isEnding = false
  /** Whether `close` has timed out. */
  #isLate = false
  #closing: Promise<void> | undefined

  constructor(limiter: Limiter<Request>, sink: DecisionSink, options: ParsedRecordOptions) {
    this.#limiter = limiter
    this.#service = limiter.status.service
    this.#sink = sink
    this.#options = options
    const { logger, clock, maxWaiting } = options
    this.#losses = Incident.ofLosses(
      createWarner(logger, () => undefined),
      clock,
    )
    this.#full = new Error(`${maxWaiting} records wait, because the sink is too slow`)
    limiter.on("decision", this.#record)
    limiter.on("corrected", this.#correct)
    limiter.on("granted", this.#grant)
    limiter.on("closed", this.#end)
  }

  get status(): RecorderStatus {
    const waiting = this.#waiting.length + this.#writing
    return { waiting, written: this.#written, lost: { ...this.#lost } }
  }

  async close(options?: RecorderCloseOptions): Promise<void> {
    const withinMs = parseCloseOptions(options ?? {})
    this.#closing ??= this.#close(withinMs)
    await this.#closing
  }

  async #close(withinMs: number): Promise<void> {
    this.#end()
    if (this.#writingAll !== undefined) {
      await beforeDeadline(this.#writingAll, withinMs, () => this.#giveUp(withinMs))
    }
    this.#losses.close()
  }

  readonly #record = (decision: Decision, _request: Request, { counters }: DecisionCall): void =>
    this.#add((base) => recordOf(decision, counters, base))

  readonly #correct = (refunds: Refunds, degraded: boolean): void =>
    this.#change("correction", degraded, changesOf(refunds, this.#nowMs))

  readonly #grant = (units: number, counters: DecisionCall["counters"]): void =>
    this.#change("grant", false, grantsOf(units, counters, this.#nowMs))

  get #nowMs(): number {
    return Math.floor(soundTime(this.#options.clock))
  }

  #change(kind: RecordedChange["kind"], degraded: boolean, checks: readonly RecordedUnits[]): void {
    if (checks.length > 0) this.#add((base) => ({ ...base, kind, degraded, checks }))
  }

  #add(recordOf: (base: RecordHead) => SinkRecord): void {
    const { maxWaiting, batchSize } = this.#options
    const id = `${this.#id}-${this.#records++}`
    if (this.#waiting.length + this.#writing >= maxWaiting) {
      this.#lose("bufferFull", 1, this.#full)
      return
    }
    this.#waiting.push(recordOf({ id, timeMs: this.#nowMs, service: this.#service }))
    if (this.#waiting.length >= batchSize) this.#pause?.abort()
    this.#writingAll ??= outsideRequests(() => this.#writeAll())
  }

  /** Stops recording. The waiting records are written without a pause. */
  readonly #end = (): void => {
    this.#limiter.off("decision", this.#record)
    this.#limiter.off("corrected", this.#correct)
    this.#limiter.off("granted", this.#grant)
    this.#limiter.off("closed", this.#end)
    this.#isEnding = true
    this.#pause?.abort()
  }

  async #writeAll(): Promise<void> {
    const { batchSize } = this.#options
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < batchSize && !this.#isEnding) await this.#fillUp()
      // Let the request continue first, because a sink may block for a while before it returns a promise.
      await nextTurn()
      await this.#write(this.#waiting.splice(0, batchSize))
    }
    this.#writingAll = undefined
  }

  /** Waits until the batch is full, or the interval has passed. */
  async #fillUp(): Promise<void> {
    const { clock, intervalMs } = this.#options
    this.#pause = new AbortController()
    try {
      await waitOf(clock)(intervalMs, this.#pause.signal)
    } catch {
      // The wait ended because the batch is full, the recorder is closed, or the clock cannot wait.
    }
    this.#pause = undefined
  }

  async #write(batch: readonly SinkRecord[]): Promise<void> {
    if (batch.length === 0) return
    this.#writing = batch.length
    let failure: Error | undefined
    try {
      await this.#sink(batch)
    } catch (error) {
      failure = new Error(`the sink failed: ${textOf(error)}`, { cause: error })
    }
    // `close` has already counted these records as lost.
    if (this.#isLate) return
    this.#writing = 0
    if (failure === undefined) this.#written += batch.length
    else this.#lose("sinkFailed", batch.length, failure)
  }

  #giveUp(withinMs: number): void {
    const { waiting } = this.status
    this.#isLate = true
    this.#waiting = []
    this.#writing = 0
    this.#lose("closed", waiting, new Error(`the sink did not write them within ${withinMs} ms`))
  }

  #lose(reason: keyof RecordLosses, records: number, error: Error): void {
    this.#lost[reason] += records
    const advice = "Check the sink of recordDecisions()."
    this.#losses.add(Incident.lossLine("SLUICE_RECORDS_LOST", lostRecords, error, advice), records)
  }
}

function lostRecords(losses: number): string {
  return losses === 1 ? "The record of a decision was lost" : `The records of ${losses} decisions were lost`
}
