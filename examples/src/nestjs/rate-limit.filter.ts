import { type ArgumentsHost, Catch, type ExceptionFilter } from "@nestjs/common"
import { RateLimitException } from "@sluice/nestjs"

@Catch(RateLimitException)
export class RateLimitFilter implements ExceptionFilter {
  catch({ decision, retryAfterMs }: RateLimitException, host: ArgumentsHost) {
    const body = { error: "slow down", rule: decision.policy, retryAfterMs }
    host.switchToHttp().getResponse().status(429).send(body)
  }
}
