/**
 * What packages that extend Sluice share with it: how a value is shown in a message, and warnings that are logged once.
 * @module @sluice/core/kit
 */

export { show, suggestion } from "./ground/show.ts"
export { warnOncePerLogger } from "./ground/warnings.ts"
