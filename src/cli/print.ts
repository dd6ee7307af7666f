/*
 * Prints what a command answers: in the format of --output for programs, as text for people.
 */
import { isJson } from '../config/option-values.js'
import type { Column, PlantRecord } from '../formats/write.js'
import { addKeptHint, createStyle, quoteIfNeeded, writeStdout } from '../output/output.js'
import { type Layout, Printer } from '../output/printer.js'
import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import type { SettingsContext } from './context.js'

type PrintContext = Pick<SettingsContext, 'io' | 'options' | 'output' | 'reporter'>

/**
 * Prints what a command has done: fields for programs, or a sentence for people. --quiet suppresses
 * the sentence.
 *
 * @param options.isKept whether it stays done if the output fails: a dry run has done nothing
 */
export async function printOutcome(
  fields: object,
  sentence: string,
  context: PrintContext,
  { isKept = true } = {},
): Promise<void> {
  if (context.output === 'text' && context.reporter.isQuiet) return
  try {
    await printResult(fields, sentence, context)
  } catch (error) {
    throw isKept ? addKeptHint(error) : error
  }
}

/** Prints the result of a command, also with --quiet: fields for programs, a text for people. */
export async function printResult(
  fields: object,
  text: string,
  context: PrintContext,
): Promise<void> {
  const { io, output } = context
  if (output === 'text') return writeStdout(io, `${text}\n`)
  if (isJson(output)) return writeStdout(io, `${toJson(fields)}\n`)
  // The format is CSV or TSV. The columns include the id only if the fields do: the Plant of the
  // specification has no id.
  const names = fieldNames.filter((name) => name !== 'id' || name in fields)
  await createPrinter({ fields: names }, context).printRows([fields])
}

/**
 * Prints one value, such as a token. Scripts often assign the output to a variable of a shell, so
 * it is JSON only if somebody has chosen that format.
 */
export function printValue(
  value: string,
  fields: object,
  { io, reporter }: PrintContext,
): Promise<void> {
  const text = io.stdout.isTerminal ? quoteIfNeeded(value) : value
  return writeStdout(io, `${reporter.isJson ? toJson(fields) : text}\n`)
}

/** @param isSingle whether JSON output is one value instead of an array */
export function createPrinter<Row extends object>(
  layout: Layout<Row>,
  { io, output }: PrintContext,
  isSingle = false,
): Printer<Row> {
  return new Printer(io, isSingle && output === 'json' ? 'ndjson' : output, layout)
}

/** Creates a printer of a table for people, and of fields for programs. */
export async function createTablePrinter<Row extends object>(
  titles: string[],
  formatCells: (row: Row) => string[],
  context: PrintContext,
  layout: Layout<Row> = {},
): Promise<Printer<Row>> {
  if (context.output !== 'text') return createPrinter(layout, context)
  const { formatTable } = await import('../output/text-table.js')
  const text = formatTable(titles, formatCells, await createStyle(context), context.io.stdout)
  return createPrinter({ ...layout, text }, context)
}

/** @param firstRows how many plants determine the widths of the columns of a table */
export function createPlantPrinter<Row extends PlantRecord = StoredPlant>(
  context: PrintContext,
  fields: readonly Column[] = fieldNames,
  firstRows = 0,
): Promise<Printer<Row>> {
  const formatCell = (value: unknown) => (value === undefined ? '' : quoteIfNeeded(String(value)))
  const titles = fields.map((name) => name.toUpperCase())
  const formatCells = (plant: Row) => fields.map((name) => formatCell(plant[name]))
  return createTablePrinter(titles, formatCells, context, { fields, firstRows })
}
