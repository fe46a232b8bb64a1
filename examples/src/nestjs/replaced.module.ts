import { Controller, Get, Module } from "@nestjs/common"
import { RateLimit, RateLimitModule, SkipRateLimit } from "@sluice/nestjs"

@Controller()
class ReportsController {
  @Get("reports")
  list() {
    return []
  }

  @Get("exports")
  @RateLimit({ limit: 2, window: "1 minute" })
  export() {
    return []
  }

  @Get("health")
  @SkipRateLimit()
  health() {
    return "ok"
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      limit: 5,
      window: "1 minute",
      field: ["ip", "method", "route"],
    }),
  ],
  controllers: [ReportsController],
})
export class ReplacedModule {}
