import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { acceptNewPlant, largestId, type NewPlant } from '../../plant/plant.js'
import { readRecord, recordWriter } from '../../plant/records.js'
import { isTimeout, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { urlOf } from '../../platform/network.js'
import { queryText } from '../common/pages.js'
import type { Block, ListQuery, SnapshotQuery } from '../common/store.js'
import { maxRead, readJson } from './classify.js'
import type { Expected, HttpClient } from './client.js'
import { requestTo } from './request.js'
import { ask } from './retry.js'

const ndjson = 'application/x-ndjson'

const pageRows = 1000

export async function* listPages(client: HttpClient, query: ListQuery): AsyncGenerator<NewPlant[]> {
  const check = orderOf(client, query)
  let left = query.limit ?? Infinity
  let path: string | undefined = pathFor({ ...query, limit: Math.min(left, pageRows) })
  while (path !== undefined && left > 0) {
    const { plants, next }: Page = await ask(client, requestTo(client.access, { method: 'GET', path, expected: expectedPage }))
    for (const plant of plants) check(plant)
    if (plants.length === 0 && next !== undefined) throw unusable(client, 'an empty page with a link to the next one')
    const page = plants.slice(0, left)
    if (page.length > 0) yield page
    left -= page.length
    path = next === undefined ? undefined : pathOf(next, client)
  }
}

/** The greatest id, by bisection: a list begins with the first plant after an id. About twice as many requests as it has bits. */
export async function findGreatestId(client: HttpClient): Promise<bigint | undefined> {
  const idAfter = async (after?: bigint) => {
    for await (const [plant] of listPages(client, { after, limit: 1 })) return plant?.id
    return undefined
  }
  let greatest = await idAfter()
  if (greatest === undefined) return undefined
  let end = largestId
  for (let step = 1n; greatest < end; step *= 2n) {
    const half: bigint = (end - greatest) / 2n
    const middle: bigint = greatest + (step < half ? step : half)
    const found = await idAfter(middle)
    if (found === undefined) end = middle
    else greatest = found
  }
  return greatest
}

interface Page {
  plants: NewPlant[]
  next: string | undefined
}

const expectedPage: Expected<Page> = {
  what: 'list of plants',
  maxBody: maxRead,
  read(response) {
    const list = response.status === 200 ? readJson(response) : undefined
    const plants = Array.isArray(list) ? list.map((item) => acceptNewPlant(item)) : undefined
    return plants?.every((plant) => plant !== undefined) ? { plants, next: nextOf(String(response.headers['link'] ?? '')) } : undefined
  },
}

/** The target of a Link header with `rel="next"` (RFC 8288). */
function nextOf(link: string): string | undefined {
  for (const [, target = '', parameters = ''] of link.matchAll(/<([^>]*)>((?:[^,"]|"[^"]*")*)/g))
    if (/;\s*rel\s*=\s*(?:next\b|"(?:[^"]*\s)?next(?:\s[^"]*)?")/i.test(parameters)) return target
  return undefined
}

export async function* readSnapshot(client: HttpClient, query: SnapshotQuery): AsyncGenerator<Block> {
  const request = requestTo(client.access, { method: 'GET', path: pathFor(query), expected: expectedStream, accept: ndjson })
  const stream = await ask(client, request)
  const { 'transfer-encoding': chunked, 'content-length': length, 'content-encoding': coding } = stream.headers
  if (coding !== undefined || (chunked === undefined ? length === undefined : chunked.trim().toLowerCase() !== 'chunked')) {
    stream.destroy()
    throw unusable(client, 'a stream that is compressed or does not mark its end')
  }
  const check = orderOf(client, query)
  const write = recordWriter(query.record)
  let left = query.limit ?? Infinity
  for await (const bytes of blocksOf(client, stream)) {
    if (!isUtf8(bytes)) throw unusable(client, 'a stream that is not UTF-8')
    const lines = bytes.toString('utf8', 0, bytes.length - 1).split('\n')
    left -= lines.length
    if (left < 0) throw unusable(client, 'more plants than requested')
    const texts = lines.map((line) => {
      const plant = readRecord(line)
      if (!plant) throw unusable(client, 'a line that is not a plant')
      check(plant)
      return write(plant)
    })
    yield { text: texts.join('\n'), plants: texts.length }
  }
}

const expectedStream: Expected<IncomingMessage> = { what: 'stream of plants', streamedType: ndjson, read: ({ stream }) => stream }

/** Throws when the stream ends early, and when no line arrives before the timeout. */
async function* blocksOf(client: HttpClient, stream: IncomingMessage): AsyncGenerator<Buffer> {
  const { address, options } = client
  const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
  let rest = new GrowingBuffer()
  const next = async (signal: AbortSignal) => {
    signal.addEventListener('abort', () => stream.destroy(signal.reason), { once: true })
    while (rest.length <= maxRead) {
      const { value: chunk, done } = await chunks.next()
      if (done && rest.length > 0) throw unusable(client, 'a stream that ends in the middle of a line')
      if (done) return undefined
      const end = chunk.lastIndexOf('\n') + 1
      rest.append(end > 0 ? chunk.subarray(0, end) : chunk)
      if (end === 0) continue
      const { bytes } = rest
      rest = new GrowingBuffer()
      rest.append(chunk.subarray(end))
      return bytes
    }
    throw unusable(client, 'a line that is too long')
  }
  try {
    for (;;) {
      const block = await within(options.timeout, [options.clock.signal], next)
      if (!block) return
      yield block
    }
  } catch (error) {
    options.clock.signal.throwIfAborted()
    if (error instanceof PlantsError) throw error
    const ending = isTimeout(error) ? 'sent no complete plant before the timeout' : 'ended its response too early'
    const hint = 'The output is incomplete. Try again'
    throw new PlantsError('unavailable', `${address.name} ${ending}`, { hint, retryable: true, cause: error })
  } finally {
    stream.destroy()
  }
}

function pathFor(query: ListQuery): string {
  const text = queryText(query)
  return text === '' ? '/plants' : `/plants?${text}`
}

/** each plant matches the query, and has a greater id than the one before */
function orderOf(client: HttpClient, { after, tag }: ListQuery): (plant: NewPlant) => void {
  let last = after
  return (plant) => {
    if (last !== undefined && plant.id <= last) throw unusable(client, `plant ${plant.id} after plant ${last}`)
    if (tag !== undefined && plant.tag !== tag) throw unusable(client, `plant ${plant.id}, which has a different tag`)
    last = plant.id
  }
}

function unusable({ address }: HttpClient, what: string): PlantsError {
  return new PlantsError('unusable', `${address.name} answered ${what}`, { hint: 'Is it a Plant Store? Ask the operator of the service' })
}

/** The path of the next page, which must be below the base URL: the token is only for that. */
function pathOf(target: string, client: HttpClient): string {
  const { url } = client.address
  const list = `${url.pathname.replace(/\/$/, '')}/plants`
  const next = urlOf(target, url.origin + list)
  if (next?.origin === url.origin && next.pathname === list) return `/plants${next.search}`
  throw unusable(client, `a next page at another address: ${target.slice(0, 300)}`)
}
