import { type NodeRequest, ServerFacts, type ServerRequest } from "@sluice/core/adapters"

/** The members of Express' request that are read here, and that not every server of Node has. */
export interface ExpressRequest extends NodeRequest, ServerRequest {
  readonly originalMethod?: string
  readonly baseUrl: string
  readonly url: string
  readonly route?: { readonly path?: unknown }
  readonly app?: { enabled(setting: string): boolean }
}

/** The facts of a request of Nest on Express. Each fact is read only when a rule needs it. */
export class NestExpressFacts extends ServerFacts<ExpressRequest> {
  /** Returns the method before an override. The package method-override stores this method on the request. */
  get originalMethod(): string | undefined {
    return this.request.originalMethod
  }
  /** Returns the URL by which Express routes, which middleware may have rewritten. */
  get routedUrl(): string {
    return `${this.request.baseUrl}${this.request.url}`
  }
  /** Returns the pattern of the route, with Nest's global prefix. */
  get route(): string | undefined {
    const { baseUrl, route } = this.request
    return typeof route?.path === "string" ? `${baseUrl}${route.path}` : undefined
  }
  get proxySetting(): string | undefined {
    return this.request.app?.enabled("trust proxy") ? 'Express\' setting "trust proxy"' : undefined
  }
}

/** True if the object is a request of Express. */
export function isExpress(request: object): request is ExpressRequest {
  return "baseUrl" in request && "originalUrl" in request
}
