import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Pool } from "pg"

/** A PostgreSQL server for a test. PostgreSQL's own code runs in this process, behind its own protocol. */
export interface PostgresServer {
  readonly host: string
  readonly port: number
  stop(): Promise<void>
}

/**
 * Starts an empty server in memory on a free port. The server runs one transaction at a time, across all connections.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const db = await PGlite.create()
  const host = "127.0.0.1"
  const server = new PGLiteSocketServer({ db, host, port: 0, maxConnections: 20 })
  await server.start()
  const port = Number(server.getServerConn().split(":").at(-1))
  return {
    host,
    port,
    async stop() {
      await server.stop()
      await db.close()
    },
  }
}

/** Creates a pool with at most `max` connections, as an app would in its own process. */
export function openPool({ host, port }: Pick<PostgresServer, "host" | "port">, max: number): Pool {
  return new Pool({ user: "postgres", database: "postgres", host, port, max })
}
