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

/** Instead of the usual: an answer, the plant and a reset ("lose"), or neither ("hang"). */
export type Behaviour = Buffer | 'lose' | 'hang' | undefined

interface ServiceScript {
  /** whether it keeps keys, and says so */
  isKeyed?: boolean
  behave?: ((post: Post) => Behaviour | Promise<Behaviour>) | undefined
}

/** Of this worker alone, on Linux: no other test gets the port of a service that is away. */
const host =
  process.platform === 'linux' ? `127.0.1.${process.env['VITEST_POOL_ID'] ?? 1}` : '127.0.0.1'

/** A service that keeps plants in memory, and answers as the specification says. */
export async function startPlantService({ isKeyed = true, behave }: ServiceScript = {}) {
  const posts: Post[] = []
  const made = new Set<string>()
  const keys = new Map<string, string>()
  const create = (body: string, { id, key = '' }: Post): Buffer => {
    const { name, tag } = JSON.parse(body)
    const isRepeated = isKeyed && key !== '' && keys.get(key) === body
    if (made.has(id) && !isRepeated)
      return buildJsonResponse(400, { error: 409, message: `Plant ${id} exists` })
    made.add(id)
    keys.set(key, body)
    return buildJsonResponse(200, { name, tag })
  }
  const answer: ScriptedResponse = async (socket, { body, headers }) => {
    const { authorization, 'idempotency-key': key } = headers
    const id = /^\{"id":(-?\d+)/.exec(body)?.[1] ?? ''
    const post = { id, key, authorization, index: posts.length }
    posts.push(post)
    const done = await behave?.(post)
    if (done === 'hang') return
    const usual = Buffer.isBuffer(done) ? done : create(body, post)
    if (done === 'lose') socket.resetAndDestroy()
    else socket.write(usual)
  }
  const parameters = isKeyed ? [{ name: 'Idempotency-Key', in: 'header' }] : []
  const description = buildJsonResponse(200, { paths: { '/plants': { post: { parameters } } } })
  const others = { 'GET /openapi.json': [description] }
  const service = await ScriptedServer.listen({
    posts: [answer],
    others,
    openapi: buildResponse(405),
    host,
  })
  const address = `http://${host}:${service.port}`
  // Whoever changes a plant removes its key.
  const changeAll = () => keys.clear()
  return Object.assign(service, { made, created: posts, address, changeAll })
}
