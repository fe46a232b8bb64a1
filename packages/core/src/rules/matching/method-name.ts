import { METHODS } from "node:http"
import { show, suggestion } from "../../ground/show.ts"

/**
 * What is doubtful in a rule's method: that this Node knows none of this name, so that no server on it gets such a
 * request. It is no mistake: rules are shared with other versions, which have other methods, and with gateways.
 */
export function methodDoubt(method: string): string | undefined {
  if (METHODS.includes(method.toUpperCase())) return undefined
  return `${show(method)} is no method that Node knows${suggestion(method, METHODS)}`
}
