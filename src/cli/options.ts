import { choiceIn, duration, invalidValue, parseCount } from '../config/option-values.js'
import type { Reporter } from '../output/reporter.js'
import { fieldNames, idFromText, idRule } from '../plant/plant.js'
import { must, usageError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import { shellWord } from '../platform/shell.js'
import type { Address } from '../stores/common/address.js'
import { maxSearch } from '../stores/common/query.js'
import { type Right, rights } from '../stores/common/token-store.js'
import type { GlobalOptions, PlantsCommand } from './command.js'

export interface FilterOptions extends GlobalOptions {
  /** False for plants without one. */
  tag?: string | false
  search?: string
}

export function addFilters(command: PlantsCommand): PlantsCommand {
  return command
    .option('-t, --tag <text>', 'only plants with this tag')
    .option('--no-tag', 'only plants without a tag')
    .value(
      '--search <text>',
      'only plants whose name or tag contains this text, in any case',
      parseSearch,
    )
}

function parseSearch(flag: string, text: string): string {
  const { length } = Array.from(text)
  if (length <= maxSearch) return text
  throw usageError(
    `${flag} must have at most ${maxSearch} characters, but has ${length}`,
    'Search for a part of it',
  )
}

export interface QueryOptions extends FilterOptions {
  sort: 'id' | 'name' | 'tag'
  desc?: true
  limit?: number
  after?: bigint
}

export function addQuery(command: PlantsCommand): PlantsCommand {
  const sort = 'sort by a field, ignoring case and marks; not at a service'
  command
    .choice('--sort <field>', sort, fieldNames, 'id', (text) =>
      text.startsWith('-') ? 'For descending order: --desc' : undefined,
    )
    .option('--desc', 'sort in descending order')
    .value('-n, --limit <count>', 'at most this many plants', parseCount)
    .alsoAs('-L', '--limit')
    .value('--after <int64>', 'only ids greater than this one, or with --desc less', parseId)
  return addFilters(command)
}

export function addRetry(command: PlantsCommand): PlantsCommand {
  return command.value(
    '--retry <duration>',
    'how long to try to reach a service or a database: 0 to 1h; by default 2s',
    duration('a duration from 0 to 1h', 0, 3_600_000, '10s'),
  )
}

export async function warnOfUselessRetry(
  retry: number | undefined,
  address: Address,
  reporter: Reporter,
): Promise<void> {
  if (retry !== undefined && address.scheme === 'sqlite')
    await reporter.warn('--retry applies to services and databases, and has no effect on a file')
}

/** An unset variable of a shell must not empty a text silently. */
export async function warnOfEmptyTexts(
  options: { name?: string; tag?: string | false },
  reporter: Reporter,
): Promise<void> {
  for (const field of ['name', 'tag'] as const)
    if (options[field] === '')
      await reporter.warn(`--${field} is empty: the ${field} becomes ""`, 'warning')
}

export const rightsRule = `separated by commas: ${rights.join(', ')}`

export function parseRights(flag: string, text: string): readonly Right[] {
  const words = text.split(',').map((word) => word.trim())
  const chosen = words.map((word) => choiceIn(rights, word))
  if (!chosen.includes(undefined)) return rights.filter((right) => chosen.includes(right))
  throw invalidValue(
    flag,
    `one or more of ${rights.join(', ')}, separated by commas`,
    text,
    'create,read',
  )
}

/** @param name of the option, or `id` for an argument. Throws `usage`. */
export function parseId(name: string, text: string): bigint {
  const id = idFromText(text)
  if (id !== undefined) return id
  const failure = invalidValue(name, idRule, text, '1')
  const ids = text.length > 100 ? [] : text.split(',')
  if (ids.length > 1 && ids.every((each) => idFromText(each) !== undefined))
    throw usageError(failure.message, `Separate ids by spaces: ${ids.join(' ')}`)
  if (/^-?\d+(-|\.\.)-?\d+$/.test(text))
    throw usageError(failure.message, 'A range is not supported: give each id, such as 1 2 3')
  const isName = name === 'id' && /^\p{L}[^=]*$/u.test(text)
  const typed = shorten(text) === text ? shellWord(text) : 'TEXT'
  throw isName
    ? usageError(failure.message, `To find plants by their texts: plants list --search ${typed}`)
    : failure
}

export const idsArgument = [
  '<id...>',
  'ids of the plants; "-" for ids or plants on stdin, one on each line',
] as const

/** Undefined for several ids, and for `-`. */
export function singleId([text = '-', ...others]: readonly string[]): bigint | undefined {
  return text === '-' || others.length > 0 ? undefined : parseId('id', text)
}

/** Throws `usage` for a text among the ids that belongs to an option. */
export async function assertNoStrays(
  args: readonly string[],
  command: PlantsCommand,
): Promise<void> {
  const strays = args.filter((text) => text !== '-' && idFromText(text) === undefined)
  if (strays.length === 0) return
  const { strayHint } = await import('./guesses.js')
  const hint = strayHint(command, strays, command.line)
  if (hint === undefined) return
  throw usageError(
    `${command.name()} takes ids, but got ${JSON.stringify(shorten(must(strays[0])))}`,
    hint,
  )
}
