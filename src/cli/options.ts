/*
 * Options that several commands share.
 */
import {
  createDurationParser,
  createValueError,
  findChoice,
  parseCount,
} from '../config/option-values.js'
import { createUsageError } from '../errors.js'
import type { Reporter } from '../output/reporter.js'
import { fieldNames, idRule } from '../plant/fields.js'
import { parseDecimalId } from '../plant/plant.js'
import { type Right, rights } from '../stores/tokens.js'
import type { PlantsCommand } from './command.js'
import type { GlobalOptions } from './global-options.js'

/** The heading in help for the options that few people need, below all other options. */
export const rareOptionsHeading = 'Rare options:'

export interface FilterOptions extends GlobalOptions {
  /**
   * Only plants with this tag match. False stands for `--no-tag`: only plants without a tag match.
   */
  tag?: string | false
  search?: string
}

export function addFilters(command: PlantsCommand): PlantsCommand {
  return command
    .option('-t, --tag <text>', 'only plants with this tag')
    .option('--no-tag', 'only plants without a tag')
    .option(
      '--search <text>',
      'only plants whose name or tag contains this text, ignoring case and accents',
    )
}

export interface QueryOptions extends FilterOptions {
  sort: 'id' | 'name' | 'tag'
  desc?: true
  limit?: number
  after?: bigint
}

/** Adds the options of `list` and `export`: filters, order and limits. */
export function addQuery(command: PlantsCommand): PlantsCommand {
  const sort = 'sort by a field, ignoring case and accents; not supported by services'
  const after = 'only plants with greater ids; in a list by id with --desc, smaller ids'
  command
    .choice('--sort <field>', sort, fieldNames, { defaultValue: 'id' })
    .option('--desc', 'sort in descending order')
    .value('--limit <count>', 'at most this many plants', parseCount)
    .value('--after <int64>', after, parseId)
  return addFilters(command)
}

export function addRetry(command: PlantsCommand): PlantsCommand {
  return command.value(
    '--retry <duration>',
    'time to keep trying to reach a service or a database, from 0 to 1h; by default 2s',
    createDurationParser('a duration from 0 to 1h', 0, 3_600_000, '10s'),
  )
}

/**
 * Warns of an empty name or tag, which may come from an unset variable of a shell.
 *
 * @param tagHint how to have a plant without a tag
 */
export async function warnOfEmptyTexts(
  options: { name?: string; tag?: string | false },
  tagHint: string,
  reporter: Reporter,
): Promise<void> {
  for (const field of ['name', 'tag'] as const) {
    const hint = field === 'tag' ? `. ${tagHint}` : ''
    if (options[field] === '')
      await reporter.warn(`--${field} is empty, so the ${field} becomes ""${hint}`, 'warning')
  }
}

export const rightsRule = `separated by commas: ${rights.join(', ')}`

/** Parses rights such as `create,read` into the order of `rights`, each of them once. */
export function parseRights(flag: string, text: string): readonly Right[] {
  const chosenRights = text.split(',').map((name) => findChoice(rights, name.trim()))
  if (!chosenRights.includes(undefined))
    return rights.filter((right) => chosenRights.includes(right))
  const rule = `one or more of ${rights.join(', ')}, separated by commas`
  throw createValueError(flag, rule, text, 'create,read')
}

/**
 * Whether a text begins with a dash that is not a hyphen. Word processors and chats change `--id`
 * to `–id`, and people copy commands from there.
 */
export function beginsWithLongDash(text: string): boolean {
  return /^[\u2010-\u2015\u2212]/.test(text)
}

export const hyphensHint = 'Options start with plain hyphens, as in --id: type them again'

/**
 * @param name the name of the option, or `id` for an argument
 * @throws {PlantsError} `usage` for a text that is not an id
 */
export function parseId(name: string, text: string): bigint {
  const id = parseDecimalId(text)
  if (id !== undefined) return id
  const { message, hint } = createValueError(name, idRule, text, '1')
  if (name !== 'id') throw createUsageError(message, hint)
  throw createUsageError(message, chooseIdHint(text))
}

export const findIdsHint = 'To find the ids: plants list --search TEXT'

/** Says how a command gets the ids that another command prints. The rest of its line stays. */
export function formatPipeHint(source: string): string {
  return `write - for the ids, and begin the line with: ${source} |`
}

const pipeAllHint = formatPipeHint('plants list --store STORE')
const allIdsHint = `To show all plants: plants list. To change or delete them, ${pipeAllHint}`

/** Chooses a hint for a text that is not an id, by what the text probably was meant to be. */
function chooseIdHint(text: string): string {
  if (beginsWithLongDash(text)) return hyphensHint
  if (/[,;]|^\d+(?:-|\.\.+|:)\d+$/.test(text))
    return `Separate ids by spaces: 1 2 3. For a range, ${formatPipeHint('seq 1 5')}`
  if (/^(?:all|\*)$/i.test(text)) return allIdsHint
  if (/^(?:\+|-?0)\d+$|^[-+]?\d+\.\d*$/.test(text))
    return 'Write an id in plain digits, without leading zeros, a plus sign or a point: 7'
  return findIdsHint
}
