import { toJson } from '../plant/exact-json.js'
import { fieldNames, type NewPlant } from '../plant/plant.js'
import { type Column, documentIn } from '../plant/records.js'
import { PlantsError, systemCode, systemReason } from '../platform/errors.js'
import { escapeControlChars, escapeControlCharsInLines, printable, redactFields } from '../platform/escape.js'
import type { Io, Output } from '../platform/io.js'
import { isJson, type OutputFormat } from '../platform/values.js'
import { idExists } from '../stores/common/change.js'

/** The width of the terminal, even if one of the streams is a pipe. */
export function terminalWidth({ stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>): number {
  return [stdout, stderr].find(({ isTerminal }) => isTerminal)?.columns ?? 100
}

export type Style = Record<'strong' | 'bad' | 'faint', (text: string) => string>

/** Throws `unwritable` with the hint, the reason of a signal, or EPIPE if the reader has closed the pipe. */
export async function writeAnswer(io: Io, text: string, hint = 'Run it again'): Promise<void> {
  try {
    await io.stdout.write(text)
  } catch (error) {
    if (error instanceof PlantsError)
      throw new PlantsError(error.type, `${error.message} before the output was written`, { hint, cause: error })
    const reason = systemReason(error)
    if (reason === undefined || systemCode(error) === 'EPIPE') throw error
    throw new PlantsError('unwritable', `Could not write to stdout: ${reason}`, { hint, cause: error })
  }
}

/** Throws like `writeAnswer`. */
export async function writeResult(
  io: Io,
  { output, isQuiet }: { output: OutputFormat; isQuiet?: boolean },
  fields: object,
  sentence: string,
  hint = 'The command succeeded, only its output was not written',
): Promise<void> {
  if (output === 'text') return isQuiet ? undefined : writeAnswer(io, `${sentence}\n`, hint)
  if (isJson(output)) return writeAnswer(io, `${toJson(fields)}\n`, hint)
  const names = fieldNames.filter((name) => name !== 'id' || name in fields) // the specification's Plant has none
  const { print } = await recordPrinter(io, { output }, { fields: names })
  await print([fields], hint)
}

interface Layout<Row> {
  /** all by default */
  fields?: readonly Column[] | undefined
  /** loads the layout as text */
  text?(): Promise<(rows: Row[]) => string>
}

/** `end` completes the document. Both functions throw like `writeAnswer`. */
export async function recordPrinter<Row extends object>(
  io: Io,
  { output }: Pick<OutputStyle, 'output'>,
  { fields, text }: Layout<Row>,
) {
  const layout = output === 'text' ? await text?.() : undefined
  const document = documentIn(output === 'text' ? 'ndjson' : output, fields)
  const print = async (part: string, hint?: string) => {
    if (part !== '')
      await writeAnswer(io, layout || !io.stdout.isTerminal ? part : escapeControlCharsInLines(part), hint)
  }
  return {
    print: (rows: Row[], hint?: string) => print(layout ? layout(rows) : document.add(rows), hint),
    end: (hint?: string) => print(layout ? '' : document.end(), hint),
  }
}

type Pages<Row> = Iterable<Row[]> | AsyncIterable<Row[]>

/** Returns the number of rows. Throws like `writeAnswer`. */
export async function writeRows<Row extends object>(
  io: Io,
  style: OutputStyle,
  pages: Pages<Row>,
  layout: Layout<Row>,
): Promise<number> {
  const { print, end } = await recordPrinter(io, style, layout)
  let total = 0
  for await (const page of pages) {
    await print(page)
    total += page.length
  }
  await end()
  return total
}

/** Does what `writeRows` does, as text in a table. */
export function writeTable<Row extends object>(
  io: Io,
  style: OutputStyle,
  pages: Pages<Row>,
  titles: string[],
  cellsOf: (row: Row) => string[],
): Promise<number> {
  const text = async () => {
    const { tableOf } = await import('./text-table.js')
    return tableOf(titles, cellsOf, await styleFor(style.colors(io.stdout)), io.stdout)
  }
  return writeRows(io, style, pages, { text })
}

interface ErrorStyle {
  /** JSON only if it was requested */
  errors: 'text' | 'json'
  isQuiet?: boolean
  colors(stream: Output): boolean
}

export interface OutputStyle extends ErrorStyle {
  /** of results */
  output: OutputFormat
}

/** Precedence: the flag, FORCE_COLOR, NO_COLOR, the terminal. See https://no-color.org and https://force-color.org. */
export function mayColor(stream: Output, { color }: { color?: boolean }, { env }: Io): boolean {
  if (color === false) return false
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb' && stream.isTerminal
}

/** The label marks something that the user may have to correct. */
export async function warn(io: Io, text: string, style: ErrorStyle, label?: 'warning'): Promise<void> {
  if (!style.isQuiet) await writeToStderr(io, await warningOf(io, text, style, label))
}

/** @param of ` of 2 plants`, or nothing */
export function unknownFields(names: readonly string[], of = ''): string {
  const shown = names.slice(0, maxFields).map((name) => JSON.stringify(name))
  const others = names.length > maxFields ? ` and ${names.length - maxFields} more` : ''
  return `ignored unknown ${names.length === 1 ? 'field' : 'fields'} ${shown.join(', ')}${others}${of}`
}

const maxFields = 20

/** Returns what prints that stdin is silent. */
export function reportWaiting(what: string, io: Io, style: ErrorStyle): () => void {
  return () => void warnMeanwhile(io, `Waiting for ${what} on stdin`, style)
}

/** Does not wait for the write, so that an action in progress continues and can be interrupted. */
export async function warnMeanwhile(io: Io, text: string, style: ErrorStyle): Promise<void> {
  if (!style.isQuiet) void io.stderr.log(await warningOf(io, text, style))
}

async function warningOf(io: Io, text: string, { errors, colors }: ErrorStyle, label?: 'warning'): Promise<string> {
  if (errors === 'json') return jsonLine({ warning: text }, io)
  const { strong } = await styleFor(colors(io.stderr))
  const name = label === undefined ? '' : ` ${label}:`
  return `plants:${strong(name)} ${wrapped(printable(text, io), io.stderr, `plants:${name} `.length)}\n`
}

/** `element` is the index in a JSON array. */
type Rejection = { error: number; message: string; file: string; line: number; element: number | undefined }

export async function writeRejected(
  io: Io,
  records: readonly Rejection[],
  { errors, colors }: ErrorStyle,
): Promise<void> {
  const { bad } = await styleFor(colors(io.stderr))
  const lines = records.map((record) => {
    if (errors === 'json') return jsonLine(record, io)
    const { file, line, element, message } = record
    // in an array of several lines, the line is enough
    const position = line === 1 && element !== undefined ? `[${element}]` : `:${line}`
    return `${bad('plants:')} ${printable(`${file}${position}: ${message}`, io)}\n`
  })
  await writeToStderr(io, lines.join(''))
}

/** Throws the reason of a signal that arrives meanwhile. */
export async function writeError(io: Io, failure: PlantsError, { errors, colors }: ErrorStyle): Promise<void> {
  const { error, type, cause, message, hint, retryable, status, requestId } = failure
  if (errors === 'json') {
    const fields = { error, message, hint, retryable: retryable || undefined, status, requestId }
    return writeToStderr(io, jsonLine(fields, io))
  }
  const { bad, faint } = await styleFor(colors(io.stderr))
  const stack = type === 'defect' && cause instanceof Error ? (cause.stack ?? '').split('\n') : []
  // 400 is the specification's status for every error.
  const isOmitted = status === undefined || status === 400 || message.split(/[ ,]/).includes(`${status}`)
  const shownStatus = isOmitted ? '' : ` (status ${status})`
  const advice = hint === undefined ? [] : wrapped(printable(hint, io), io.stderr, hintIndent).split('\n  ')
  const text = wrapped(printable(message, io) + shownStatus, io.stderr, 'plants: '.length)
  const lines = [...stack.map((line) => printable(line, io)), ...advice].map((line) => `  ${faint(line)}\n`)
  await writeToStderr(io, `${bad('plants:')} ${text}\n${lines.join('')}`)
}

/**
 * At single spaces, on a terminal: but not between quotes or in a path, and in a hint not in a command, which people
 * copy. What others say is in messages, so that it looks like no command.
 *
 * @param start where the text begins, in columns; the lines after the first are indented like those of a hint, or more
 */
function wrapped(text: string, output: Output, start: number): string {
  if (!output.isTerminal || start + text.length <= output.columns) return text
  const command = start === hintIndent ? /(?<=: )[a-z][\w-]* (?:'[^']*'|"[^"]*"|(?!\. [A-Z]).)*|/.source : ''
  const word = RegExp(String.raw`(?:${command}'[^']*'|"[^"]*"|[.~]?/(?:.*/)?\S*| {2,}|[^ ])+`, 'g')
  const indent = `\n${' '.repeat(start)}`
  let line = ''
  let lines = ''
  for (const [part] of text.matchAll(word)) {
    if (line !== '' && start + line.length + 1 + part.length > output.columns) {
      lines += line + indent
      line = part
    } else line += line === '' ? part : ` ${part}`
  }
  return lines + line
}

const hintIndent = 2

/** @param opened undefined if the store does not exist */
export function notFound(
  id: bigint,
  { store, storeFlag }: { store: { name: string }; storeFlag: string },
  opened: object | undefined,
): PlantsError {
  const place = opened ? `in ${store.name}` : `because there is no store at ${store.name} yet`
  const hint = opened ? `List the plants with: plants list${storeFlag}` : 'List the stores with: plants stores list'
  return new PlantsError('notFound', `No plant has id ${id} ${place}`, { hint })
}

/** Only for an id that exists: the conflict of an idempotency key has a hint of its own. */
export function addLookupHint(error: unknown, id: bigint, { storeFlag }: { storeFlag: string }): unknown {
  if (!(error instanceof PlantsError && error.type === 'conflict' && error.hint === undefined)) return error
  const hint = `Look at it with: plants get ${id}${storeFlag}`
  return new PlantsError('conflict', idExists(id).message, { ...error, hint })
}

/** Such as `Fern (id 1, tag shade)`. */
export function describePlant({ id, name, tag }: NewPlant, { strong, faint }: Style): string {
  const tagged = tag === undefined ? '' : `, tag ${quoteIfNeeded(tag)}`
  return `${strong(quoteIfNeeded(name))} ${faint(`(id ${id}${tagged})`)}`
}

/** Such as `Fern (id 1): tag "shade" → none`. */
export function describeChange(before: NewPlant, after: NewPlant, style: Style): string {
  const shown = (text: string | undefined) => (text === undefined ? 'none' : escapeControlChars(JSON.stringify(text)))
  const changes = (['name', 'tag'] as const)
    .filter((field) => before[field] !== after[field])
    .map((field) => `${field} ${shown(before[field])} → ${shown(after[field])}`)
  return `${describePlant({ id: before.id, name: before.name }, style)}: ${changes.join(', ') || 'nothing'}`
}

/** Escapes the text for a terminal, too. */
export function quoteIfNeeded(text: string): string {
  return text === '' || text !== text.trim() ? `"${escapeControlChars(text)}"` : escapeControlChars(text)
}

export async function styleFor(isColored: boolean): Promise<Style> {
  if (!isColored) return plain
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return { strong: chalk.bold, bad: chalk.red, faint: chalk.dim }
}

const plain: Style = { strong: String, bad: String, faint: String }

/** Ignores a failed write: it cannot be reported, and the exit code still shows how the command ended. */
async function writeToStderr(io: Io, text: string): Promise<void> {
  try {
    await io.stderr.write(text)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}

export function jsonLine(fields: object, io: Io): string {
  return `${toJson(redactFields(fields, io))}\n`
}
