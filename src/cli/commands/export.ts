import { statSync } from 'node:fs'
import { quoteIfNeeded, writeResult, writeRows } from '../../output/output.js'
import { progressLine, withProgress } from '../../output/progress.js'
import { type NewPlant, plantCount } from '../../plant/plant.js'
import { formatNames } from '../../plant/records.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { outputFormats, parseOutput, parseText } from '../../platform/values.js'
import { isPartOf, noStoreYet, openExistingStore } from '../../stores/registry.js'
import type { PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { addQuery, type QueryOptions } from '../options.js'
import type { Settings } from '../settings.js'
import { assertOrder } from './list.js'

export interface ExportOptions extends QueryOptions {
  out?: string
}

export function defineExport(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Write a consistent snapshot of the plants, in ascending order of id: in the format of --output, of the name of the file, or else NDJSON. Others can write to the store in the meantime.',
    )
    .value(
      '--out <file>',
      'write to this file, replacing it atomically; .xlsx is an Excel workbook, .gz is compressed. By default stdout',
      parseText,
    )
  addQuery(command)
    .addExamples(
      'plants export > plants.ndjson',
      'plants export --output csv --tag shade',
      'plants export --out plants.xlsx',
    )
    .handler((options: ExportOptions) => exportPlants(options, io))
}

export async function exportPlants(options: ExportOptions, io: Io): Promise<void> {
  if (options.output !== undefined) parseOutput('--output', options.output, formatNames)
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const { out, limit, after, tag, search, sort, desc } = options
  const path = out === undefined || /^(-|\/dev\/stdout)$/.test(out) ? undefined : io.resolvePath(out)
  if (path !== undefined && (await isPartOf(settings.store, path)))
    throw new PlantsError('malformed', `${path} is the store itself`, { hint: 'Choose another file with --out FILE' })
  assertOrder(options, settings)
  const { encoderFor, formatOfName } = await import('../../transfer/export/out-file.js')
  const output = settings.output === 'text' ? 'ndjson' : settings.output
  const format = path !== undefined && options.output === undefined ? formatOfName(path) : output
  const store = await openExistingStore(settings.store, settings.storeOptions)
  try {
    if (!store) await warnOfMissing(settings, path, out)
    const progress = progressLine(io, settings.showsProgress && (path !== undefined || !io.stdout.isTerminal))
    const query = { limit, after, tag, search, sort, desc }
    const pages = withProgress(store?.read(query) ?? noPages(), (page) => page.length, progress)
    if (path === undefined) await writeRows(io, { ...settings, output }, pages, {})
    else await save(pages, { path, out }, encoderFor(path, format), settings, io)
  } finally {
    await store?.close()
  }
}

async function* noPages(): AsyncGenerator<NewPlant[]> {}

/** A missing default store exports nothing. Throws `unavailable` if that would replace a file. */
async function warnOfMissing({ store, warn }: Settings, path: string | undefined, out = '') {
  if (path === undefined || !statSync(path, { throwIfNoEntry: false })?.isFile()) return warn(noStoreYet(store))
  const message = `There is no store at ${store.name} yet, and an empty export would replace ${quoteIfNeeded(out)}`
  throw new PlantsError('unavailable', message, { hint: 'List the stores with: plants stores list' })
}

async function save(
  pages: AsyncIterable<NewPlant[]>,
  { path, out = path }: { path: string; out: string | undefined },
  encode: (pages: AsyncIterable<NewPlant[]>) => AsyncIterable<Uint8Array>,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { writeOut } = await import('../../transfer/export/out-file.js')
  let plants = 0
  async function* counted(): AsyncGenerator<NewPlant[]> {
    for await (const page of pages) {
      io.signal.throwIfAborted()
      yield page
      plants += page.length
    }
  }
  const bytes = await writeOut(path, io, encode(counted()))
  const sentence = `Exported ${plantCount(plants)} to ${quoteIfNeeded(out)}`
  const isTable = settings.output === 'csv' || settings.output === 'tsv'
  const output = isTable ? (io.stdout.isTerminal ? 'text' : 'json') : settings.output
  await writeResult(io, { ...settings, output }, { file: path, plants, bytes }, sentence)
}
