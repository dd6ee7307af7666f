import { readable, warn, writeAnswer, writeResult } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { visibleLines } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseChoice, parseText } from '../../platform/values.js'
import { isPartOf, openExistingStore } from '../../stores/registry.js'
import type { Block } from '../../stores/store.js'
import {
  type Compression,
  compress,
  compressionOf,
  formatOfName,
  type Put,
  toDocument,
  unknownEnd,
} from '../../transfer/export/document.js'
import { writeOut } from '../../transfer/export/out-file.js'
import { formatNames } from '../../transfer/formats/format.js'
import { formats } from '../../transfer/formats/formats.js'
import { resolveSettings } from '../context.js'
import { parseQuery } from '../flags.js'
import type { Settings } from '../settings.js'
import type { ExportFlags } from './copies-spec.js'

export async function exportPlants(flags: ExportFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const query = parseQuery(flags)
  const path = fileOf(flags, io)
  const format = formats[flags.format === undefined ? formatOfName(path ?? '') : parseChoice('--format', flags.format, formatNames)].write
  const compression = path === undefined ? undefined : compressionOf(path)
  const store = await openExistingStore(settings.store, settings.opening)
  try {
    if (!store) throw noStore(settings)
    const blocks = toDocument(store.snapshot({ ...query, record: format.record, between: format.between }), format)
    if (path === undefined) await print(blocks, io)
    else await save(blocks, { path, isNamed: flags.format !== undefined, compression, settings, io })
  } finally {
    await store?.close()
  }
}

/** The path of the file to write; undefined for stdout, which has other names too. */
function fileOf({ out }: ExportFlags, io: Io): string | undefined {
  return out === undefined || out === '-' || out === '/dev/stdout' ? undefined : io.resolvePath(parseText('--out', out))
}

/** An end that is no format may be a slip, and one that packs would be believed. */
async function warnOfName(path: string, settings: Settings, io: Io): Promise<void> {
  const end = unknownEnd(path)
  if (end !== undefined) await warn(io, `${end} is no format that is known here, so it becomes ndjson; --format NAME says which`, settings)
}

/** Nothing is exported: an empty file could take the place of one that is needed. */
function noStore({ store }: Settings): PlantsError {
  return new PlantsError('unavailable', `There is no store at ${store.name} yet`, {
    hint: 'Choose another with --store. plants create makes this one',
  })
}

async function print(blocks: AsyncIterable<Block>, io: Io): Promise<void> {
  const { isTerminal } = io.stdout
  for await (const { text } of blocks) await writeAnswer(io, isTerminal ? visibleLines(text) : text, 'Run it again')
}

interface Saving {
  path: string
  /** whether the format was chosen, and not by the path */
  isNamed: boolean
  compression: Compression | undefined
  settings: Settings
  io: Io
}

async function save(blocks: AsyncIterable<Block>, { path, isNamed, compression, settings, io }: Saving): Promise<void> {
  if (await isPartOf(settings.store, path))
    throw new PlantsError('malformed', `${path} is the store itself`, { hint: 'Choose another place with --out FILE' })
  if (!isNamed) await warnOfName(path, settings, io)
  let plants = 0
  let bytes = 0
  const fill = async (put: Put) => {
    for await (const block of blocks) {
      io.signal.throwIfAborted()
      await put(Buffer.from(block.text))
      plants += block.plants
    }
  }
  await writeOut(path, io, async (put) => {
    const count: Put = (chunk) => {
      bytes += chunk.length
      return put(chunk)
    }
    await (compression === undefined ? fill(count) : compress(compression, count, fill))
  })
  await writeResult(
    io,
    settings,
    { file: path, plants, bytes },
    `Exported ${plants} ${plants === 1 ? 'plant' : 'plants'} to ${readable(path)}`,
  )
}
