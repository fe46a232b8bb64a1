/**
 * The owner and contact of a service, and a page with help for its clients. The metadata is stored with the rules of
 * the service.
 */
export interface ServiceMetadata {
  /** The team or person that the service belongs to, at most 256 characters. */
  readonly owner?: string | undefined
  /** The purpose of the service or of its limits, at most 1024 characters. */
  readonly description?: string | undefined
  /** A contact of the owner, such as an e-mail address or a channel, at most 256 characters. */
  readonly contact?: string | undefined
  /**
   * An http or https URL of a page about the limits, at most 2048 characters. Refused clients receive the URL in the
   * header `Link: <…>; rel="help"` (RFC 8288).
   */
  readonly link?: string | undefined
}
