/**
 * How long a refund may take that nobody waits for: far longer than a decision, so that a slow moment or a failover loses
 * no units, and short enough that refunds do not pile up in an outage.
 */
export const BACKGROUND_REFUND_MS = 10_000
