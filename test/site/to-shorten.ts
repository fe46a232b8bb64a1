/** Pages that are still too long, each with its words today. */
export const TO_SHORTEN: Readonly<Record<string, number>> = {
  "service/gateways": 1_683,
  "service/envoy": 1_606,
}
