import { setImmediate as nextTurn } from "node:timers/promises"
import { getHeapSnapshot } from "node:v8"

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[]
      readonly node_types: readonly [readonly string[], ...unknown[]]
      readonly edge_fields: readonly string[]
      readonly edge_types: readonly [readonly string[], ...unknown[]]
    }
  }
  readonly nodes: readonly number[]
  readonly edges: readonly number[]
  readonly strings: readonly string[]
}

/**
 * Returns the shortest path of references that keeps an object of this class in memory: "(GC roots) → timer →
 * Timeout". Follows no weak references. The path is for the message of a test that waits for a garbage collection
 * that does not happen.
 */
export async function whatHolds(className: string): Promise<string> {
  // A WeakRef holds its object until the end of the job that has created or read the WeakRef.
  await nextTurn()
  const chunks: Buffer[] = []
  for await (const chunk of getHeapSnapshot()) chunks.push(chunk as Buffer)
  const { snapshot, nodes, edges, strings } = JSON.parse(Buffer.concat(chunks).toString()) as Snapshot
  const {
    node_fields: ofNode,
    node_types: nodeTypes,
    edge_fields: ofEdge,
    edge_types: edgeTypes,
  } = snapshot.meta
  const [nodeSize, edgeSize] = [ofNode.length, ofEdge.length]
  const [nodeType, nodeName, edgeCount] = ["type", "name", "edge_count"].map((each) =>
    ofNode.indexOf(each),
  ) as [number, number, number]
  const [edgeType, edgeName, target] = ["type", "name_or_index", "to_node"].map((each) =>
    ofEdge.indexOf(each),
  ) as [number, number, number]
  const firstEdges = new Uint32Array(nodes.length / nodeSize)
  for (let node = 0, edge = 0; node < firstEdges.length; node++) {
    firstEdges[node] = edge
    edge += (nodes[node * nodeSize + edgeCount] as number) * edgeSize
  }
  const isObject = (at: number): boolean => nodeTypes[0][nodes[at + nodeType] as number] === "object"
  const nameOf = (at: number): string => strings[nodes[at + nodeName] as number] as string
  /** The step that leads to each found node: the previous node, and the name of the reference. */
  const cameBy = new Map<number, readonly [number, string]>([[0, [-1, ""]]])
  for (const at of cameBy.keys()) {
    if (nameOf(at) === className && isObject(at)) return pathTo(at, cameBy, nameOf)
    const first = firstEdges[at / nodeSize] as number
    const end = first + (nodes[at + edgeCount] as number) * edgeSize
    for (let edge = first; edge < end; edge += edgeSize) {
      const type = edgeTypes[0][edges[edge + edgeType] as number] as string
      const to = edges[edge + target] as number
      if (type === "weak" || cameBy.has(to)) continue
      const name = edges[edge + edgeName] as number
      cameBy.set(to, [at, type === "element" || type === "hidden" ? `[${name}]` : (strings[name] as string)])
    }
  }
  return `nothing holds a ${className}`
}

function pathTo(
  node: number,
  cameBy: ReadonlyMap<number, readonly [number, string]>,
  nameOf: (at: number) => string,
): string {
  const path: string[] = []
  for (let at = node; at > 0; ) {
    const [before, reference] = cameBy.get(at) as readonly [number, string]
    path.unshift(`${reference}: ${nameOf(at).slice(0, 60)}`)
    at = before
  }
  return path.join(" → ")
}
