/** The phase of the service. Clients should send requests only in the phase "ready". */
export type Phase = "starting" | "ready" | "draining"

/** The phases of the service, from its start until it shuts down. Each phase is entered once, in order. */
export interface Readiness {
  readonly phase: Phase
  /** Enters the phase "ready" when the rules have loaded. A no-op after the service has begun to drain. */
  rulesLoaded(): void
  /** Enters the phase "draining". */
  drain(): void
}

/**
 * Creates the readiness of a service, which begins in the phase "starting". `onChange` is called with every later
 * phase.
 */
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
