import type { Stats } from 'node:fs'
import { outputFormats, parseChoice, parseFilePath } from '../../config/option-values.js'
import { createUsageError, fileInFolderHint } from '../../errors.js'
import { encodePlants } from '../../export/encode.js'
import { type FileFormat, type FormatName, formatNames } from '../../formats/write.js'
import { quoteIfNeeded, writeStdout } from '../../output/output.js'
import { Progress } from '../../output/progress.js'
import { formatPlantCount, type StoredPlant } from '../../plant/plant.js'
import { assertOwnFile, isWrittenInPlace, toWriteError } from '../../platform/atomic-file.js'
import { escapeControlCharsInLines } from '../../platform/escape.js'
import { readBytes, statIfExists } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import { openStore } from '../open-store.js'
import { addQuery, type QueryOptions } from '../options.js'
import { printOutcome } from '../print.js'
import { confirmReplacement } from './backup.js'

const fileHint = 'To write a workbook or another file: plants export plants.xlsx'

interface ExportOptions extends QueryOptions {
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Write plants to a file, in the format of --output or of its name, or to stdout as NDJSON.',
    )
    .argument(
      '[file]',
      'file to write: .xlsx (an Excel workbook), or .ndjson, .json, .csv or .tsv, optionally followed by .gz',
      (text) => parseFilePath('The path', text),
    )
    .option('-y, --yes', 'overwrite an existing file')
  addQuery(command)
    .addExamples(
      'plants export > plants.ndjson',
      'plants export --output csv --tag shade',
      'plants export plants.xlsx',
    )
    .handler((options: ExportOptions, io: Io, name?: string) => exportPlants(name, options, io))
}

async function exportPlants(name = '-', options: ExportOptions, io: Io): Promise<void> {
  // Text is for people.
  if (options.output !== undefined) parseChoice('--output', options.output, formatNames, fileHint)
  const context = await readStoreContext(options, io, outputFormats)
  const isStdout = /^(?:-|\/dev\/stdout)$/.test(name)
  const file = isStdout ? undefined : await prepareFile(name, options, context)
  // A job without HOME has another default store, which is missing. A file without plants would
  // replace the good one of yesterday.
  const store = await openStore(context, file !== undefined)
  try {
    const format = file?.format ?? findDocumentFormat(context)
    // On a terminal, the plants themselves are the progress.
    const showsProgress = context.reporter.showsProgress && (!isStdout || !io.stdout.isTerminal)
    const progress = new Progress(io, showsProgress)
    let plants = 0
    async function* readPages(): AsyncGenerator<StoredPlant[]> {
      try {
        for await (const page of store?.read(options) ?? []) {
          yield page
          plants += page.length
          progress.show({ done: plants })
        }
      } finally {
        await progress.clear()
      }
    }
    const content = encodePlants(readPages(), format)
    if (!file) return await printContent(content, format, io)
    const { exportFile } = await import('../../export/export-file.js')
    const bytes = await exportFile(file.path, content, io.getStopSignal())
    const sentence = `Exported ${formatPlantCount(plants)} to ${file.name}`
    // With --output csv, the file has CSV. Its number of plants is printed as JSON.
    const output = context.output === 'text' ? 'text' : 'json'
    await printOutcome({ file: file.path, plants, bytes }, sentence, { ...context, output })
  } finally {
    await store?.close()
  }
}

/**
 * Checks a file before the store is opened, because a person may take long to answer.
 *
 * @returns its path, its name for messages, and its format. If it exists, it may be replaced.
 * @throws {PlantsError} `usage` for a file that must not be replaced, or an unknown format
 */
async function prepareFile(name: string, options: ExportOptions, context: CommandContext) {
  const { chooseFileFormat } = await import('../../export/export-file.js')
  const path = context.io.resolvePath(name)
  const oldStats = readOldStats(path)
  const isDevice = isWrittenInPlace(oldStats)
  const quotedName = quoteIfNeeded(name)
  if (oldStats?.isDirectory())
    throw createUsageError(`${quotedName} is a directory`, fileInFolderHint)
  if (!isDevice) await assertNotOfStore(path, oldStats, context)
  if (oldStats) assertOwnFile(path, oldStats, 'Choose another file')
  const isFormatChosen = options.output !== undefined || isDevice
  const chosenFormat = isFormatChosen ? findDocumentFormat(context) : undefined
  const format = chooseFileFormat(name, chosenFormat)
  if (oldStats && !isDevice && !options.yes)
    await confirmReplacement(`${quotedName} already exists`, context)
  return { path, name: quotedName, format }
}

/** @throws {PlantsError} `unwritable` for an impossible path, such as one below a file */
function readOldStats(path: string): Stats | undefined {
  try {
    return statIfExists(path)
  } catch (error) {
    throw toWriteError(path, path, error, 'Choose another file')
  }
}

/**
 * The log of a store may be missing now, and exist when the file gets its name. A path that was
 * meant for --store must not cost the plants of that store.
 */
async function assertNotOfStore(
  path: string,
  stats: Stats | undefined,
  { address }: CommandContext,
): Promise<void> {
  if (await findKind(address).ownsFile?.(address, path))
    throw createUsageError(`${path} is a file of the store`, 'Choose another file')
  if (stats?.isFile() && readBytes(path, 0, 15).toString() === 'SQLite format 3')
    throw createUsageError(
      `${path} is a SQLite database`,
      'To export it: plants export FILE --store STORE',
    )
}

/** Chooses the format of the output. Text is for people only, so an export is NDJSON instead. */
function findDocumentFormat({ output }: CommandContext): FormatName {
  return output === 'text' ? 'ndjson' : output
}

/**
 * Prints the plants. The name of a plant may contain control characters, which could change the
 * terminal. JSON escapes them, and CSV and TSV do not.
 */
async function printContent(
  blocks: AsyncIterable<string | Uint8Array>,
  format: FileFormat,
  io: Io,
): Promise<void> {
  const needsEscapes = io.stdout.isTerminal && (format === 'csv' || format === 'tsv')
  for await (const block of blocks)
    await writeStdout(io, needsEscapes ? escapeControlCharsInLines(String(block)) : block)
}
