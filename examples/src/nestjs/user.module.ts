import { Module } from "@nestjs/common"
import { RateLimitModule } from "@sluice/nestjs"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { RedisModule } from "./redis.module.ts"

/** What your guard stores on the request. */
interface Authenticated {
  user?: { id: string }
}

@Module({
  imports: [
    RateLimitModule.forRootAsync({
      imports: [RedisModule],
      inject: [Redis],
      useFactory: (client: Redis) => ({
        service: "shop",
        store: redisStore({ client }),
        trustedProxies: 1,
        rules: [
          { name: "address", field: "ip", limit: 300, window: "1 minute" },
          { name: "user", field: "user", limit: 100, window: "1 minute" },
        ],
        fields: { user: (request: Authenticated) => request.user?.id },
      }),
    }),
  ],
})
export class UserModule {}
