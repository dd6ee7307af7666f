import { type NewPlant, plantFields, textFields } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io, Output } from '../platform/io.js'
import { redact, withoutSecrets } from '../platform/redact.js'
import { idExists } from '../stores/conflict.js'

/** How texts look on a stream; without colours every style gives the text back as it was. */
export interface Style {
  strong(text: string): string
  bad(text: string): string
  faint(text: string): string
}

/** Writes an answer to stdout. Throws `unwritable` with the hint, the reason of a signal, or the EPIPE of a reader that has left. */
export async function writeAnswer(io: Io, text: string, hint = 'Run it again'): Promise<void> {
  try {
    await io.stdout.write(text)
  } catch (error) {
    if (error instanceof PlantsError)
      throw new PlantsError(error.kind, `${error.message} before the answer was written`, { hint, cause: error })
    const code = systemCode(error)
    if (code === undefined || code === 'EPIPE') throw error
    const reason = code === 'ENOSPC' ? 'no space left' : code
    throw new PlantsError('unwritable', `The answer could not be written to stdout: ${reason}`, { hint, cause: error })
  }
}

type OutputFormat = Pick<OutputStyle, 'output'> & Partial<Pick<OutputStyle, 'isQuiet'>>

/** Confirms what a command did, with a sentence for people or an object for programs. Throws as `writeAnswer` does. */
export async function writeResult(
  io: Io,
  { output, isQuiet }: OutputFormat,
  fields: object,
  sentence: string,
  hint = 'It is done',
): Promise<void> {
  if (!isQuiet) await writeAnswer(io, output === 'json' ? `${toJson(fields)}\n` : `${sentence}\n`, hint)
}

export interface OutputStyle {
  /** of answers: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** of errors and warnings: JSON only when it was asked for */
  errors: 'text' | 'json'
  /** whether nothing is confirmed, and nothing warned of */
  isQuiet: boolean
  colors(stream: Output): boolean
}

type ErrorStyle = Pick<OutputStyle, 'errors' | 'colors'> & Partial<Pick<OutputStyle, 'isQuiet'>>

/** Prints a notice, or with the label "warning" what a person may have to correct. */
export async function warn(io: Io, text: string, style: ErrorStyle, label?: 'warning'): Promise<void> {
  if (!style.isQuiet) await writeToStderr(io, await warningOf(io, text, style, label))
}

/**
 * What is said of a field that no plant has.
 *
 * @param of whose it is: ` of 2 plants`
 * @param flag takes a field of a plant and the one that is it: `--map`
 */
export async function unknownField(name: string, of = '', flag?: string): Promise<string> {
  const { similar } = await import('../platform/nearest.js')
  const [alike] = similar(
    name,
    plantFields.map((field) => field.name),
  )
  const advice = flag === undefined ? '' : ` If so: ${flag} ${shellWord(`${alike}=${name}`)}`
  return `ignored unknown field ${JSON.stringify(name)}${of}${alike === undefined ? '' : `. Did you mean "${alike}"?${advice}`}`
}

/** Prints a warning without waiting for its reader, for an action that goes on and can be interrupted all the while. */
export async function warnMeanwhile(io: Io, text: string, style: ErrorStyle): Promise<void> {
  if (!style.isQuiet) void io.stderr.log(await warningOf(io, text, style))
}

/** Gives a function that shows for how many milliseconds a service is waited for, in a line on a terminal, or takes that away. */
export function waitingLine(io: Io, host: string): (milliseconds: number | undefined) => void {
  let isShown = false
  return (milliseconds) => {
    if (milliseconds === undefined && !isShown) return
    isShown = milliseconds !== undefined
    const text = milliseconds === undefined ? '' : `Waiting for ${host}\u2026 (${Math.round(milliseconds / 1000)} s)`
    void io.stderr.log(`\r${escapeControlChars(text).slice(0, io.stderr.columns - 1)}\u001b[K`)
  }
}

async function warningOf(io: Io, text: string, { errors, colors }: ErrorStyle, label?: 'warning'): Promise<string> {
  if (errors === 'json') return jsonLine({ warning: text }, io)
  const { strong } = await styleFor(colors(io.stderr))
  return redact(`plants: ${label === undefined ? '' : `${strong(`${label}:`)} `}${escapeControlChars(text)}\n`, io)
}

