/** What Kubernetes sets of a Service that is called sluice or sluice-…: SLUICE_HTTP_SERVICE_HOST, SLUICE_PORT_80_TCP. */
const OF_KUBERNETES = /_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)/

/** Variables of the environment that look like settings and are none: misspelt ones, most likely. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: ReadonlySet<string>,
): string[] {
  return Object.keys(env).filter(
    (name) => name.startsWith("SLUICE_") && !known.has(name) && !OF_KUBERNETES.test(name),
  )
}
