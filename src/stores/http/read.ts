import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { toJson } from '../../plant/exact-json.js'
import { acceptNewPlant, largestId, type NewPlant } from '../../plant/plant.js'
import { readRecord, recordWriter } from '../../plant/records.js'
import { delayOf, isTimeout, timeIsOver } from '../../platform/clock.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { urlOf } from '../../platform/network.js'
import { pageRows, queryText } from '../common/pages.js'
import type { Block, CountByQuery, ListQuery, SnapshotQuery } from '../common/store.js'
import { basePathOf, type Expected, type HttpClient } from './http-client.js'
import { maxRead, readJson, requestTo } from './plant-request.js'
import { ask } from './retry.js'

const ndjson = 'application/x-ndjson'

export async function* listPages(client: HttpClient, query: ListQuery): AsyncGenerator<NewPlant[]> {
  const check = orderOf(client, query)
  const requestFor = (path: string) => requestTo(client.access, { method: 'GET', path, expected: expectedPage })
  let left = query.limit ?? Infinity
  let path: string | undefined = pathFor({ ...query, limit: Math.min(left, pageRows) })
  while (path !== undefined && left > 0) {
    const { plants, next }: Page = await ask(client, requestFor(path))
    for (const plant of plants) check(plant)
    if (plants.length === 0 && next !== undefined) throw unusable(client, 'an empty page with a link to the next one')
    const page = plants.slice(0, left)
    if (page.length > 0) yield page
    left -= page.length
    path = next === undefined ? undefined : pathOf(next, client)
  }
}

/** Bisects, with about twice as many requests as the id has bits. */
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
    return plants?.every((plant) => plant !== undefined)
      ? { plants, next: nextOf(String(response.headers['link'] ?? '')) }
      : undefined
  },
}

/** The target of a Link header with `rel="next"` (RFC 8288). */
function nextOf(link: string): string | undefined {
  return /<(?<target>[^>]*)>[^,]*;\s*rel\s*=\s*"?next\b/i.exec(link)?.groups?.['target']
}

export async function* readSnapshot(client: HttpClient, query: SnapshotQuery): AsyncGenerator<Block> {
  const path = pathFor(query)
  const request = requestTo(client.access, { method: 'GET', path, expected: expectedStream, accept: ndjson })
  const stream = await ask(client, request)
  const { 'transfer-encoding': chunked, 'content-length': length, 'content-encoding': coding } = stream.headers
  const isEndless = chunked === undefined ? length === undefined : chunked.trim().toLowerCase() !== 'chunked'
  if (coding !== undefined || isEndless) {
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

/** Keeps the different texts in memory. */
export async function* countTexts(
  client: HttpClient,
  { by, min = 1, limit, ...query }: CountByQuery,
): AsyncGenerator<Block> {
  const counts = new Map<string | undefined, number>()
  let size = 0
  for await (const { text } of readSnapshot(client, { ...query, record: 'json' })) {
    for (const line of text.split('\n')) {
      const value = readRecord(line)?.[by]
      const count = counts.get(value) ?? 0
      if (count === 0) size += (value?.length ?? 0) + 100
      if (size > maxTexts) {
        const message = `The plants of ${client.address.name} have too many different texts as their ${by} to count them here`
        const hint = 'Count some of them, with --tag or --search, or run the command on the host of the service'
        throw malformed(message, hint)
      }
      counts.set(value, count + 1)
    }
  }
  const frequent = [...counts].filter(([, count]) => count >= min).toSorted(byFrequency)
  for (const rest = frequent.slice(0, limit); rest.length > 0; ) {
    const lines = rest.splice(0, pageRows).map(([value, count]) => toJson({ [by]: value, count }))
    yield { text: lines.join('\n'), plants: lines.length }
  }
}

type TextCount = [text: string | undefined, count: number]

/** In the order of Unicode, which UTF-8 has, and UTF-16 where one of two texts has nothing from its surrogates on. */
function byFrequency([one, oneCount]: TextCount, [other, otherCount]: TextCount): number {
  if (oneCount !== otherCount) return otherCount - oneCount
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1
  if (late.test(one) && late.test(other)) return Buffer.compare(Buffer.from(one), Buffer.from(other))
  return one < other ? -1 : 1
}

const late = /[\ud800-\uffff]/

/** in UTF-16 code units, and 100 more for each text */
const maxTexts = 200_000_000

const expectedStream: Expected<IncomingMessage> = {
  what: 'stream of plants',
  streamedType: ndjson,
  read: ({ stream }) => stream,
}

async function* blocksOf(client: HttpClient, stream: IncomingMessage): AsyncGenerator<Buffer> {
  const { address, options } = client
  const { signal } = options.clock
  const abort = () => stream.destroy(signal.reason)
  signal.addEventListener('abort', abort)
  const startTimer = () => setTimeout(() => stream.destroy(timeIsOver()), delayOf(options.timeout))
  let timer = startTimer()
  let rest = new GrowingBuffer()
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf('\n') + 1
      rest.append(end > 0 ? chunk.subarray(0, end) : chunk)
      if (rest.length > maxRead) throw unusable(client, 'a line that is too long')
      if (end === 0) continue
      const { bytes } = rest
      rest = new GrowingBuffer()
      rest.append(chunk.subarray(end))
      clearTimeout(timer) // a slow reader of the output is not a slow service
      yield bytes
      timer = startTimer()
    }
    if (rest.length > 0) throw unusable(client, 'a stream that ends in the middle of a line')
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof PlantsError) throw error
    const ending = isTimeout(error) ? 'sent no complete plant before the timeout' : 'ended its response too early'
    const hint = 'The output is incomplete. Try again'
    throw new PlantsError('unavailable', `${address.name} ${ending}`, { hint, retryable: true, cause: error })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    stream.destroy()
  }
}

function pathFor(query: ListQuery): string {
  const text = queryText(query)
  return text === '' ? '/plants' : `/plants?${text}`
}

function orderOf(client: HttpClient, { after, tag }: ListQuery): (plant: NewPlant) => void {
  let last = after
  return (plant) => {
    if (last !== undefined && plant.id <= last) throw unusable(client, `plant ${plant.id} after plant ${last}`)
    if (tag !== undefined && plant.tag !== (tag === false ? undefined : tag))
      throw unusable(client, `plant ${plant.id}, which has ${tag === false ? 'a' : 'a different'} tag`)
    last = plant.id
  }
}

function unusable({ address }: HttpClient, what: string): PlantsError {
  return new PlantsError('unusable', `${address.name} answered ${what}`, {
    hint: 'Is it a Plant Store? Ask the operator of the service',
  })
}

/** The next page must be below the base URL: the token is only for that. */
function pathOf(target: string, client: HttpClient): string {
  const { url } = client.address
  const list = `${basePathOf(url)}/plants`
  const next = urlOf(target, url.origin + list)
  if (next?.origin === url.origin && next.pathname === list) return `/plants${next.search}`
  throw unusable(client, `a next page at another address: ${target.slice(0, 300)}`)
}
