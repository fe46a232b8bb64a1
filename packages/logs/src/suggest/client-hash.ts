/**
 * Returns a hash from 0 to 2^32 - 1: FNV-1a with the last steps of Murmur3. Every bit depends on the seed and on
 * every character. If the seed is secret, clients cannot choose names that are always in the sample.
 */
export function clientHash(text: string, seed: number): number {
  let hash = 0x811c9dc5 ^ seed
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
