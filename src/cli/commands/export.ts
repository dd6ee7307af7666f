import { statSync } from 'node:fs'
import type { Transform } from 'node:stream'
import { quoteIfNeeded, writeAnswer, writeResult } from '../../output/output.js'
import { progressLine, withProgress } from '../../output/progress.js'
import { plantCount } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { escapeControlCharsInLines } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import type { Block, ReadableStore, SnapshotQuery } from '../../stores/common/store.js'
import { isPartOf, noStoreYet, openExistingStore } from '../../stores/registry.js'
import { formatNames } from '../../transfer/formats/format.js'
import type { Settings } from '../context.js'
import { resolveSettings } from '../context.js'
import { defineCommand, pathOption, queryOptions } from '../define-command.js'
import { flagWords } from '../flag-words.js'

export const exportPlants = defineCommand({
  name: 'export',
  description: 'Write a consistent snapshot of the plants, in ascending order of id. Others can write to the store in the meantime.',
  options: [
    {
      flags: '--format <format>',
      description: 'ndjson, json, csv or tsv; by default from the file extension, otherwise ndjson',
      choices: formatNames,
    },
    pathOption('--out <file>', 'write to this file, replacing it atomically; .gz and .zst are compressed. By default stdout'),
    ...queryOptions,
  ],
  examples: ['plants export > plants.ndjson', 'plants export --out plants.csv.gz'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { out, limit, after, tag, search } = flags
    const path = out === undefined || out === '-' || out === '/dev/stdout' ? undefined : io.resolvePath(out)
    if (path !== undefined && (await isPartOf(settings.store, path)))
      throw new PlantsError('malformed', `${path} is the store itself`, { hint: 'Choose another file with --out FILE' })
    const { compressionOf, formatOfName, toDocument } = await import('../../transfer/export/document.js')
    const { formats } = await import('../../transfer/formats/formats.js')
    const formatName = flags.format ?? formatOfName(path ?? '')
    const format = formats[formatName].write
    const given = { '--format': formatName, '--limit': limit?.toString(), '--after': after?.toString(), '--tag': tag, '--search': search }
    const compression = path === undefined ? undefined : compressionOf(path, `plants export${settings.storeFlag}${flagWords(given)}`)
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      if (!store) await warnOfMissing({ path, out }, settings)
      const { isTerminal } = io.stdout
      const progress = progressLine(io, settings.showsProgress && (path !== undefined || !isTerminal))
      const document = toDocument(snapshotOf(store, { limit, after, tag, search, record: format.record }), format)
      const blocks = withProgress(document, ({ plants }) => plants, progress)
      if (path !== undefined) return await save(blocks, { path, out }, compression, settings, io)
      for await (const { text } of blocks) await writeAnswer(io, isTerminal ? escapeControlCharsInLines(text) : text)
    } finally {
      await store?.close()
    }
  },
})

/** Warns that the default store is missing, so that the export is empty. Throws `unavailable` if that would replace a file. */
async function warnOfMissing({ path, out = '' }: { path: string | undefined; out: string | undefined }, { store, warn }: Settings) {
  if (path === undefined || !statSync(path, { throwIfNoEntry: false })?.isFile()) return warn(noStoreYet(store))
  const message = `There is no store at ${store.name} yet, and an empty export would replace ${quoteIfNeeded(out)}`
  throw new PlantsError('unavailable', message, { hint: 'List the stores with: plants stores list' })
}

async function* snapshotOf(store: ReadableStore | undefined, query: SnapshotQuery): AsyncGenerator<Block> {
  if (store) yield* store.snapshot(query)
}

async function save(
  blocks: AsyncIterable<Block>,
  { path, out = path }: { path: string; out: string | undefined },
  compression: Transform | undefined,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { compressed } = await import('../../transfer/export/document.js')
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
  const sentence = `Exported ${plantCount(plants)} to ${quoteIfNeeded(out)}`
  await writeResult(io, settings, { file: path, plants, bytes }, sentence)
}
