import { statSync } from 'node:fs'
import { quoteIfNeeded, writeAnswer, writeResult } from '../../output/output.js'
import { progressLine, withProgress } from '../../output/progress.js'
import { plantCount } from '../../plant/plant.js'
import { documentIn, type FormatName, formatNames, recordFormatOf } from '../../plant/records.js'
import { PlantsError } from '../../platform/errors.js'
import { escapeControlCharsInLines } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { outputFormats, parseOutput } from '../../platform/values.js'
import type { Block, ReadableStore, SnapshotQuery } from '../../stores/common/store.js'
import { isPartOf, noStoreYet, openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, pathOption, queryOptions, tableLayout, tableOptions } from '../define-command.js'

export const exportPlants = defineCommand({
  name: 'export',
  description:
    'Write a consistent snapshot of the plants, in ascending order of id: in the format of --output, of the name of the file, or else NDJSON. Others can write to the store in the meantime.',
  options: [
    pathOption(
      '--out <file>',
      'write to this file, replacing it atomically; .xlsx is an Excel workbook, .gz and .zst are compressed. By default stdout',
    ),
    ...queryOptions,
    ...tableOptions,
  ],
  formats: formatNames,
  examples: [
    'plants export > plants.ndjson',
    'plants export --output csv --tag shade',
    'plants export --out plants.xlsx',
  ],
  async run({ flags, formats }, io) {
    if (flags.output !== undefined) parseOutput('--output', flags.output, formats)
    const settings = await resolveSettings(flags, io, { formats: outputFormats })
    const { out, limit, after, tag, search } = flags
    const path = out === undefined || /^(-|\/dev\/stdout)$/.test(out) ? undefined : io.resolvePath(out)
    if (path !== undefined && (await isPartOf(settings.store, path)))
      throw new PlantsError('malformed', `${path} is the store itself`, { hint: 'Choose another file with --out FILE' })
    const { encoderFor, formatOfName } = await import('../../transfer/export/out-file.js')
    const format = path !== undefined && flags.output === undefined ? formatOfName(path) : formatOf(settings)
    const layout = tableLayout(flags, format)
    const encode = await encoderFor(path, format)
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      if (!store) await warnOfMissing(settings, path, out)
      const { isTerminal } = io.stdout
      const progress = progressLine(io, settings.showsProgress && (path !== undefined || !isTerminal))
      const query = { limit, after, tag, search, record: recordFormatOf(format, layout) }
      const blocks = withProgress(
        documentOf(store, query, documentIn(format, undefined, layout)),
        ({ plants }) => plants,
        progress,
      )
      if (path !== undefined) return await save(blocks, { path, out }, encode, settings, io)
      for await (const { text } of blocks) await writeAnswer(io, isTerminal ? escapeControlCharsInLines(text) : text)
    } finally {
      await store?.close()
    }
  },
})

function formatOf({ output }: Settings): FormatName {
  return output === 'text' ? 'ndjson' : output
}

/** A missing default store exports nothing. Throws `unavailable` if that would replace a file. */
async function warnOfMissing({ store, warn }: Settings, path: string | undefined, out = '') {
  if (path === undefined || !statSync(path, { throwIfNoEntry: false })?.isFile()) return warn(noStoreYet(store))
  const message = `There is no store at ${store.name} yet, and an empty export would replace ${quoteIfNeeded(out)}`
  throw new PlantsError('unavailable', message, { hint: 'List the stores with: plants stores list' })
}

async function* documentOf(
  store: ReadableStore | undefined,
  query: SnapshotQuery,
  { join, end }: ReturnType<typeof documentIn>,
): AsyncGenerator<Block> {
  for await (const { text, plants } of store?.snapshot(query) ?? []) yield { text: join(text), plants }
  yield { text: end(), plants: 0 }
}

async function save(
  blocks: AsyncIterable<Block>,
  { path, out = path }: { path: string; out: string | undefined },
  encode: (texts: AsyncIterable<string>) => AsyncIterable<Uint8Array>,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { writeOut } = await import('../../transfer/export/out-file.js')
  let plants = 0
  async function* texts(): AsyncGenerator<string> {
    for await (const block of blocks) {
      io.signal.throwIfAborted()
      yield block.text
      plants += block.plants
    }
  }
  const bytes = await writeOut(path, io, encode(texts()))
  const sentence = `Exported ${plantCount(plants)} to ${quoteIfNeeded(out)}`
  const isTable = settings.output === 'csv' || settings.output === 'tsv'
  const output = isTable ? (io.stdout.isTerminal ? 'text' : 'json') : settings.output
  await writeResult(io, { ...settings, output }, { file: path, plants, bytes }, sentence)
}
