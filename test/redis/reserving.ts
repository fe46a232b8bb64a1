/** The settings of processes that settle reservations of each other. */
export interface Settling {
  readonly port: number
}

/** The options of the limiter in each process. */
export const RESERVING = {
  service: "reserving",
  units: { tokens: 100 },
  storeTimeoutMs: 20_000,
  rules: [
    {
      name: "tokens",
      field: "service",
      limit: 1_000,
      window: "1 day",
      counts: "tokens",
      algorithm: "fixed-window",
    },
    { name: "few", field: "service", concurrent: 5, hold: "2 seconds" },
  ],
} as const
