/**
 * The number of requests that adapters hold, and the maximum wait. The throttle "queue" has the same defaults. If several
 * rules hold a request, the smallest numbers apply.
 */
export interface ThrottleQueue {
  /** Maximum number of requests that wait for one counter in this process. */
  readonly maxWaiting?: number | undefined
  /** Maximum time for which a request is held, in milliseconds. */
  readonly maxWaitMs?: number | undefined
}

/** How a request that does not fit into the limit is handled. */
export type Throttle =
  /** Refuses the request. For a leaky bucket, an admitted request should be held for `delayMs`. */
  | "hard"
  /** Same as "hard". */
  | { readonly kind: "hard" }
  /**
   * Admits `percent` percent more than the limit, and marks these requests `overLimit`. For example, 5 percent of
   * limit 500 admits 525.
   */
  | {
      readonly kind: "soft"
      /** A number above 0 and at most 1000. The resulting units are rounded down, and must be at least one. */
      readonly percent: number
      /** Adapters hold the requests above this percentage, as with "queue". Default: these requests are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /** Admits the request and marks it `overLimit` while there is spare capacity. */
  | {
      readonly kind: "elastic"
      /**
       * Maximum number of units that are admitted in total; must be above the limit. Default: as many units as can be
       * counted exactly.
       */
      readonly ceiling?: number | undefined
      /** Returns whether there is spare capacity; only in code. Default: a check of this process's event loop. */
      readonly signal?: (() => boolean) | undefined
      /** Adapters hold the requests that are not admitted, as with "queue". Default: these requests are refused. */
      readonly queue?: ThrottleQueue | undefined
    }
  /**
   * Adapters hold the request until it fits, in order of arrival. `decide` refuses as "hard" does. A leaky bucket
   * holds units up to its capacity (`burst`), and refuses further units.
   */
  | {
      readonly kind: "queue"
      /**
       * Maximum number of requests that wait for one counter in this process. Default: 100. For a leaky bucket, these
       * requests wait in front of the bucket. The default is then 0, so a full bucket refuses immediately.
       */
      readonly maxWaiting?: number | undefined
      /** Maximum time for which a request is held, in milliseconds. Default: 10,000. */
      readonly maxWaitMs?: number | undefined
    }
