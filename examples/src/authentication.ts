/** The authenticated account of a request. */
export interface Account {
  readonly id: string
  readonly plan: "free" | "pro"
}

const accounts: Readonly<Record<string, Account>> = {
  "token-of-ann": { id: "ann", plan: "free" },
  "token-of-bob": { id: "bob", plan: "pro" },
  "token-of-cyd": { id: "cyd", plan: "pro" },
}

/**
 * Returns the account of an Authorization header, or undefined if there is none. This function stands for your own
 * authentication. A limit per account is only as reliable as the authentication of the account.
 */
export function accountOf(authorization: string | undefined): Account | undefined {
  const token = authorization?.match(/^Bearer (\S+)$/i)?.[1]
  return token !== undefined && Object.hasOwn(accounts, token) ? accounts[token] : undefined
}
