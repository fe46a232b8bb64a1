import { type ArgumentsHost, Catch, Controller, type DynamicModule, Get, UseGuards } from "@nestjs/common"
import { createLimiter, type Decision, type Limiter } from "@sluice/core"
import {
  type HandlerRateLimit,
  InjectLimiter,
  type NestRequest,
  RateLimit,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
} from "@sluice/nestjs"

/** An app's own request. */
interface Request {
  readonly headers: Readonly<Record<string, string>>
  readonly user?: { readonly plan: string }
}

const rule: HandlerRateLimit<Request> = {
  limit: ({ user }) => (user?.plan === "pro" ? 100 : 10),
  window: "1 minute",
  group: "search",
}

@Controller()
@UseGuards(RateLimitGuard)
@RateLimit<Request>(rule)
export class Search {
  @InjectLimiter() readonly limiter!: Limiter<NestRequest>
  constructor(@InjectLimiter() readonly same: Limiter<object>) {}

  @Get()
  @SkipRateLimit("daily", "hourly")
  async find(request: NestRequest): Promise<Decision> {
    return await this.limiter.peek(request)
  }

  // @ts-expect-error a window needs a limit
  @RateLimit({ window: "1 minute" })
  wrong(): void {}
}

@Catch(RateLimitException)
export class Filter {
  catch({ decision, rejection, retryAfterMs }: RateLimitException, _host: ArgumentsHost): unknown {
    return [decision.policy, rejection.body, retryAfterMs.toFixed()]
  }
}

class Config {
  readonly limit = 5
}

export const modules: readonly DynamicModule[] = [
  RateLimitModule.forRoot({ limit: 100, window: "1 minute", skip: ({ headers }) => headers.accept === "no" }),
  RateLimitModule.forRoot({
    rules: [{ name: "user", field: "user", limit: 100, window: "1 minute" }],
    fields: { user: ({ user }: Request) => user?.plan },
  }),
  RateLimitModule.forRoot({
    limiter: createLimiter({ limit: 5, window: 1000 }) as unknown as Limiter<NestRequest>,
  }),
  RateLimitModule.forRootAsync({
    inject: [Config],
    useFactory: async ({ limit }: Config) => ({ limit, window: "1 minute" }),
  }),
]

// @ts-expect-error a misspelled option is not valid
RateLimitModule.forRoot({ limit: 100, windw: "1 minute" })
// @ts-expect-error a window is a number of milliseconds, or a string
RateLimitModule.forRoot({ limit: 100, window: true })
