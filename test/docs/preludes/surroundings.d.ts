import "express"
import "fastify"

/** Whom an app's authentication has found. */
interface User {
  readonly id: string
  readonly plan?: string
}

declare global {
  namespace Express {
    interface Request {
      user?: User
    }
  }
}
declare module "fastify" {
  interface FastifyRequest {
    user?: User
  }
}
