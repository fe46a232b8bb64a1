/** Pages that are still too long, each with its words today. */
export const TO_SHORTEN: Readonly<Record<string, number>> = {}
