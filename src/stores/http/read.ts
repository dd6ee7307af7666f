import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { addAbortSignal } from 'node:stream'
import { parseJson } from '../../plant/exact-json.js'
import type { StoredPlant, TextName } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { wholeLines } from '../../platform/lines.js'
import { isTimeout, timeIsOver } from '../../platform/runtime.js'
import { urlOf } from '../../platform/urls.js'
import { pageRows, queryText, type ReadQuery, type TextCount } from '../common/query.js'
import type { Expected, HttpClient } from './http-client.js'
import { maxRead, readJson, storedPlantIn } from './plant-request.js'
import { ask } from './requests.js'

const ndjson = 'application/x-ndjson'

export async function* listPages(
  client: HttpClient,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const check = orderOf(client, query)
  let left = query.limit ?? Infinity
  let page = await firstPage(client, query)
  for (;;) {
    const { plants, next } = page
    for (const plant of plants) check(plant)
    if (plants.length > 0) yield plants.slice(0, left)
    left -= plants.length
    if (next === undefined || left <= 0) return
    if (plants.length === 0) throw unusable(client, 'an empty page with a link to the next one')
    page = await pageAt(client, next)
  }
}

/** @throws {PlantsError} if the service ignores `order=desc`: then another plant is above the only one of a page */
async function firstPage(client: HttpClient, query: ReadQuery): Promise<Page> {
  const limit = Math.min(Math.max(query.limit ?? pageRows, query.desc ? 2 : 1), pageRows)
  const path = pathFor({ ...query, limit })
  const page = await pageAt(client, path)
  const [plant, other] = page.plants
  if (!query.desc || query.after !== undefined || !plant || other) return page
  const above = await pageAt(client, pathFor({ ...query, desc: false, after: plant.id, limit: 1 }))
  if (above.plants.length === 0) return page
  const again = await pageAt(client, path) // with a plant that was created since
  if (again.plants.length < 2) throw ascending(client)
  return again
}

function pageAt(client: HttpClient, path: string): Promise<Page> {
  return ask(client, { method: 'GET', path, expected: expectedPage })
}

interface Page {
  plants: StoredPlant[]
  /** Path of the next page. */
  next: string | undefined
}

export const expectedPage: Expected<Page> = {
  what: 'list of plants',
  maxBody: maxRead,
  read(response) {
    const list = readJson(response)
    const plants = Array.isArray(list) ? list.map((item) => storedPlantIn(item)) : undefined
    const next = nextOf(String(response.headers['link'] ?? ''))
    return plants?.every((plant) => plant !== undefined) ? { plants, next } : undefined
  },
}

/** Of a Link header with `rel="next"` (RFC 8288), only the query: the token is for the base URL alone. */
function nextOf(link: string): string | undefined {
  const target = /<(?<target>[^>]*)>[^,]*;\s*rel\s*=\s*"?next\b/i.exec(link)?.groups?.['target']
  return target === undefined
    ? undefined
    : `/plants${urlOf(target, 'http://localhost')?.search ?? ''}`
}

/** One consistent snapshot. */
export async function* readStream(
  client: HttpClient,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const expected: Expected<IncomingMessage> = {
    what: 'stream of plants',
    streamedType: ndjson,
    read: ({ stream }) => stream,
  }
  const stream = await ask(client, {
    method: 'GET',
    path: pathFor(query),
    headers: { accept: ndjson },
    expected,
  })
  const { headers } = stream
  const hasEnd =
    headers['content-length'] !== undefined || /^chunked$/i.test(headers['transfer-encoding'] ?? '')
  if (headers['content-encoding'] !== undefined || !hasEnd) {
    stream.destroy()
    throw unusable(client, 'a stream that is compressed or does not mark its end')
  }
  const check = orderOf(client, query)
  let left = query.limit ?? Infinity
  for await (const bytes of blocksOf(client, stream)) {
    if (!isUtf8(bytes)) throw unusable(client, 'a stream that is not UTF-8')
    const lines = bytes.toString('utf8', 0, bytes.length - 1).split('\n')
    left -= lines.length
    if (left < 0) throw unusable(client, 'more plants than requested')
    yield lines.map((line) => {
      const parsed = parseJson(line)
      const plant = 'value' in parsed ? storedPlantIn(parsed.value) : undefined
      if (!plant) throw unusable(client, 'a line that is not a plant')
      check(plant)
      return plant
    })
  }
}

