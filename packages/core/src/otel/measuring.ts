/** What is measured at a limiter. */
export interface Measuring {
  /** Hands over what has been added up: called when metrics are collected, and at the end. */
  flush(): void
  /** Leaves the limiter. */
  end(): void
}