/** A rejected record; `element` is its place in a JSON array, from 0. */
type Rejection = { error: number; message: string; file: string; line: number; element: number | undefined }

export async function writeRejected(io: Io, records: readonly Rejection[], { errors, colors }: ErrorStyle): Promise<void> {
  const { bad } = await styleFor(colors(io.stderr))
  const lines = records.map((record) => {
    if (errors === 'json') return jsonLine(record, io)
    const { file, line, element, message } = record
    const place = line === 1 && element !== undefined ? `[${element}]` : `:${line}` // an array of many lines has its elements in them
    return redact(`${bad('plants:')} ${escapeControlChars(`${file}${place}: ${message}`)}\n`, io)
  })
  await writeToStderr(io, lines.join(''))
}

/** Prints what failed and what to do next; one line of JSON when that was asked for. Throws the reason of a signal that comes meanwhile. */
export async function writeError(io: Io, failure: PlantsError, { errors, colors }: ErrorStyle): Promise<void> {
  const { error, kind, cause, message, hint, retryable, status, requestId } = failure
  if (errors === 'json') {
    const fields = { error, message, hint, retryable: retryable || undefined, status, requestId }
    return writeToStderr(io, jsonLine(fields, io))
  }
  const { bad, faint } = await styleFor(colors(io.stderr))
  const stack = kind === 'defect' && cause instanceof Error ? (cause.stack ?? '').split('\n') : []
  // The status of a response, unless the message names it; 400 is how the specification says no.
  const shownStatus = status === undefined || status === 400 || message.includes(String(status)) ? '' : ` (status ${status})`
  const lines = [
    `${bad('plants:')} ${escapeControlChars(message)}${shownStatus}`,
    ...[...stack, hint ?? []].flat().map((line) => `  ${faint(escapeControlChars(line))}`),
  ]
  await writeToStderr(io, redact(`${lines.join('\n')}\n`, io))
}

/** The error for an id that no plant has, in a store that may not even be there. */
export function notFound(id: bigint, { store, storeFlag }: { store: { name: string }; storeFlag: string }, isStore: boolean): PlantsError {
  const place = isStore ? `in ${store.name}` : `because there is no store at ${store.name} yet`
  const hint = isStore ? `List the plants with: plants list${storeFlag}` : 'Create it with: plants create'
  return new PlantsError('notFound', `No plant has the id ${id} ${place}`, { hint })
}

/** Adds to the error for an id that exists how to look at its plant. Any other error stays as it is, also that for an idempotency key. */
export function addLookupHint(error: unknown, id: bigint, { storeFlag }: { storeFlag: string }): unknown {
  if (!(error instanceof PlantsError && error.kind === 'conflict' && error.hint === undefined)) return error
  return new PlantsError('conflict', idExists(id).message, { hint: `Look at it with: plants get ${id}${storeFlag}` })
}

/** A plant in a sentence: `Fern (id 1, tag shade)`. */
export function describePlant(plant: NewPlant, style: Style): string {
  const others = textFields.flatMap(({ name }) =>
    name === 'name' || plant[name] === undefined ? [] : `, ${name} ${quoteIfNeeded(plant[name])}`,
  )
  return `${style.strong(quoteIfNeeded(plant.name))} ${style.faint(`(id ${plant.id}${others.join('')})`)}`
}

/** A text for people, in quotes where its ends would not be seen. */
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

/** A failure to write to stderr cannot be reported; the exit code still says how the run went. */
async function writeToStderr(io: Io, text: string): Promise<void> {
  try {
    await io.stderr.write(text)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}

/** Writes one line of JSON without secrets. Its keys are ours, and those within its values somebody else's. */
export function jsonLine(fields: object, io: Pick<Io, 'secrets'>): string {
  const entries = Object.entries(fields).map(([key, value]: [string, unknown]) => [key, withoutSecrets(value, io)])
  return `${toJson(Object.fromEntries(entries))}\n`
}

/** Breaks a text into lines of at most `width` columns; below 20 it stays one line, for the terminal to break. */
export function wrap(text: string, width: number): string[] {
  if (width < 20) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
