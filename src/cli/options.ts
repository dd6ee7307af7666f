import { Option } from 'commander'
import { fieldNames, textsInWords } from '../plant/fields.js'
import { idFromText, idRuleFor } from '../plant/plant.js'
import type { TableLayout } from '../plant/records.js'
import { malformed } from '../platform/errors.js'
import { invalidValue, parseCount, parseRetry } from '../platform/values.js'
import { maxSearch, type Right, rights } from '../stores/common/store.js'
import { takesCredential } from '../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from './command.js'
import type { Settings } from './settings.js'

export interface FilterOptions extends GlobalOptions {
  /** false for plants without one */
  tag?: string | false
  search?: string
}

export function addFilters(command: PlantsCommand): PlantsCommand {
  return command
    .option('-t, --tag <text>', 'only plants with this tag')
    .option('--no-tag', 'only plants without a tag')
    .option('--search <text>', `only plants whose ${textsInWords} contains this text, in any case`, parseSearch)
}

function parseSearch(text: string): string {
  const { length } = Array.from(text)
  if (length <= maxSearch) return text
  throw malformed(`--search must have at most ${maxSearch} characters, but has ${length}`, 'Search for a part of it')
}

export interface QueryOptions extends FilterOptions {
  sort: 'id' | 'name' | 'tag'
  desc?: true
  limit?: number
  after?: bigint
  delimiter?: TableLayout['delimiter']
}

export function addQuery(command: PlantsCommand): PlantsCommand {
  const sort = 'sort by a field, ignoring the case of A to Z; not at a service'
  command
    .choice('--sort <field>', sort, fieldNames, 'id', (text) =>
      text.startsWith('-') ? 'For descending order: --desc' : undefined,
    )
    .option('--desc', 'sort in descending order')
    .option('--limit <count>', 'at most this many plants', (text) => parseCount('--limit', text))
    .option('--after <int64>', 'only ids greater than this one, or with --desc less', (text) =>
      parseId('--after', text),
    )
  return addFilters(command).choice('--delimiter <character>', 'of csv; by default a comma', [',', ';', '|'])
}

/** @throws {PlantsError} `malformed` if the output is not csv */
export function tableLayout({ delimiter }: Pick<QueryOptions, 'delimiter'>, output: string): TableLayout {
  if (delimiter !== undefined && output !== 'csv')
    throw malformed(`--delimiter applies to csv, but the output is ${output}`, 'For csv: --output csv')
  return { delimiter }
}

export const retryOption = new Option(
  '--retry <duration>',
  'how long to try to reach a service or a database: 0 to 1h; by default 2s',
).argParser((text) => parseRetry('--retry', text))

export async function warnOfUselessRetry(retry: number | undefined, { store, warn }: Settings): Promise<void> {
  if (retry !== undefined && !takesCredential(store))
    await warn('--retry applies to services and databases, and has no effect on a file')
}

/** Some of the rights, separated by commas. */
export function allowOption(description: string): Option {
  return new Option('--allow <rights>', `${description}, separated by commas: ${rights.join(', ')}`).argParser(
    (text): readonly Right[] => {
      const words = text.split(',').map((word) => word.trim())
      if (words.every((word) => rights.some((right) => right === word)))
        return rights.filter((right) => words.includes(right))
      throw invalidValue('--allow', `one or more of ${rights.join(', ')}, separated by commas`, text, 'create,read')
    },
  )
}

/** @param name of the option, or `id` for an argument. Throws `malformed`. */
export function parseId(name: string, text: string): bigint {
  const id = idFromText(text)
  if (id !== undefined) return id
  const failure = invalidValue(name, idRuleFor(text), text, '1')
  if (/^-?\d+(,-?\d+)+$/.test(text)) throw malformed(failure.message, 'Separate ids by spaces: 1 2 3')
  const isName = name === 'id' && /^\p{L}/u.test(text)
  throw isName ? malformed(failure.message, 'To find plants by their texts: plants list --search TEXT') : failure
}

export const idsArgument = ['<id...>', 'ids of the plants; "-" for ids or plants on stdin, one on each line'] as const

/** undefined for several ids, and for `-` */
export function singleId([text = '-', ...others]: readonly string[]): bigint | undefined {
  return text === '-' || others.length > 0 ? undefined : parseId('id', text)
}
