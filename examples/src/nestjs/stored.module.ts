import { Module } from "@nestjs/common"
import { APP_GUARD } from "@nestjs/core"
import { ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler"
import { SluiceThrottlerStorage } from "@sluice/nestjs"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { RedisModule } from "./redis.module.ts"
import { ReportsController } from "./reports.controller.ts"

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [RedisModule],
      inject: [Redis],
      useFactory: (client: Redis) => ({
        throttlers: [{ limit: 5, ttl: 60_000, blockDuration: 600_000 }],
        storage: new SluiceThrottlerStorage({
          service: "shop",
          store: redisStore({ client }),
        }),
      }),
    }),
  ],
  controllers: [ReportsController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class StoredModule {}
