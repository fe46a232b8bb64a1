import { InvalidOptionError } from "../ground/errors.ts"
import { show } from "../ground/show.ts"

/** Throws {@link InvalidOptionError} for a service that is not a string. */
export function requireService(service: unknown): void {
  if (typeof service === "string") return
  throw new InvalidOptionError([
    { path: "service", message: `${show(service)} is not the name of a service`, accepted: "a string" },
  ])
}
