/** Header fields as Node has them: lower-case names; a repeated field is a list, or joined with ", ". */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * The facts of a request that an adapter gives, and that serve the built-in fields. Every member may be absent: what
 * is absent is a missing field, never an error.
 */
export interface RequestFacts {
  /** In any case: for `method`, where HEAD is GET, and for `match.methods`. */
  readonly method?: string | undefined
  /** The request target as it came: "/users/7?full=1", with mount points still in it. */
  readonly url?: string | undefined
  /**
   * The target as it is routed, where the app has rewritten it before it got here, with mount points in it. `match.path` looks at
   * both. Absent, it is the same.
   */
  readonly routedUrl?: string | undefined
  /** The framework's pattern of the route, "/users/:id", where the framework knows it; never the raw path. */
  readonly route?: string | undefined
  /** For `header:NAME`, and for the client's address where a trusted proxy writes it. */
  readonly headers?: HeaderFields | undefined
  /** Parsed, for `query:NAME`: an object of texts. A repeated parameter, a list, is missing. */
  readonly query?: unknown
  /** Parameters of the route, for `param:NAME`: an object of texts. */
  readonly params?: unknown
  /** Parsed, for `body:PATH`: an object, whose members may be objects. */
  readonly body?: unknown
  /** Parsed, for `cookie:NAME`: an object of texts. Absent, they are read from the header. */
  readonly cookies?: unknown
  /**
   * The only fields that there are of this request, as rules write them but header fields' names in lower case
   * ("header:x-api-key"), and `service` where rules without a field are for it: any other rule is not. Absent, every rule is, and its `onMissing` decides about a field that is missing.
   */
  readonly onlyFields?: ReadonlySet<string> | undefined
  /** Address of the socket's peer; undefined when the socket is gone. */
  readonly remoteAddress?: string | undefined
  /**
   * What lives as long as the connection and is no other client's, such as Node's socket: what `remoteAddress` means is
   * worked out once for it and kept on it, under a symbol. Absent, it is worked out for every request; also where it is frozen,
   * or has a `remoteAddress` that is not inherited: an app has written it, perhaps another one for each request.
   */
  readonly keepsAddress?: object | undefined
}

/** The canonical address, not grouped, of the client behind a request; undefined where it has none. */
export type ClientAddressReader = (facts: RequestFacts) => string | undefined

/**
 * The text of a field for one request; undefined where it is missing. `request` is what the app's extractors are
 * given: the framework's own object. Does not throw.
 */
export type FieldReader = (facts: RequestFacts, request: unknown) => string | undefined
