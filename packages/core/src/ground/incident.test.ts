import { describe, expect, it } from "vitest"
import type { Clock } from "./clock.ts"
import { Incident, type IncidentLine } from "./incident.ts"
import { manualClock } from "./manual-clock.ts"
import type { Warner } from "./warnings.ts"

const MINUTE_MS = 60_000

function setUp(create: (warner: Pick<Warner, "say">) => Incident) {
  const logged: string[] = []
  const say = (level: string, code: string, message: string) => logged.push(`${level} ${code} ${message}`)
  return { logged, incident: create({ say }) }
}

function lasting(clock: Clock) {
  return setUp((warner) => new Incident(warner, MINUTE_MS, clock))
}

function losses(clock: Clock) {
  return setUp((warner) => Incident.ofLosses(warner, clock))
}

function line(message: IncidentLine["message"], key?: string): IncidentLine {
  return { level: "error", code: "SLUICE_DEGRADED", message, ...(key !== undefined && { key }) }
}

const BACK: IncidentLine = { level: "warn", code: "SLUICE_RECOVERED", message: "back" }

/** Moves the clock, and then runs the code that follows the waits that have ended. */
async function pass(clock: ReturnType<typeof manualClock>, ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

describe("an incident", () => {
  it("logs one line for each cause, and one line when it ends", () => {
    const { incident, logged } = setUp((warner) => new Incident(warner))
    for (const cause of ["a", "b", "a"]) incident.add(line(cause, cause))
    expect(incident.lines.map(({ message }) => message)).toEqual(["a", "b"])
    incident.end(BACK)
    incident.end(BACK)
    expect(logged).toEqual([
      "error SLUICE_DEGRADED a",
      "error SLUICE_DEGRADED b",
      "warn SLUICE_RECOVERED back",
    ])
  })

  it("begins again when a new cause replaces the old one", () => {
    const { incident, logged } = setUp((warner) => new Incident(warner))
    const news = ["a", "a", "b", "a"].map((cause) => incident.begin(line(cause, cause)))
    expect(news).toEqual([true, false, true, true])
    expect(logged).toHaveLength(3)
  })

  it("that lasts repeats its line every minute until it ends", async () => {
    const clock = manualClock()
    const { incident, logged } = lasting(clock)
    incident.begin(line("gone"))
    for (let minute = 1; minute <= 3; minute++) await pass(clock, MINUTE_MS)
    expect(logged).toHaveLength(4)
    incident.end(BACK)
    await pass(clock, MINUTE_MS)
    expect(logged).toHaveLength(5)
  })

  it("logs the first loss immediately, and the number of later losses after a minute", async () => {
    const clock = manualClock()
    const { incident, logged } = losses(clock)
    const lose = (times?: number) =>
      incident.add(
        line((losses) => `${losses} lost`),
        times,
      )
    lose(2)
    lose()
    lose(3)
    await pass(clock, MINUTE_MS)
    await pass(clock, MINUTE_MS)
    lose()
    lose()
    incident.close()
    await pass(clock, MINUTE_MS)
    const counts = logged.map((said) => Number.parseInt(said.replace(/\D+/, ""), 10))
    expect(counts).toEqual([2, 4, 1, 1])
  })

  it("logs each loss, but a lasting problem only once, if the clock cannot wait", async () => {
    const wait = () => Promise.reject(new Error("no timers"))
    const clock = { ...manualClock(), wait }
    const [lost, problem] = [losses(clock), lasting(clock)]
    for (let i = 0; i < 3; i++) {
      lost.incident.add(line("lost"))
      problem.incident.begin(line("gone"))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect([lost.logged.length, problem.logged.length]).toEqual([3, 1])
  })

  it("does not repeat its line after its end, even if the clock ignores the signal", async () => {
    const clock = manualClock()
    const { incident, logged } = lasting({ now: clock.now, wait: (ms) => clock.wait(ms) })
    incident.begin(line("gone"))
    incident.end()
    incident.begin(line("gone"))
    await pass(clock, MINUTE_MS)
    expect(logged).toHaveLength(3)
  })
})

it("lossLine returns a line with what was lost, why, and what to do", () => {
  const { message } = Incident.lossLine(
    "SLUICE_REFUND_LOST",
    (n) => `${n} refunds were lost`,
    new Error("gone"),
    "Look.",
  )
  expect((message as (times: number) => string)(3)).toBe(
    "3 refunds were lost: gone. Look. Such losses are logged at most once a minute.",
  )
})
