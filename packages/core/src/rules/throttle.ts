/** How many requests adapters hold, and for how long. The defaults are those of the throttle "queue". */
export interface ThrottleQueue {
  /** Most requests that wait for one counter in this process. */
  readonly maxWaiting?: number | undefined
  /** Longest time that a request is held, in milliseconds. */
  readonly maxWaitMs?: number | undefined
}

/** How a request that does not fit into the limit is handled. */
export type Throttle =
  /** Refuses the request. For a leaky bucket, `delayMs` is how long to hold an admitted request. */
  | "hard"
  /** Same as "hard". */
  | { readonly kind: "hard" }
  /** Admits `percent` percent of the limit above it and marks them `overLimit`: 5 with limit 500 admits 525. */
  | {
      readonly kind: "soft"
      /** Above 0, at most 1000. The resulting units are rounded down; they must be at least one. */
      readonly percent: number
      /** Adapters hold the requests above that percentage, as "queue" does. Default: these requests are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /** Admits the request and marks it `overLimit` while there is spare capacity. */
  | {
      readonly kind: "elastic"
      /** Most units that are admitted in total; must be above the limit. Default: as many as can be counted exactly. */
      readonly ceiling?: number | undefined
      /** Returns whether there is spare capacity; only in code. Default: judges by the event loop of this process. */
      readonly signal?: (() => boolean) | undefined
      /** Adapters hold the requests that are not admitted, as "queue" does. Default: these requests are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /**
   * Adapters hold the request until it fits, in order of arrival. `decide` refuses as "hard" does. A leaky bucket holds
   * as many units as it has room for (`burst`) and refuses the rest.
   */
  | {
      readonly kind: "queue"
      /**
       * Most requests that wait for one counter in this process. Default: 100. For a leaky bucket, these requests wait
       * in front of the bucket. The default is then 0, so a full bucket refuses immediately.
       */
      readonly maxWaiting?: number | undefined
      /** Longest time that a request is held, in milliseconds. Default: 10,000. */
      readonly maxWaitMs?: number | undefined
    }
