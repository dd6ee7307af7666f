import { describeSystemError, getSystemCode, PlantsError } from '../errors.js'
import type { StoredPlant } from '../plant/plant.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io, Output } from '../platform/io.js'

export type Style = Record<'strong' | 'bad' | 'faint', (text: string) => string>

const spaceHint = 'Write the output to a disk with more space'

/**
 * Writes the output of a command.
 *
 * @throws {PlantsError} `unwritable`, or the reason of a signal
 * @throws EPIPE if the reader has closed the pipe, which is no error of the command
 */
export async function writeStdout(io: Io, text: string | Uint8Array): Promise<void> {
  try {
    await io.stdout.write(text)
  } catch (error) {
    const reason = describeSystemError(error)
    if (reason === undefined || getSystemCode(error) === 'EPIPE') throw error
    const message = `Stdout could not be written: ${reason}`
    throw new PlantsError('unwritable', message, { hint: spaceHint, cause: error })
  }
}

/**
 * Says of an error of `writeStdout` that only the output is missing: nobody needs to repeat what
 * the command has done. Returns any other error unchanged.
 */
export function addKeptHint(error: unknown): unknown {
  if (!(error instanceof PlantsError) || error.kind !== 'unwritable') return error
  const hint = `${spaceHint}: what the command has done is kept`
  return new PlantsError('unwritable', error.message, { hint, cause: error.cause })
}

/** Ignores that the reader of stdout has left, where the command must go on. */
export function ignoreClosedPipe(error: unknown): void {
  if (getSystemCode(error) !== 'EPIPE') throw error
}

interface StyleContext {
  options: { color?: boolean | undefined }
  io: Io
}

/** Whether output may have colors, as https://no-color.org and https://force-color.org say. */
function mayColor({ options: { color }, io: { env } }: StyleContext, stream: Output): boolean {
  if (color === false) return false
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  if (env['NO_COLOR']) return false
  return env['TERM'] !== 'dumb' && stream.isTerminal
}

/** @param noun what the names are: fields of JSON, or columns of a table */
export function describeIgnoredFields(
  names: readonly string[],
  noun: 'field' | 'column' = 'field',
): string {
  const list = names
    .slice(0, maxFields)
    .map((name) => JSON.stringify(name))
    .join(', ')
  const remainder = names.length > maxFields ? ` and ${names.length - maxFields} more` : ''
  const ending = names.length === 1 ? '' : 's'
  return `ignored ${noun}${ending} ${list}${remainder}`
}

const maxFields = 20

/** Writes a plant as `Fern (id 1, tag shade)`. */
export function describePlant({ id, name, tag }: StoredPlant, { strong, faint }: Style): string {
  const tagged = tag === undefined ? '' : `, tag ${quoteIfNeeded(tag)}`
  return `${strong(quoteIfNeeded(name))} ${faint(`(id ${id}${tagged})`)}`
}

/** Writes `Updated Fern (id 1): tag "shade" → none`, or `Fern (id 1) is unchanged`. */
export function describeChange(
  verb: string,
  before: StoredPlant,
  after: StoredPlant,
  style: Style,
): string {
  const formatValue = (text: string | undefined) =>
    text === undefined ? 'none' : escapeControlChars(JSON.stringify(text))
  const changes = (['name', 'tag'] as const)
    .filter((field) => before[field] !== after[field])
    .map((field) => `${field} ${formatValue(before[field])} → ${formatValue(after[field])}`)
  const plant = describePlant({ id: before.id, name: before.name }, style)
  return changes.length > 0 ? `${verb} ${plant}: ${changes.join(', ')}` : `${plant} is unchanged`
}

/** Quotes an empty text and one with spaces at its ends, and escapes control characters. */
export function quoteIfNeeded(text: string): string {
  const escaped = escapeControlChars(text)
  return text === '' || text !== text.trim() ? `"${escaped}"` : escaped
}

export async function createStyle(
  context: StyleContext,
  stream = context.io.stdout,
): Promise<Style> {
  if (!mayColor(context, stream)) return plain
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return { strong: chalk.bold, bad: chalk.red, faint: chalk.dim }
}

const plain: Style = { strong: String, bad: String, faint: String }
