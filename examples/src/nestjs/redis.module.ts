import { Inject, Module, type OnApplicationShutdown } from "@nestjs/common"
import { Redis } from "ioredis"

/** Connects to the Redis of the app, and disconnects when the app closes. */
@Module({
  providers: [
    {
      provide: Redis,
      useFactory: () => new Redis(process.env.REDIS_URL ?? "redis://localhost"),
    },
  ],
  exports: [Redis],
})
export class RedisModule implements OnApplicationShutdown {
  constructor(@Inject(Redis) private readonly client: Redis) {}

  onApplicationShutdown() {
    this.client.disconnect()
  }
}
