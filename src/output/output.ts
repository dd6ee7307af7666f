import { type NewPlant, textFields } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import { PlantsError, systemCode } from '../platform/errors.js'
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

/**
 * Writes an answer to stdout.
 *
 * @param hint what to do when that fails, although the work itself is done
 * @throws {PlantsError} `unwritable`, or the reason of a signal; or the EPIPE of a reader that has left
 */
export async function writeAnswer(io: Io, text: string, hint: string): Promise<void> {
  try {
    await io.stdout.write(text)
  } catch (error) {
    if (error instanceof PlantsError)
      throw new PlantsError(error.kind, `${error.message} before the answer was written`, { hint, cause: error })
    const code = systemCode(error)
    if (code === undefined || code === 'EPIPE') throw error
    throw new PlantsError('unwritable', `The answer could not be written to stdout: ${code === 'ENOSPC' ? 'no space left' : code}`, {
      hint,
      cause: error,
    })
  }
}

/** Writes what a command has done: a sentence for people, an object for programs. Throws as `writeAnswer` does. */
export function writeResult(io: Io, { output }: Pick<OutputStyle, 'output'>, fields: object, sentence: string): Promise<void> {
  return writeAnswer(io, output === 'json' ? `${toJson(fields)}\n` : `${sentence}\n`, 'It is done')
}

/** How answers and errors look. */
export interface OutputStyle {
  /** of answers: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** of errors and warnings: JSON only when it was asked for */
  errors: 'text' | 'json'
  /** whether to colour what goes to this stream */
  colors(stream: Output): boolean
}

type ErrorStyle = Pick<OutputStyle, 'errors' | 'colors'>

/** Tells a person something that is no error. */
export async function warn(io: Io, text: string, style: ErrorStyle): Promise<void> {
  await writeAside(io, await warningOf(io, text, style))
}

/** Warns of something that takes longer; that goes on whoever reads the warning, and can be interrupted all the while. */
export async function warnMeanwhile(io: Io, text: string, style: ErrorStyle): Promise<void> {
  void io.stderr.log(await warningOf(io, text, style))
}

/**
 * A line on a terminal that says for how long a service is waited for.
 *
 * @returns shows it, after so many milliseconds, or takes it away
 */
export function waitingLine(io: Io, host: string): (milliseconds: number | undefined) => void {
  let isShown = false
  return (milliseconds) => {
    if (milliseconds === undefined && !isShown) return
    isShown = milliseconds !== undefined
    const text = milliseconds === undefined ? '' : `Waiting for ${host}\u2026 (${Math.round(milliseconds / 1000)} s)`
    void io.stderr.log(`\r${escapeControlChars(text).slice(0, io.stderr.columns - 1)}\u001b[K`)
  }
}

async function warningOf(io: Io, text: string, { errors, colors }: ErrorStyle): Promise<string> {
  const style = await styleFor(colors(io.stderr))
  return errors === 'json' ? jsonLine({ warning: text }, io) : redact(`plants: ${style.faint(escapeControlChars(text))}\n`, io)
}

/** A record that was refused, and where it stands. */
export interface RejectedRecord {
  error: number
  message: string
  file: string
  line: number
}

/** Tells which records were refused. */
export async function writeRejected(io: Io, refusals: readonly RejectedRecord[], { errors, colors }: ErrorStyle): Promise<void> {
  const style = await styleFor(colors(io.stderr))
  const sentence = ({ file, line, message }: RejectedRecord) =>
    `${style.bad('plants:')} ${escapeControlChars(`${file}:${line}: ${message}`)}\n`
  const lines = refusals.map((refusal) => (errors === 'json' ? jsonLine(refusal, io) : redact(sentence(refusal), io)))
  await writeAside(io, lines.join(''))
}

/** Tells what failed and what to do next; one line of JSON when that was asked for. Throws the reason of a signal that comes meanwhile. */
export async function writeError(io: Io, error: PlantsError, style: ErrorStyle): Promise<void> {
  await writeAside(io, await errorText(io, error, style))
}

async function errorText(io: Io, error: PlantsError, { errors, colors }: ErrorStyle): Promise<string> {
  const { message, hint } = error
  if (errors === 'json') {
    const { retryable, status, requestId } = error
    const fields = { error: error.error, message, hint, retryable: retryable || undefined, status, requestId }
    return jsonLine(fields, io)
  }
  const style = await styleFor(colors(io.stderr))
  const stack = error.kind === 'defect' && error.cause instanceof Error ? (error.cause.stack ?? '').split('\n') : []
  const lines = [
    `${style.bad('plants:')} ${escapeControlChars(message)}${statusOf(error)}`,
    ...[...stack, hint ?? []].flat().map((line) => `  ${style.faint(escapeControlChars(line))}`),
  ]
  return redact(lines.map((line) => `${line}\n`).join(''), io)
}

/** The HTTP status of an answer, for people, where the message does not name it; 400 is how the specification says no. */
function statusOf({ status, message }: PlantsError): string {
  return status === undefined || status === 400 || message.includes(String(status)) ? '' : ` (status ${status})`
}

/** The error for an id that no plant has, in a store that may not even be there. */
export function notFound(id: bigint, { store, storeFlag }: { store: { name: string }; storeFlag: string }, isStore: boolean): PlantsError {
  const place = isStore ? `in ${store.name}` : `because there is no store at ${store.name} yet`
  const hint = isStore ? `See what is there with: plants list${storeFlag}` : 'plants create makes it'
  return new PlantsError('notFound', `No plant has the id ${id} ${place}`, { hint })
}

/** Says where to look, of an id that is taken: a store says no more than that. What a store says of a key stays as it is, and any other error. */
export function addLookupHint(error: unknown, id: bigint, { storeFlag }: { storeFlag: string }): unknown {
  const isIdTaken = error instanceof PlantsError && error.kind === 'conflict' && error.hint === undefined
  if (!isIdTaken) return error
  const { kind, message } = idExists(id)
  return new PlantsError(kind, message, { hint: `Look at it with: plants get ${id}${storeFlag}` })
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

/** Nobody can be told that stderr is gone; the exit code still tells how the run went. */
async function writeAside(io: Io, text: string): Promise<void> {
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

/** Breaks a text into lines of so many columns; where there is too little room it stays one line, for the terminal to break. */
export function wrap(text: string, width: number): string[] {
  if (width < narrowest) return [text]
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

const narrowest = 20
