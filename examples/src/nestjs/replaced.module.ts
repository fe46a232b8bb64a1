import { Controller, Get, Module } from "@nestjs/common"
import { RateLimit, RateLimitModule, SkipRateLimit } from "@sluice/nestjs"

@Controller()
class ReportsController {
  @Get("reports")
  list() {
    return []
  }

  @Get("exports")
  // Before: @Throttle({ default: { limit: 2, ttl: 60_000 } })
  @RateLimit({ limit: 2, window: "1 minute" })
  export() {
    return []
  }

  @Get("health")
  // Before: @SkipThrottle()
  @SkipRateLimit()
  health() {
    return "ok"
  }
}

@Module({
  imports: [
    // Before: ThrottlerModule.forRoot([{ limit: 5, ttl: 60_000 }])
    RateLimitModule.forRoot({
      limit: 5,
      window: "1 minute",
      field: ["ip", "method", "route"],
    }),
  ],
  controllers: [ReportsController],
  // Before: providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }]
})
export class ReplacedModule {}
