/**
 * Returns a function that throws an Error for a server that cannot listen. The message is one line with the server, the
 * address and the reason.
 */
export function cannotListen(who: string, address: string): (error: unknown) => never {
  return (error) => {
    const { message } = error as Error
    const why = message.includes("EADDRINUSE") ? "the port is in use" : message
    throw new Error(`${who} cannot listen on ${address}: ${why}`, { cause: error })
  }
}
