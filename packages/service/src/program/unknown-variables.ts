/**
 * Variables that Kubernetes sets for a Service with the name sluice or sluice-…: SLUICE_HTTP_SERVICE_HOST,
 * SLUICE_PORT_80_TCP.
 */
const OF_KUBERNETES = /_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)/

/** Returns environment variables that look like settings but are not, most likely because they are misspelled. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: ReadonlySet<string>,
): string[] {
  return Object.keys(env).filter(
    (name) => name.startsWith("SLUICE_") && !known.has(name) && !OF_KUBERNETES.test(name),
  )
}
