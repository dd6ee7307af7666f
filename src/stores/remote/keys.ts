import { type Connection, NoAnswer } from './exchange.js'

/**
 * Whether a service says that it honours Idempotency-Key: its `{base_url}/openapi.json` lists it as a header parameter of
 * the create. The token is not sent.
 *
 * @returns undefined when that cannot be found out now
 */
export async function honoursKeys(connection: Connection, userAgent: string, signal: AbortSignal): Promise<boolean | undefined> {
  try {
    const { status, body, isWhole } = await connection.send(
      { method: 'GET', path: '/openapi.json', headers: { accept: 'application/json', 'user-agent': userAgent } },
      signal,
    )
    if (status >= 500 || status === 429) return undefined
    return status === 200 && isWhole && listsKey(JSON.parse(body.toString()))
  } catch (error) {
    if (error instanceof NoAnswer) return undefined
    if (error instanceof SyntaxError) return false
    throw error
  }
}

function listsKey(document: unknown): boolean {
  const item = resolve(document, at(document, 'paths', '/plants'))
  const parameters = [at(item, 'parameters'), at(item, 'post', 'parameters')].flatMap((list) => (Array.isArray(list) ? list : []))
  return parameters.map((parameter) => resolve(document, parameter)).some(isKey)
}

function isKey(parameter: unknown): boolean {
  const name = at(parameter, 'name')
  return at(parameter, 'in') === 'header' && typeof name === 'string' && name.toLowerCase() === 'idempotency-key'
}

/** Follows a reference inside the document, one step. */
function resolve(document: unknown, value: unknown): unknown {
  const reference = at(value, '$ref')
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return value
  return at(
    document,
    ...reference
      .slice(2)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
  )
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>(
    (object, key) => (typeof object === 'object' && object !== null && Object.hasOwn(object, key) ? Reflect.get(object, key) : undefined),
    value,
  )
}
