import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { parseJson } from '../../plant/exact-json.js'
import type { TextName } from '../../plant/fields.js'
import type { NewPlant } from '../../plant/plant.js'
import { delayOf, isTimeout, timeIsOver } from '../../platform/clock.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { urlOf } from '../../platform/network.js'
import { must } from '../../platform/values.js'
import { pageRows, queryText } from '../common/pages.js'
import type { ReadQuery, TextCount } from '../common/store.js'
import { basePathOf, type Expected, type HttpClient } from './http-client.js'
import { maxRead, readJson, requestTo, storedPlantIn } from './plant-request.js'
import { ask } from './retry.js'

const ndjson = 'application/x-ndjson'

export async function* listPages(client: HttpClient, query: ReadQuery): AsyncGenerator<NewPlant[]> {
  let check = orderOf(client, query)
  let left = query.limit ?? Infinity
  // Two plants show that they descend.
  let path: string | undefined = pathFor({ ...query, limit: Math.min(Math.max(left, query.desc ? 2 : 1), pageRows) })
  for (let tries = query.desc ? 2 : 0; path !== undefined && left > 0; ) {
    const { plants, next }: Page = await pageAt(client, path)
    for (const plant of plants) check(plant)
    if (plants.length === 0 && next !== undefined) throw unusable(client, 'an empty page with a link to the next one')
    if (tries > 0 && plants.length === 1 && (await isBelowAnother(client, query, must(plants[0]).id))) {
      tries -= 1
      if (tries === 0) throw ascending(client)
      check = orderOf(client, query) // or the other one was created since
      continue
    }
    tries = 0
    const page = plants.slice(0, left)
    if (page.length > 0) yield page
    left -= page.length
    path = next === undefined ? undefined : pathOf(next, client)
  }
}

async function isBelowAnother(client: HttpClient, query: ReadQuery, id: bigint): Promise<boolean> {
  if (query.after !== undefined) return false
  const { plants } = await pageAt(client, pathFor({ ...query, desc: false, after: id, limit: 1 }))
  return plants.length > 0
}

function pageAt(client: HttpClient, path: string): Promise<Page> {
  return ask(client, requestTo(client.access, { method: 'GET', path, expected: expectedPage }))
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
    const plants = Array.isArray(list) ? list.map((item) => storedPlantIn(item)) : undefined
    return plants?.every((plant) => plant !== undefined)
      ? { plants, next: nextOf(String(response.headers['link'] ?? '')) }
      : undefined
  },
}

/** The target of a Link header with `rel="next"` (RFC 8288). */
function nextOf(link: string): string | undefined {
  return /<(?<target>[^>]*)>[^,]*;\s*rel\s*=\s*"?next\b/i.exec(link)?.groups?.['target']
}

/** One consistent snapshot. */
export async function* readStream(client: HttpClient, query: ReadQuery): AsyncGenerator<NewPlant[]> {
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

/** Keeps the different texts in memory. */
export async function* countTexts(
  client: HttpClient,
  by: TextName,
  pages: AsyncIterable<NewPlant[]>,
): AsyncGenerator<TextCount[]> {
  const counts = new Map<string | undefined, number>()
  let size = 0
  for await (const plants of pages) {
    for (const { [by]: text } of plants) {
      const count = counts.get(text) ?? 0
      if (count === 0) size += (text?.length ?? 0) + 100
      if (size > maxTexts) {
        const message = `The plants of ${client.address.name} have too many different texts as their ${by} to count them here`
        const hint = 'Count some of them, with --tag or --search, or run the command on the host of the service'
        throw malformed(message, hint)
      }
      counts.set(text, count + 1)
    }
  }
  for (const rest = [...counts].toSorted(byFrequency); rest.length > 0; )
    yield rest.splice(0, pageRows).map(([text, count]) => ({ text, count: BigInt(count) }))
}

type Counted = [text: string | undefined, count: number]

/** In the order of Unicode, which UTF-8 has, and UTF-16 where one of two texts has nothing from its surrogates on. */
function byFrequency([one, oneCount]: Counted, [other, otherCount]: Counted): number {
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

function pathFor(query: ReadQuery): string {
  const text = queryText(query)
  return text === '' ? '/plants' : `/plants?${text}`
}

function orderOf(client: HttpClient, { after, desc = false, tag }: ReadQuery): (plant: NewPlant) => void {
  let last = after
  return (plant) => {
    if (last !== undefined && desc && plant.id > last) throw ascending(client)
    if (last !== undefined && (desc ? plant.id >= last : plant.id <= last))
      throw unusable(client, `plant ${plant.id} after plant ${last}`)
    if (tag !== undefined && plant.tag !== (tag === false ? undefined : tag))
      throw unusable(client, `plant ${plant.id}, which has ${tag === false ? 'a' : 'a different'} tag`)
    last = plant.id
  }
}

/** Of a service that ignores `order=desc`. */
function ascending({ address }: HttpClient): PlantsError {
  return malformed(`${address.name} cannot list plants in descending order`, 'Name the id, or leave out --desc')
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
