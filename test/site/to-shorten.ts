/** Pages that are still too long, each with its words today. */
export const TO_SHORTEN: Readonly<Record<string, number>> = {
  "production/redis": 2_179,
  "production/redis-fails": 1_405,
  "production/metrics": 1_315,
  "service/gateways": 1_683,
  "service/envoy": 1_606,
  "extend/stores": 1_430,
}
