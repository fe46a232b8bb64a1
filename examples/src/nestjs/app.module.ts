import { Module } from "@nestjs/common"
import { RateLimitModule } from "@sluice/nestjs"
import { LoginController } from "./login.controller.ts"

@Module({
  imports: [RateLimitModule.forRoot({ limit: 100, window: "1 minute" })],
  controllers: [LoginController],
})
export class AppModule {}
