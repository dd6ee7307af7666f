import { outputFormats, parseOutput, parseText } from '../../config/option-values.js'
import { quoteIfNeeded } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { Progress, withProgress } from '../../output/progress.js'
import { plantCount, type StoredPlant } from '../../plant/plant.js'
import { type FileFormat, type FormatName, formatNames } from '../../plant/records.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import type { OutFile } from '../../transfer/export/out-file.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addQuery, type QueryOptions } from '../options.js'
import { assertOrder } from './list.js'

export interface ExportOptions extends QueryOptions {
  yes?: true
}

export function defineExport(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Write a consistent snapshot of the plants, in ascending order of id: to a file, in the format of its name, or to stdout, as NDJSON. Others can write to the store in the meantime.',
    )
    .argument(
      '[file]',
      'file to write: .ndjson, .json, .csv, .tsv or .xlsx (an Excel workbook); with .gz, all but the last are compressed',
      (text) => parseText('file', text),
    )
    .option('-y, --yes', 'replace a file that exists')
    .alsoAs('--force', '--yes')
  addQuery(command)
    .addExamples(
      'plants export > plants.ndjson',
      'plants export --output csv --tag shade',
      'plants export plants.xlsx',
    )
    .handler((options: ExportOptions, name?: string) => exportPlants(name, options, io))
}

export async function exportPlants(name = '-', options: ExportOptions, io: Io): Promise<void> {
  if (options.output !== undefined) parseOutput('--output', options.output, formatNames)
  const context = await CommandContext.from(options, io, outputFormats)
  const { reporter } = context
  assertOrder(options, context.address)
  const target = /^(-|\/dev\/stdout)$/.test(name)
    ? undefined
    : await targetNamed(name, options, context)
  const store = await context.openStore()
  try {
    if (!store) await warnOfMissing(context, target)
    const progress = new Progress(
      io,
      reporter.showsProgress && (target !== undefined || !io.stdout.isTerminal),
    )
    const { limit, after, tag, search, sort, desc } = options
    const query = { limit, after, tag, search, sort, desc }
    const pages = withProgress(store?.read(query) ?? noPages(), progress)
    if (target) await save(pages, target, context)
    else await new Printer<StoredPlant>(io, outputOf(context)).all(pages)
  } finally {
    await store?.close()
  }
}

async function* noPages(): AsyncGenerator<StoredPlant[]> {}

interface Target extends OutFile {
  /** As the user typed it. */
  name: string
  format: FileFormat
  encode(pages: AsyncIterable<StoredPlant[]>): AsyncIterable<Uint8Array>
  mayReplace: boolean
}

/** Asks before an existing file is replaced, and throws without the consent. */
async function targetNamed(
  name: string,
  { output, yes }: ExportOptions,
  context: CommandContext,
): Promise<Target> {
  const path = context.io.resolvePath(name)
  if (await context.isStoreFile(path))
    throw usageError(`${path} is the store itself`, 'Choose another file')
  const { encoderFor, formatOf, outFileAt } = await import('../../transfer/export/out-file.js')
  const file = outFileAt(path)
  const format = output === undefined ? formatOf(file, outputOf(context)) : outputOf(context)
  const encode = encoderFor(path, format)
  if (file.exists && !yes)
    await confirmReplacement(`${quoteIfNeeded(name)} already exists`, context)
  return { ...file, name, format, encode, mayReplace: file.exists || yes === true }
}

async function confirmReplacement(message: string, context: CommandContext): Promise<void> {
  if (!context.mayAsk) throw usageError(message, 'To replace it, add --yes')
  await context.confirm(`${message}. Replace it?`, 'Nothing was exported')
}

function outputOf({ output }: CommandContext): FormatName {
  return output === 'text' ? 'ndjson' : output
}

/** A missing default store exports nothing. Throws `unavailable` if that would replace a file. */
async function warnOfMissing(context: CommandContext, target: Target | undefined): Promise<void> {
  const { address, reporter } = context
  if (!target?.exists) return reporter.warn(context.noStoreYet())
  const what = `an empty export would replace ${quoteIfNeeded(target.name)}`
  const message = `There is no store at ${address.name} yet, and ${what}`
  throw new PlantsError('unavailable', message, {
    hint: 'List the stores with: plants stores list',
  })
}

async function save(
  pages: AsyncIterable<StoredPlant[]>,
  target: Target,
  context: CommandContext,
): Promise<void> {
  const { io } = context
  const { writeOut } = await import('../../transfer/export/out-file.js')
  const { path, name, encode, mayReplace } = target
  let plants = 0
  async function* counted(): AsyncGenerator<StoredPlant[]> {
    for await (const page of pages) {
      io.handleSignals().throwIfAborted()
      yield page
      plants += page.length
    }
  }
  const bytes = await writeOut(path, { mayReplace, signal: io.handleSignals() }, encode(counted()))
  const sentence = `Exported ${plantCount(plants)} to ${quoteIfNeeded(name)}`
  const isTable = context.output === 'csv' || context.output === 'tsv'
  const format = isTable ? (io.stdout.isTerminal ? 'text' : 'json') : context.output
  await context.print({ file: path, plants, bytes }, sentence, undefined, format)
}
