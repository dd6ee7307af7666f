import { quoteIfNeeded, warn, writeAnswer, writeResult } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { escapeControlCharsInLines } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseText } from '../../platform/values.js'
import { isPartOf, openExistingStore } from '../../stores/registry.js'
import type { Block } from '../../stores/store.js'
import type { Compression } from '../../transfer/export/document.js'
import { formatNames } from '../../transfer/formats/format.js'
import { resolveSettings } from '../context.js'
import { defineCommand, queryOptions } from '../define-command.js'
import type { Settings } from '../settings.js'

export const exportPlants = defineCommand({
  name: 'export',
  description: 'Write the plants as they are at one moment, in the order of their ids, while others go on writing.',
  options: [
    {
      flags: '--format <format>',
      description: 'ndjson, json, csv or tsv; by default what the name of the file says, else ndjson',
      choices: formatNames,
    },
    {
      flags: '--out <file>',
      description: 'replace this file, as a whole; .gz and .zst are compressed. By default stdout',
      values: 'file',
      parse: parseText,
    },
    ...queryOptions,
  ],
  examples: ['plants export > plants.ndjson', 'plants export --out plants.csv.gz'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { out, limit, after, tag } = flags
    const path = out === undefined || out === '-' || out === '/dev/stdout' ? undefined : io.resolvePath(out)
    const { compressionOf, formatOfName, toDocument } = await import('../../transfer/export/document.js')
    const { formats } = await import('../../transfer/formats/formats.js')
    const format = formats[flags.format ?? formatOfName(path ?? '')].write
    const compression = path === undefined ? undefined : compressionOf(path)
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      if (!store) throw noStore(settings)
      const blocks = toDocument(store.snapshot({ limit, after, tag, record: format.record, between: format.between }), format)
      if (path === undefined) await print(blocks, io)
      else await save(blocks, { path, isNamed: flags.format !== undefined, compression, settings, io })
    } finally {
      await store?.close()
    }
  },
})

/** Nothing is exported: an empty file could take the place of one that is needed. */
function noStore({ store }: Settings): PlantsError {
  return new PlantsError('unavailable', `There is no store at ${store.name} yet`, {
    hint: 'Choose another with --store. plants create makes this one',
  })
}

async function print(blocks: AsyncIterable<Block>, io: Io): Promise<void> {
  const { isTerminal } = io.stdout
  for await (const { text } of blocks) await writeAnswer(io, isTerminal ? escapeControlCharsInLines(text) : text, 'Run it again')
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
  const { compressed, unknownEnd } = await import('../../transfer/export/document.js')
  const end = isNamed ? undefined : unknownEnd(path) // a slip, such as .gzip, would be taken for a format
  if (end !== undefined) await warn(io, `${end} is no format that is known here, so it becomes ndjson; --format NAME says which`, settings)
  const { writeOut } = await import('../../transfer/export/out-file.js')
  let plants = 0
  async function* encode(): AsyncGenerator<Uint8Array> {
    for await (const block of blocks) {
      io.signal.throwIfAborted()
      yield Buffer.from(block.text)
      plants += block.plants
    }
  }
  const bytes = await writeOut(path, io, compressed(encode(), compression))
  await writeResult(
    io,
    settings,
    { file: path, plants, bytes },
    `Exported ${plants} ${plants === 1 ? 'plant' : 'plants'} to ${quoteIfNeeded(path)}`,
  )
}
