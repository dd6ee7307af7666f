import {
  buildJsonResponse,
  buildResponse,
  type ScriptedResponse,
  ScriptedServer,
} from './scripted-server.js'

export interface Post {
  id: string
  key: string | undefined
  authorization: string | undefined
  index: number
}

/**
 * What a service does instead of creating the plant and answering: it sends a given response,
 * creates the plant and resets the connection (`lose`), or does nothing (`hang`).
 */
export type Behaviour = Buffer | 'lose' | 'hang' | undefined

interface ServiceScript {
  /** Whether the service supports idempotency keys, and describes them in its OpenAPI. */
  isKeyed?: boolean
  behave?: ((post: Post) => Behaviour | Promise<Behaviour>) | undefined
  /** The responses to other requests, by their first lines: `GET /plants/1`. */
  others?: Record<string, ScriptedResponse[]>
}

/**
 * On Linux, each worker has its own address, so no other test gets the port of a stopped service.
 */
const host =
  process.platform === 'linux' ? `127.0.1.${process.env['VITEST_POOL_ID'] ?? 1}` : '127.0.0.1'

/** Starts a service that keeps plants in memory, and answers as the specification says. */
export async function startPlantService({ isKeyed = true, behave, others }: ServiceScript = {}) {
  const posts: Post[] = []
  const createdIds = new Set<string>()
  const keys = new Map<string, string>()
  const create = (body: string, { id, key = '' }: Post): Buffer => {
    const { name, tag } = JSON.parse(body)
    const isRepeated = isKeyed && key !== '' && keys.get(key) === body
    if (createdIds.has(id) && !isRepeated)
      return buildJsonResponse(400, { error: 409, message: `Plant ${id} exists` })
    createdIds.add(id)
    keys.set(key, body)
    return buildJsonResponse(200, { name, tag })
  }
  const answer: ScriptedResponse = async (socket, { body, headers }) => {
    const { authorization, 'idempotency-key': key } = headers
    const id = /^\{"id":(-?\d+)/.exec(body)?.[1] ?? ''
    const post = { id, key, authorization, index: posts.length }
    posts.push(post)
    const behaviour = await behave?.(post)
    if (behaviour === 'hang') return
    const response = Buffer.isBuffer(behaviour) ? behaviour : create(body, post)
    if (behaviour === 'lose') socket.resetAndDestroy()
    else socket.write(response)
  }
  const parameters = isKeyed ? [{ name: 'Idempotency-Key', in: 'header' }] : []
  const description = buildJsonResponse(200, { paths: { '/plants': { post: { parameters } } } })
  const service = await ScriptedServer.listen({
    posts: [answer],
    others: { 'GET /openapi.json': [description], ...others },
    openapi: buildResponse(405),
    host,
  })
  const address = `http://${host}:${service.port}`
  // A change of a plant removes its idempotency key.
  const changeAll = () => keys.clear()
  return Object.assign(service, {
    createdIds,
    receivedCreates: posts,
    address,
    changeAll,
  })
}
