const FORM = /^(\d{1,8})([HMSmun])$/
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
}

/**
 * Parses a `grpc-timeout` header. Returns the milliseconds that the caller waits, or undefined if the value is
 * invalid. See "Timeout" in https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export function timeLeftMs(timeout: string): number | undefined {
  const [, digits, unit] = FORM.exec(timeout) ?? []
  return unit === undefined ? undefined : Number(digits) * (UNIT_MS[unit] as number)
}
