/** The load generator without a limiter. Every other figure includes its cost. */
export const NOBODY = "nobody: the load alone"