/** Yields blocks of complete lines. */
async function* blocksOf(client: HttpClient, stream: IncomingMessage): AsyncGenerator<Buffer> {
  const { runtime, timeout } = client.options
  const startTimer = () => setTimeout(() => stream.destroy(timeIsOver()), timeout)
  const tooLong = () => unusable(client, 'a line that is too long')
  let timer = startTimer()
  try {
    for await (const bytes of wholeLines(addAbortSignal(runtime.handleSignals(), stream), {
      max: maxRead,
      tooLong,
    })) {
      if (bytes.at(-1) !== lineFeed)
        throw unusable(client, 'a stream that ends in the middle of a line')
      clearTimeout(timer) // a slow reader of the output is not a slow service
      yield bytes
      timer = startTimer()
    }
  } catch (error) {
    runtime.handleSignals().throwIfAborted()
    if (error instanceof PlantsError) throw error
    const ending = isTimeout(error)
      ? 'sent no complete plant before the timeout'
      : 'ended its response too early'
    const hint = 'The output is incomplete. Try again'
    throw new PlantsError('unavailable', `${client.address.name} ${ending}`, { hint, cause: error })
  } finally {
    clearTimeout(timer)
  }
}

const lineFeed = 0x0a

/** Keeps the different texts in memory. */
export async function* countTexts(
  { address }: HttpClient,
  by: TextName,
  pages: AsyncIterable<StoredPlant[]>,
): AsyncGenerator<TextCount[]> {
  const counts = new Map<string | undefined, number>()
  let size = 0
  for await (const plants of pages) {
    for (const { [by]: text } of plants) {
      const count = counts.get(text) ?? 0
      if (count === 0) size += (text?.length ?? 0) + 100
      if (size > maxTexts) {
        const message = `The plants of ${address.name} have too many different texts as their ${by} to count them here`
        throw usageError(
          message,
          'Count some of them, with --tag or --search, or run the command on the host of the service',
        )
      }
      counts.set(text, count + 1)
    }
  }
  const { foldText } = await import('../common/search.js') // not for each command at a service
  const sorted = [...counts].map(([text, count]) => ({
    text,
    count,
    key: Buffer.from(foldText(text ?? '')),
  }))
  const isAbsent = ({ text }: { text: string | undefined }) => Number(text === undefined)
  const compareExactly = (a = '', b = '') => Buffer.from(a).compare(Buffer.from(b))
  sorted.sort(
    (a, b) =>
      b.count - a.count ||
      isAbsent(a) - isAbsent(b) ||
      a.key.compare(b.key) ||
      compareExactly(a.text, b.text),
  )
  while (sorted.length > 0)
    yield sorted.splice(0, pageRows).map(({ text, count }) => ({ text, count: BigInt(count) }))
}

/** In UTF-16 code units, and 100 more for each text. */
const maxTexts = 200_000_000

function pathFor(query: ReadQuery): string {
  const text = queryText(query)
  return text === '' ? '/plants' : `/plants?${text}`
}

function orderOf(
  client: HttpClient,
  { after, desc = false, tag }: ReadQuery,
): (plant: StoredPlant) => void {
  let last = after
  return (plant) => {
    if (last !== undefined && desc && plant.id > last) throw ascending(client)
    if (last !== undefined && (desc ? plant.id >= last : plant.id <= last))
      throw unusable(client, `plant ${plant.id} after plant ${last}`)
    if (tag !== undefined && plant.tag !== (tag === false ? undefined : tag))
      throw unusable(
        client,
        `plant ${plant.id}, which has ${tag === false ? 'a' : 'a different'} tag`,
      )
    last = plant.id
  }
}

/** The error for a service that ignores `order=desc`. */
function ascending({ address }: HttpClient): PlantsError {
  return usageError(
    `${address.name} cannot list plants in descending order`,
    'Give a number instead of next, or leave out --desc',
  )
}

function unusable({ address }: HttpClient, what: string): PlantsError {
  return new PlantsError('unusable', `${address.name} answered ${what}`, {
    hint: 'Is it a Plant Store? Ask the operator of the service',
  })
}
