import { statSync } from 'node:fs'
import { outputFormats, parseChoice, parseText } from '../../config/option-values.js'
import { usageError } from '../../errors.js'
import { formatNames } from '../../formats/write.js'
import { quoteIfNeeded } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { Progress, withProgress } from '../../output/progress.js'
import { plantCount, type StoredPlant } from '../../plant/plant.js'
import { assertOwnFile, isWrittenInPlace } from '../../platform/atomic-file.js'
import type { Io } from '../../platform/io.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addQuery, type QueryOptions } from '../options.js'

interface ExportOptions extends QueryOptions {
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Write a consistent snapshot of the plants, in ascending order of id: to a file, in the format of its name, or to stdout, as NDJSON.',
    )
    .argument(
      '[file]',
      'file to write: .ndjson, .json, .csv, .tsv or .xlsx (an Excel workbook); with .gz, all but the last are compressed',
      (text) => parseText('file', text),
    )
    .option('-y, --yes', 'replace a file that exists')
  addQuery(command)
    .addExamples(
      'plants export > plants.ndjson',
      'plants export --output csv --tag shade',
      'plants export plants.xlsx',
    )
    .handler((options: ExportOptions, io: Io, name?: string) => exportPlants(name, options, io))
}

async function exportPlants(name = '-', options: ExportOptions, io: Io): Promise<void> {
  if (options.output !== undefined)
    parseChoice('--output', options.output, formatNames, 'To a file: plants export FILE')
  const context = await CommandContext.from(options, io, outputFormats)
  const output = context.output === 'text' ? 'ndjson' : context.output
  const { exportFile, fileFormat } = await import('../../export/export-file.js')
  const path = /^(?:-|\/dev\/stdout)$/.test(name) ? undefined : io.resolvePath(name)
  const old = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  const isDevice = path !== undefined && isWrittenInPlace(path, old)
  const shownName = quoteIfNeeded(name)
  if (path !== undefined && old?.isFile() && !isDevice) {
    const { address } = context
    if (await findKind(address).ownsFile(address, path))
      throw usageError(`${path} is the store itself`, 'Choose another file')
    assertOwnFile(path, old, 'Choose another file')
    if (!options.yes) await confirmReplacement(shownName, context)
  }
  const isChosen = options.output !== undefined || isDevice
  const format = path === undefined ? output : fileFormat(name, isChosen ? output : undefined)
  const store = await context.openStore()
  // Without HOME, an empty store would replace a good file.
  if (!store && path !== undefined) throw context.noStore()
  if (!store) await context.reporter.warn(context.noStoreYet())
  try {
    const read = store?.read(options) ?? []
    const isShown = context.reporter.showsProgress && (path !== undefined || !io.stdout.isTerminal)
    const pages = withProgress(read, new Progress(io, isShown))
    if (path === undefined) {
      await new Printer<StoredPlant>(io, output).all(pages)
      return
    }
    const { plants, bytes } = await exportFile(path, format, pages, io.handleSignals())
    const sentence = `Exported ${plantCount(plants)} to ${shownName}`
    const answer = context.output === 'text' ? 'text' : 'json'
    await context.print({ file: path, plants, bytes }, sentence, answer)
  } finally {
    await store?.close()
  }
}

async function confirmReplacement(name: string, context: CommandContext): Promise<void> {
  if (!context.mayAsk) throw usageError(`${name} already exists`, 'To replace it, add --yes')
  await context.confirm(`${name} already exists. Replace it?`, 'Nothing was exported')
}
