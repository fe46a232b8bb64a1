import { invalidArgument } from "../status-error.ts"

/** Maximum characters of a service's name. The same maximum applies to the id of a service in a stored document. */
export const LONGEST_NAME = 256

/**
 * Returns the service that a message names, by a positive number or by a name. In proto3, 0 and an empty string mean
 * absent. Throws StatusError if neither or both are given, or if the given value is invalid.
 */
export function serviceName({
  serviceId,
  service,
}: {
  readonly serviceId: number
  readonly service: string
}): string {
  if (serviceId !== 0 && service !== "") {
    throw invalidArgument({
      field: "service",
      description: "is given together with service_id; give only one of them",
    })
  }
  if (service !== "") {
    if (service.length <= LONGEST_NAME) return service
    throw invalidArgument({
      field: "service",
      description: `has ${service.length} characters; at most ${LONGEST_NAME} are accepted`,
    })
  }
  if (serviceId >= 1) return String(serviceId)
  const description =
    serviceId === 0 ? "is missing; give service_id or service" : `${serviceId} is not a positive whole number`
  throw invalidArgument({ field: "service_id", description })
}
