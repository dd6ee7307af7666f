import type { StoredPlant } from '../plant/plant.js'
import { PlantsError, systemCode, systemReason } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import { sizeLimitHint } from '../platform/files.js'
import type { Io, Output } from '../platform/io.js'

/** The width of the terminal, even if one of the streams is a pipe. */
export function terminalWidth({ stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>): number {
  return [stdout, stderr].find(({ isTerminal }) => isTerminal)?.columns ?? 100
}

interface Wrapping {
  /** Where the text begins, in columns; the lines after the first are indented so. */
  indent?: number
  /** Whether a command after a colon, which people copy, stays whole. What others say looks like no command. */
  hasCommands?: boolean
}

/** On a terminal, at single spaces: but not between quotes or in a path. */
export function wrapped(
  text: string,
  output: Pick<Output, 'isTerminal' | 'columns'>,
  { indent = 0, hasCommands = false }: Wrapping = {},
): string {
  if (!output.isTerminal || indent + lengthOf(text) <= output.columns) return text
  const command = hasCommands ? /(?<=: )[a-z][\w-]* (?:'[^']*'|"[^"]*"|(?!\. [A-Z]).)*|/.source : ''
  const word = RegExp(
    String.raw`(?:${command}'[^']*'|"[^"]*"|[.~]?/(?:.*/)?\S*|(?:[A-Za-z]:|\\)\\(?:.*\\)?\S*| {2,}|[^ ])+`,
    'g',
  )
  let line = ''
  let lines = ''
  for (const [part] of text.matchAll(word)) {
    if (line !== '' && indent + lengthOf(line) + 1 + lengthOf(part) > output.columns) {
      lines += `${line}\n${' '.repeat(indent)}`
      line = part
    } else line += line === '' ? part : ` ${part}`
  }
  return lines + line
}

/** Without the escapes of a style. */
function lengthOf(text: string): number {
  return text.replace(/\u001b\[\d+m/g, '').length
}

export type Style = Record<'strong' | 'bad' | 'faint', (text: string) => string>

/** Throws `unwritable` with the hint, the reason of a signal, or EPIPE if the reader has closed the pipe. */
export async function writeAnswer(io: Io, text: string, given?: string): Promise<void> {
  try {
    await io.stdout.write(text)
  } catch (error) {
    const hint = given ?? sizeLimitHint(error) ?? 'Run it again'
    if (error instanceof PlantsError)
      throw new PlantsError(error.kind, `${error.message} before the output was written`, {
        hint,
        cause: error,
      })
    const reason = systemReason(error)
    if (reason === undefined || systemCode(error) === 'EPIPE') throw error
    throw new PlantsError('unwritable', `Could not write to stdout: ${reason}`, {
      hint,
      cause: error,
    })
  }
}

export const colorChoices = ['auto', 'always', 'never'] as const
export type ColorChoice = (typeof colorChoices)[number]

/**
 * Precedence: the flag, FORCE_COLOR, NO_COLOR, CLICOLOR_FORCE, the terminal. See https://no-color.org,
 * https://force-color.org and https://bixense.com/clicolors.
 */
export function mayColor(
  stream: Output,
  { color }: { color?: ColorChoice | false },
  { env }: Io,
): boolean {
  if (color === false || color === 'never') return false
  if (color === 'always') return true
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  if (env['NO_COLOR']) return false
  const isForced = ![undefined, '', '0'].includes(env['CLICOLOR_FORCE'])
  return isForced || (env['TERM'] !== 'dumb' && stream.isTerminal)
}

/** @param of ` of 2 plants`, or nothing */
export function unknownFields(names: readonly string[], of = ''): string {
  const shown = names.slice(0, maxFields).map((name) => JSON.stringify(name))
  const others = names.length > maxFields ? ` and ${names.length - maxFields} more` : ''
  return `ignored unknown ${names.length === 1 ? 'field' : 'fields'} ${shown.join(', ')}${others}${of}`
}

const maxFields = 20

/** Such as `Fern (id 1, tag shade)`. */
export function describePlant({ id, name, tag }: StoredPlant, { strong, faint }: Style): string {
  const tagged = tag === undefined ? '' : `, tag ${quoteIfNeeded(tag)}`
  return `${strong(quoteIfNeeded(name))} ${faint(`(id ${id}${tagged})`)}`
}

/** Such as `Updated Fern (id 1): tag "shade" → none`, with the verb, or `Fern (id 1) is unchanged`. */
export function describeChange(
  verb: string,
  before: StoredPlant,
  after: StoredPlant,
  style: Style,
): string {
  const shown = (text: string | undefined) =>
    text === undefined ? 'none' : escapeControlChars(JSON.stringify(text))
  const changes = (['name', 'tag'] as const)
    .filter((field) => before[field] !== after[field])
    .map((field) => `${field} ${shown(before[field])} → ${shown(after[field])}`)
  const plant = describePlant({ id: before.id, name: before.name }, style)
  return changes.length > 0 ? `${verb} ${plant}: ${changes.join(', ')}` : `${plant} is unchanged`
}

/** Escapes the text for a terminal, too. */
export function quoteIfNeeded(text: string): string {
  return text === '' || text !== text.trim()
    ? `"${escapeControlChars(text)}"`
    : escapeControlChars(text)
}

export async function styleFor(isColored: boolean): Promise<Style> {
  if (!isColored) return plain
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return { strong: chalk.bold, bad: chalk.red, faint: chalk.dim }
}

const plain: Style = { strong: String, bad: String, faint: String }
