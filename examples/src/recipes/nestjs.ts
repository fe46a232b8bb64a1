import { type CanActivate, HttpException } from "@nestjs/common"
import type { LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import type { Request, Response } from "express"

/** Creates a guard that counts what the guards before it admit. */
export function rateLimitGuard(
  options: LimiterOptions<Request, Response>,
): CanActivate {
  const limit = rateLimit({
    ...options,
    // Nest's exception filters respond. The headers are set already.
    onRejected(_req, { status }, { retryAfterMs }, res) {
      const body = {
        statusCode: status,
        message: "Too many requests",
        retryAfterMs,
      }
      res.locals.refuse(new HttpException(body, status))
      return false
    },
  })
  return {
    canActivate: (context) =>
      new Promise((resolve, reject) => {
        const http = context.switchToHttp()
        const res = http.getResponse<Response>()
        res.locals.refuse = reject
        limit(http.getRequest<Request>(), res, () => resolve(true))
      }),
  }
}
