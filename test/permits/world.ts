import { setImmediate as turn } from "node:timers/promises"
import { StoreUnavailableError } from "../../packages/core/src/ground/errors.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Refund } from "../../packages/core/src/stores/store.ts"
import { PART_MS, type Server } from "./server.ts"

/** The share of a store that a process needs for its permits. */
export interface RefundStore {
  refund(refunds: readonly Refund[]): Promise<void>
}

/** A permit that a process holds. */
export interface HeldPermit {
  /** Start of the part in which the server counts the permit, as far as its process knows. */
  readonly startMs: number | undefined
}

/** The side of a process: it holds permits, renews them and releases them. */
export interface PermitHolder {
  /**
   * Holds a permit that the server granted at `storeMs`, in the part that starts at `startMs`. `owner` is reachable
   * until the request has ended.
   */
  hold(owner: object, startMs: number, storeMs: number): HeldPermit
  /** Releases a permit whose request has ended. */
  release(permit: HeldPermit): void
  /** Ends all timers. */
  close(): void
}

/** Creates the side of a process. `point`, from 0 to 1, is the moment of its renewals between 10 % and 30 % of a part. */
export type NewHolder = (store: RefundStore, clock: ManualClock, point: number) => PermitHolder

/** What happens to one message: how long it takes there and back, and whether it is lost. */
export interface Fate {
  readonly thereMs: number
  readonly backMs: number
  readonly end: "well" | "request-lost" | "reply-lost" | "refused"
}

interface Request {
  readonly owner: object
  readonly permit: HeldPermit
}

class Process {
  readonly holder: PermitHolder
  readonly clock: ManualClock
  readonly running = new Set<Request>()
  /** What happens when the process is no longer frozen. */
  readonly deferred: (() => void)[] = []
  isFrozen = false
  isDead = false
  /** Permits of requests that have ended, whose release has not arrived. */
  owed = 0
  /** By how much its lowest estimate of the server's time is late. */
  lagMs = 0
  /** False while the process does not know that the server's clock has stepped back. */
  knowsTime = true

  constructor(create: NewHolder, world: World, point: number) {
    this.clock = manualClock(world.nowMs)
    const store: RefundStore = { refund: (refunds) => world.refund(this, refunds) }
    this.holder = create(store, this.clock, point)
  }
}

/** A grant whose reply has not arrived, and which may still be admitted. */
interface Grant {
  readonly startMs: number
  readonly storeMs: number
  readonly atMs: number
  readonly era: number
}

/** Milliseconds for which a request waits for its permit. A later reply gives the permit back. */
const TAKE_WITHIN_MS = 80
/** Milliseconds between two checks of the bounds, and between two moments at which timers can fire. */
const GRID_MS = 50

/** Thrown if a bound does not hold. */
class BoundError extends Error {}

/**
 * Several processes, a server and the messages between them, on one manual time. After every event, the counted permits
 * are compared with those that are held:
 *
 * - B2: a grant leaves at most N permits held, and never are more permits held than counted. Permits of a dead process
 *   are held until their part and the next one have passed, so they are counted for at least half of H (B3).
 * - B6: each permit that is counted and not held is explained by a release on its way, or by a lost message or a crash in
 *   the past H.
 *
 * A permit is held if its request runs, and its believed part is the present one or the one before. After the server's
 * clock has stepped back, B2 and B3 hold again six parts after each process has got a permit, and with it the time. A
 * process that does not know the time may release permits of others, or count its own permits twice.
 */
export class World {
  readonly #server: Server
  readonly #create: NewHolder
  readonly #limit: number
  readonly #deadlineMs: number
  readonly #fates: readonly Fate[]
  #sent = 0
  #nowMs = 0
  /** By how much the server's clock has stepped back. */
  #backMs = 0
  /** Number of times that the server's clock has stepped back. */
  #era = 0
  /** The server's time from which the bounds hold. Undefined if a process does not know the time. */
  #sureFromMs: number | undefined = 0
  #events: { readonly atMs: number; readonly run: () => void }[] = []
  #processes: Process[] = []
  readonly #dead = new Set<Request>()
  readonly #grants = new Set<Grant>()
  /** The parts in the future in which processes believe, because they do not know that the clock has stepped back. */
  readonly #future = new Map<HeldPermit, number>()
  /** Units of renewals that the server has applied, and whose processes do not know yet. */
  #renewing = 0
  #explained: { readonly permits: number; readonly untilMs: number }[] = []
  /** The server's time of the latest change, and of the latest step back. */
  #changedMs = 0
  granted = 0

  constructor(
    server: Server,
    create: NewHolder,
    options: {
      readonly limit: number
      readonly points: readonly number[]
      readonly fates: readonly Fate[]
      readonly deadlineMs: number
    },
  ) {
    this.#server = server
    this.#create = create
    this.#limit = options.limit
    this.#fates = options.fates
    this.#deadlineMs = options.deadlineMs
    this.#processes = options.points.map((point) => new Process(create, this, point))
  }

