import type { RedisCommands } from "../commands.ts"

/** A command that waits for a reply from the test. */
export interface AskedCommand {
  /** `del`, `evalsha` or `eval`. */
  readonly what: string
  /** The digest or the text of a script. */
  readonly script: string
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly answer: (reply: unknown) => void
  /** Rejects the command with an error that has this message. */
  readonly fail: (message: string) => void
}

/** A fake client of Redis servers. The test decides what the servers reply and whether they are reachable. */
export class AskedServer implements RedisCommands {
  readonly isCluster: boolean
  /** All commands so far, in order. */
  readonly asked: AskedCommand[] = []
  readonly reconnected: string[] = []
  isReady: (key: string) => boolean = () => true
  isOpen: () => boolean = () => true
  nodeOf: (key: string) => string = () => ""

  constructor(isCluster = false) {
    this.isCluster = isCluster
  }

  get latest(): AskedCommand {
    const command = this.asked.at(-1)
    if (command === undefined) throw new Error("nothing was asked")
    return command
  }

  evalsha(sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#ask("evalsha", sha, keys, args)
  }

  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#ask("eval", script, keys, args)
  }

  del(keys: readonly string[]): Promise<unknown> {
    return this.#ask("del", "", keys, [])
  }

  reconnect(key: string): void {
    this.reconnected.push(key)
  }

  #ask(what: string, script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return new Promise((answer, reject) => {
      const fail = (message: string) => reject(new Error(message))
      this.asked.push({ what, script, keys, args, answer, fail })
    })
  }
}
