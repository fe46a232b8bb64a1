import { Controller, Delete, Get, Req } from "@nestjs/common"
import type { Limiter } from "@sluice/core"
import { InjectLimiter, SkipRateLimit } from "@sluice/nestjs"

@Controller("quota")
export class QuotaController {
  constructor(@InjectLimiter() private readonly limiter: Limiter<object>) {}

  @Get()
  left(@Req() request: object) {
    return { remaining: this.limiter.decisionOn(request)?.remaining }
  }

  @Delete()
  @SkipRateLimit()
  async reset(@Req() request: object) {
    await this.limiter.reset(request)
  }
}