  get nowMs(): number {
    return this.#nowMs
  }

  /** A client asks a process for a request that runs for `forMs`. */
  ask(nth: number, forMs: number): void {
    const process = this.#processOf(nth)
    if (process.isFrozen) return
    const { thereMs, backMs, end } = this.#fate()
    const sentMs = this.#nowMs
    if (end === "request-lost" || end === "refused") return
    this.#after(thereMs, () => {
      const storeMs = this.#storeMs
      const startMs = this.#server.take(storeMs, this.#limit)
      if (startMs === undefined) return
      this.granted++
      this.#changedMs = storeMs
      const grant: Grant = { startMs, storeMs, atMs: this.#nowMs, era: this.#era }
      this.#grants.add(grant)
      this.#checkGrant()
      const arrive = (): void => this.#arrive(process, grant, { sentMs, forMs, isLost: end === "reply-lost" })
      this.#after(backMs, arrive)
    })
  }

  #arrive(
    process: Process,
    grant: Grant,
    how: { readonly sentMs: number; readonly forMs: number; readonly isLost: boolean },
  ): void {
    if (!how.isLost && this.#defers(process, () => this.#arrive(process, grant, how))) return
    this.#grants.delete(grant)
    const { startMs, storeMs, atMs, era } = grant
    if (how.isLost || process.isDead) this.#explain(1)
    else if (this.#nowMs - how.sentMs > TAKE_WITHIN_MS) {
      process.owed++
      const after = { startMs, current: 1, previous: 0 }
      this.refund(process, [{ ...this.#server.counter, units: 1, after }]).catch(() => undefined)
    } else {
      process.knowsTime = era === this.#era
      process.lagMs = this.#nowMs - atMs
      this.#becomeSure()
      const owner = {}
      const request: Request = { owner, permit: process.holder.hold(owner, startMs, storeMs) }
      process.running.add(request)
      this.#after(how.forMs, () => this.#finish(process, request))
    }
  }

  #finish(process: Process, request: Request): void {
    if (process.isDead || this.#defers(process, () => this.#finish(process, request))) return
    process.running.delete(request)
    process.owed++
    process.holder.release(request.permit)
  }

  /** Sends refunds of a process, which are releases and renewals. */
  refund(process: Process, refunds: readonly Refund[]): Promise<void> {
    const { thereMs, backMs, end } = this.#fate()
    const sentMs = this.#nowMs
    const namedMs = partOf(this.#storeMs - process.lagMs)
    const released = refunds.reduce((sum, { units }) => sum + Math.max(0, units), 0)
    const renewed = refunds.reduce((sum, { units }) => sum + Math.max(0, -units), 0)
    let isOver = false
    return new Promise((resolve, reject) => {
      const fail = (outcome: "not-applied" | "unknown"): void => {
        if (isOver || this.#defers(process, () => fail(outcome))) return
        isOver = true
        reject(new StoreUnavailableError("lost", { kind: "timeout", outcome }))
      }
      const isLate = (): boolean => this.#nowMs - sentMs > this.#deadlineMs
      const reply = (): void => {
        if (end !== "reply-lost" && this.#defers(process, reply)) return
        this.#renewing -= renewed
        if (end === "reply-lost" || process.isDead || isOver || isLate()) this.#explain(renewed)
        else {
          isOver = true
          resolve()
        }
      }
      this.#after(this.#deadlineMs, () => fail("unknown"))
      this.#after(thereMs, () => {
        const isLost = end === "request-lost" || end === "refused"
        if (!process.isDead) process.owed -= released
        if (isLost) this.#explain(released)
        if (end === "refused") fail("not-applied")
        if (isLost) return
        this.#server.refund(this.#storeMs, refunds)
        this.#changedMs = this.#storeMs
        this.#renewing += renewed
        // The process names an earlier part than the one in which the server counts.
        if (namedMs !== this.#partMs) this.#explain(renewed)
        this.#after(backMs, reply)
      })
    })
  }

  /** A process does nothing for a while. */
  freeze(nth: number, forMs: number): void {
    const process = this.#processOf(nth)
    if (process.isFrozen) return
    process.isFrozen = true
    this.#after(forMs, () => {
      process.isFrozen = false
      if (process.isDead) return
      // The timers fire first, so messages that were too late are lost.
      process.clock.set(this.#nowMs)
      for (const run of process.deferred.splice(0)) this.#after(0, run)
    })
  }

  /** A process ends with all its requests, and another one begins. */
  crash(nth: number, point: number): void {
    const at = nth % this.#processes.length
    this.#end(this.#processOf(nth))
    this.#processes[at] = new Process(this.#create, this, point)
    this.#becomeSure()
  }

  #end(process: Process): void {
    process.isDead = true
    process.holder.close()
    this.#explain(process.owed)
    if (this.#isSure) for (const request of process.running) this.#dead.add(request)
    for (const run of process.deferred.splice(0)) run()
  }

  stepBack(ms: number): void {
    this.#backMs += ms
    this.#era++
    this.#sureFromMs = undefined
    this.#changedMs = this.#storeMs
    this.#dead.clear()
    for (const process of this.#processes) process.knowsTime = false
    this.#check()
  }

  #becomeSure(): void {
    if (this.#sureFromMs !== undefined || !this.#processes.every(({ knowsTime }) => knowsTime)) return
    this.#sureFromMs = this.#partMs + 6 * PART_MS
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    while (this.#nowMs < untilMs) {
      const nextMs = this.#events[0]?.atMs ?? untilMs
      this.#nowMs = Math.max(this.#nowMs, Math.min(untilMs, this.#nowMs + GRID_MS, nextMs))
      for (const { clock, isFrozen } of this.#processes) if (!isFrozen) clock.set(this.#nowMs)
      await turn()
      this.#check()
      for (let event = this.#due(); event !== undefined; event = this.#due()) {
        event.run()
        await turn()
        this.#check()
      }
    }
  }

  /** Kills all processes. B3: H after the latest change, no permit is counted. */
  async endAll(): Promise<void> {
    for (const process of this.#processes) this.#end(process)
    this.#processes = []
    await this.pass(10 * PART_MS)
    while (this.#events.length > 0) await this.pass(PART_MS)
    await this.pass(Math.max(0, this.#changedMs + 2 * PART_MS - this.#storeMs))
    const counted = this.#server.counted(this.#storeMs)
    if (counted > 0) throw new BoundError(`B3: ${counted} permits are counted H after the latest change.`)
  }

  #due(): { run: () => void } | undefined {
    return (this.#events[0]?.atMs ?? Number.POSITIVE_INFINITY) <= this.#nowMs
      ? this.#events.shift()
      : undefined
  }

  /** Number of permits that requests hold. */
  get #held(): number {
    const { startMs: partMs } = this.#server.look(this.#storeMs)
    let held = 0
    const add = (permit: HeldPermit): void => {
      const { startMs = 0 } = permit
      if (startMs > partMs) this.#future.set(permit, startMs)
      if (startMs < partMs - PART_MS || this.#future.get(permit) === startMs) return
      held++
    }
    for (const grant of this.#grants) if (grant.era === this.#era) add(grant)
    for (const { running } of this.#processes) for (const { permit } of running) add(permit)
    for (const { permit } of this.#dead) add(permit)
    return held
  }

  get #isSure(): boolean {
    return this.#sureFromMs !== undefined && this.#storeMs >= this.#sureFromMs
  }

  #checkGrant(): void {
    const held = this.#held
    if (this.#isSure && held > this.#limit)
      throw new BoundError(`B2: ${held} of ${this.#limit} permits are held.`)
  }

  #check(): void {
    const storeMs = this.#storeMs
    const [counted, held] = [this.#server.counted(storeMs), this.#held]
    if (!this.#isSure) return
    if (held > counted) throw new BoundError(`B2: ${held} permits are held, but ${counted} are counted.`)
    this.#explained = this.#explained.filter(({ untilMs }) => untilMs > storeMs)
    let extra = this.#renewing
    for (const { permits } of this.#explained) extra += permits
    for (const { owed } of this.#processes) extra += owed
    if (this.#era === 0 && counted > held + extra) {
      throw new BoundError(`B6: ${counted} permits are counted, ${held} are held and ${extra} are explained.`)
    }
  }

  /** Permits that are counted from now on although no request holds them. They end with the next part. */
  #explain(permits: number): void {
    if (permits > 0) this.#explained.push({ permits, untilMs: this.#partMs + 2 * PART_MS })
  }

  get #storeMs(): number {
    return this.#server.startsMs + this.#nowMs - this.#backMs
  }

  get #partMs(): number {
    return partOf(this.#storeMs)
  }

  #processOf(nth: number): Process {
    return this.#processes[nth % this.#processes.length] as Process
  }

  #fate(): Fate {
    return this.#fates[this.#sent++ % this.#fates.length] as Fate
  }

  #after(ms: number, run: () => void): void {
    const event = { atMs: this.#nowMs + ms, run }
    const at = this.#events.findIndex(({ atMs }) => atMs > event.atMs)
    this.#events.splice(at < 0 ? this.#events.length : at, 0, event)
  }

  /** Defers an event of a frozen process. Returns false if the process is not frozen. */
  #defers(process: Process, run: () => void): boolean {
    if (!process.isFrozen || process.isDead) return false
    process.deferred.push(run)
    return true
  }
}

function partOf(storeMs: number): number {
  return storeMs - (storeMs % PART_MS)
}
