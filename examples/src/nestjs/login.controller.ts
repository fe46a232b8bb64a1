import { Controller, Get, Post } from "@nestjs/common"
import { RateLimit, SkipRateLimit } from "@sluice/nestjs"

@Controller()
export class LoginController {
  @Post("login")
  @RateLimit({ limit: 5, window: "1 minute" })
  login() {
    return "Welcome"
  }

  @Get("health")
  @SkipRateLimit()
  health() {
    return "ok"
  }
}
