import { Controller, Get, Module } from "@nestjs/common"
import { APP_GUARD } from "@nestjs/core"
import {
  SkipThrottle,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
} from "@nestjs/throttler"

@Controller()
class ReportsController {
  @Get("reports")
  list() {
    return []
  }

  @Get("exports")
  @Throttle({ default: { limit: 2, ttl: 60_000 } })
  export() {
    return []
  }

  @Get("health")
  @SkipThrottle()
  health() {
    return "ok"
  }
}

@Module({
  imports: [ThrottlerModule.forRoot([{ limit: 5, ttl: 60_000 }])],
  controllers: [ReportsController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class ThrottledModule {}
