/*
 * Options that several commands share.
 */
import {
  createDurationParser,
  createValueError,
  parseChoice,
  parseCount,
} from '../config/option-values.js'
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
    .option(
      '--search <text>',
      'only plants whose name or tag contains this text, ignoring case and accents',
    )
    .option('-t, --tag <text>', 'only plants with this tag')
    .option('--no-tag', 'only plants without a tag')
}

export interface QueryOptions extends FilterOptions {
  sort: 'id' | 'name' | 'tag'
  desc?: true
  limit?: number
  after?: bigint
}

/** Adds the options of `list` and `export`: filters, order and limits. */
export function addQuery(command: PlantsCommand): PlantsCommand {
  const sort = 'sort by a field, ignoring case and accents; services sort only by id'
  const after = 'only plants with ids above this one or, in descending order of ids, below it'
  return addFilters(command)
    .choice('--sort <field>', sort, fieldNames, {
      defaultValue: 'id',
      hint: 'For the reverse order, add --desc',
    })
    .option('--desc', 'sort in descending order')
    .value('--limit <count>', 'at most this many plants', parseCount)
    .value('--after <id>', after, parseId)
}

export function addRetry(command: PlantsCommand): PlantsCommand {
  return command.value(
    '--retry <duration>',
    'how long to keep trying to reach a service or a database, up to 1h (default: 2s)',
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
  const chosenRights = text
    .split(',')
    .map((name) => parseChoice(flag, name.trim(), rights, `For example: ${flag} create,read`))
  return rights.filter((right) => chosenRights.includes(right))
}

function parseId(flag: string, text: string): bigint {
  const id = parseDecimalId(text)
  if (id !== undefined) return id
  const rule = /^-?[1-9]\d+$/.test(text) ? idRule : 'an id in plain digits'
  throw createValueError(flag, rule, text, '1')
}
