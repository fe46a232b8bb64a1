import type { ServerResponse } from "node:http"
import { NodeExchange, type RefusalError } from "@sluice/core/adapters"
import { RateLimitException } from "./exception.ts"

/**
 * A request at a guard or interceptor of Nest, with Node's own response. A refusal is thrown, so that Nest's exception
 * filters send it.
 */
export class NestExchange extends NodeExchange<object> {
  constructor(request: object, nodeResponse: ServerResponse, response: unknown = nodeResponse) {
    super(request, nodeResponse, noNext, response)
  }

  override proceed(): true {
    return true
  }

  override fail(error: RefusalError): never {
    this.setHeaders(error.headerLines)
    throw new RateLimitException(error)
  }
}

function noNext(): void {}
