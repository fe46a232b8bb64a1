/** Whether requests should be sent here. */
export type Phase = "starting" | "ready" | "draining"

/** From the start, through the first load of the rules, to the end. Each step is told once, in order. */
export interface Readiness {
  readonly phase: Phase
  /** The rules are loaded. Nothing once it drains. */
  rulesLoaded(): void
  /** It is going down. */
  drain(): void
}

/** Starts as "starting". `onChange` is told every other phase. */
export function createReadiness(onChange: (phase: Phase) => void): Readiness {
  let phase: Phase = "starting"
  const enter = (next: Phase): void => {
    phase = next
    onChange(next)
  }
  return {
    get phase() {
      return phase
    },
    rulesLoaded() {
      if (phase === "starting") enter("ready")
    },
    drain() {
      if (phase !== "draining") enter("draining")
    },
  }
}
