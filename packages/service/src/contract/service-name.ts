import { invalidArgument } from "../status-error.ts"

/** As long as a service's id may be in a stored document. */
export const LONGEST_NAME = 256

/** Whose rules are meant: a number from 1 up, or a name. 0 and empty text are absent in proto3. Throws StatusError. */
export function serviceName({
  serviceId,
  service,
}: {
  readonly serviceId: number
  readonly service: string
}): string {
  if (serviceId !== 0 && service !== "") {
    throw invalidArgument({ field: "service", description: "is given together with service_id" })
  }
  if (service !== "") {
    if (service.length <= LONGEST_NAME) return service
    throw invalidArgument({ field: "service", description: `is longer than ${LONGEST_NAME} characters` })
  }
  if (serviceId >= 1) return String(serviceId)
  const description = serviceId === 0 ? "is missing, and so is service" : "is not a whole number from 1 up"
  throw invalidArgument({ field: "service_id", description })
}
