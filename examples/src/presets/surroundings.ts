import type { LimiterOptions } from "@sluice/core"

/** What differs between production, tests and a laptop: the clock, and the proxies in front of the app. */
export type Surroundings = Pick<LimiterOptions<unknown>, "clock" | "trustedProxies">
