import { isDeepStrictEqual } from "node:util"
import { create } from "@bufbuild/protobuf"
import type { ServiceMetadata } from "@sluice/rules"
import {
  type ServiceMetadata as MetadataMessage,
  ServiceMetadataSchema,
} from "../gen/sluice/v1/rate_limiter_pb.ts"

/**
 * Returns the metadata in a message. Returns undefined if there is no message, so that the stored metadata is kept.
 * The core checks the values.
 */
export function metadataOf(message: MetadataMessage | undefined): ServiceMetadata | undefined {
  if (message === undefined) return undefined
  const { owner, description, contact, link } = message
  return {
    ...(owner !== "" && { owner }),
    ...(description !== "" && { description }),
    ...(contact !== "" && { contact }),
    ...(link !== "" && { link }),
  }
}

/** Returns metadata as a message. */
export function metadataMessage({ owner, description, contact, link }: ServiceMetadata): MetadataMessage {
  return create(ServiceMetadataSchema, {
    ...(owner !== undefined && { owner }),
    ...(description !== undefined && { description }),
    ...(contact !== undefined && { contact }),
    ...(link !== undefined && { link }),
  })
}

/** Whether a registration with this metadata leaves the stored metadata unchanged. */
export function isSameMetadata(
  given: ServiceMetadata | undefined,
  stored: ServiceMetadata | undefined,
): boolean {
  return given === undefined || isDeepStrictEqual({ ...given }, { ...stored })
}
