import { defaultOf, type SettingName, settingNames, settingOf } from '../config/setting-table.js'
import { fieldNames, type PlantField, textsInWords } from '../plant/fields.js'
import { idFromText, idRuleFor } from '../plant/plant.js'
import type { TableLayout } from '../plant/records.js'
import { malformed } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import {
  invalidValue,
  type OutputFormat,
  parseChoice,
  parseCount,
  parseRetry,
  parseText,
  type Values,
} from '../platform/values.js'
import { maxSearch, type Right, rights } from '../stores/common/store.js'

/** `run` imports what is slow to load. */
export interface CommandDefinition {
  name: string
  description: string
  arguments?: readonly ArgumentDefinition[]
  options?: readonly OptionDefinition[]
  /** whose global options mean more here: help lists them with its own */
  settings?: readonly SettingName[]
  /** by default everything but csv and tsv */
  formats?: readonly OutputFormat[]
  /** only without `run` */
  commands?: readonly CommandDefinition[]
  /** not wrapped, because some lines are shell commands */
  notes?: readonly { title: string; lines: readonly string[] }[]
  /** three at most */
  examples?: readonly string[]
  run?(given: Given, io: Io): Promise<void>
}

export interface ArgumentDefinition {
  /** `<file>`, `<id...>` or `[files...]` */
  name: string
  description: string
  values?: Values
  /** Throws `malformed`. */
  parse?(name: string, text: string): unknown
}

export interface OptionDefinition {
  /** `--limit <count>`, `-y, --yes`, `-n, --name <text>` or `--no-color` */
  flags: string
  description: string
  /** the title above this option and those after it */
  group?: string
  choices?: readonly string[]
  /** for shell completion, if there are no choices */
  values?: Values
  /** as it would be typed */
  default?: string
  /** Throws `malformed`. */
  parse?(flag: string, text: string): unknown
  /** `parse` then returns an array, and those of all values are one */
  isRepeatable?: true
  /** in camel case */
  conflicts?: readonly string[]
}

interface Given<Args = string[], Flags = object> {
  args: Args
  flags: GlobalFlags & Flags
  formats: readonly OutputFormat[]
}

/** Words of other programs and synonyms, so that nobody has to remember which noun has which verb. */
export const aliases: Readonly<Record<string, readonly string[]>> = {
  create: ['new', 'add'],
  get: ['show'],
  list: ['ls'],
  delete: ['rm', 'remove'],
  remove: ['rm', 'delete'],
  revoke: ['rm', 'delete', 'remove'],
  unset: ['rm', 'delete', 'remove'],
  logout: ['rm', 'delete', 'remove'],
  stores: ['store'],
  tokens: ['token'],
  config: ['setting', 'settings'],
}

export function defineCommand<
  const Arguments extends readonly ArgumentDefinition[] = [],
  const Options extends readonly OptionDefinition[] = [],
>(
  definition: Omit<CommandDefinition, 'arguments' | 'options' | 'commands' | 'run'> & {
    arguments?: Arguments
    options?: Options
    run(given: Given<ArgumentValues<Arguments>, OptionValues<Options>>, io: Io): Promise<void>
  },
): CommandDefinition {
  return definition
}

const ownOptions = [
  { flags: '-v, --verbose', description: 'log settings and their sources, requests and responses on stderr' },
  { flags: '-q, --quiet', description: 'print only results and errors: no confirmations, warnings or progress' },
  { flags: '--no-input', description: 'never prompt; also PLANTS_NO_INPUT and CI' },
  { flags: '--no-color', description: 'no colours; also NO_COLOR' },
] as const satisfies readonly OptionDefinition[]

export const globalOptions: readonly OptionDefinition[] = [
  ...settingNames.flatMap((name) => {
    const { flag, meaning, isSwitch, values } = settingOf(name)
    const description = isSwitch ? meaning : `${meaning}; by default ${defaultOf(name)}`
    return flag === undefined ? [] : { flags: flag, description, ...(values && { values }) }
  }),
  ...ownOptions,
]

export type GlobalFlags = OptionValues<typeof ownOptions> & { store?: string | undefined; output?: string | undefined }

type FieldFlags<Field extends PlantField> = Field extends { short: string }
  ? `-${Field['short']}, --${Field['name']} <${Field['type']}>`
  : `--${Field['name']} <${Field['type']}>`

export function fieldFlags<Field extends PlantField>(field: Field): FieldFlags<Field> {
  const short = 'short' in field ? `-${field.short}, ` : ''
  return `${short}--${field.name} <${field.type}>` as FieldFlags<Field> // which TypeScript cannot compute
}

export const filterOptions = [
  { flags: '-t, --tag <text>', description: 'only plants with this tag', values: 'tag' },
  { flags: '--no-tag', description: 'only plants without a tag' },
  {
    flags: '--search <text>',
    description: `only plants whose ${textsInWords} contains this text, in any case`,
    parse: parseSearch,
  },
] as const satisfies readonly OptionDefinition[]

export const queryOptions = [
  {
    flags: '--sort <field>',
    description: `sort by a field (${fieldNames.join(', ')}), ignoring the case of A to Z; not at a service`,
    choices: fieldNames,
    default: 'id',
    parse: (flag: string, text: string) =>
      parseChoice(flag, text, fieldNames, text.startsWith('-') ? 'For descending order: --desc' : undefined),
  },
  { flags: '--desc', description: 'sort in descending order' },
  { flags: '--limit <count>', description: 'at most this many plants', parse: parseCount },
  { flags: '--after <int64>', description: 'only ids greater than this one, or with --desc less', parse: parseId },
  ...filterOptions,
] as const satisfies readonly OptionDefinition[]

export const tableOptions = [
  {
    flags: '--delimiter <character>',
    description: 'the delimiter of csv; by default a comma',
    choices: [',', ';', '|'],
  },
] as const satisfies readonly OptionDefinition[]

/** @throws {PlantsError} `malformed` if the output is not csv */
export function tableLayout({ delimiter }: OptionValues<typeof tableOptions>, output: string): TableLayout {
  if (delimiter !== undefined && output !== 'csv')
    throw malformed(`--delimiter applies to csv, but the output is ${output}`, 'For csv: --output csv')
  return { delimiter }
}

export function pathOption<const Flags extends string>(flags: Flags, description: string) {
  return { flags, description, values: 'file', parse: parseText } as const satisfies OptionDefinition
}

export function allowOption<const Default extends string>(description: string, byDefault: Default) {
  return {
    flags: '--allow <rights>',
    description: `${description}, separated by commas: ${rights.join(', ')}`,
    values: rights,
    default: byDefault,
    parse: parseRights,
  } as const satisfies OptionDefinition
}

export function parseRights(flag: string, text: string): readonly Right[] {
  const given = parseWords(rights, 'create,read')(flag, text)
  return rights.filter((right) => given.includes(right))
}

/** Returns a parser of words separated by commas, which drops duplicates. */
export function parseWords<const Word extends string>(words: readonly Word[], example: string) {
  return (flag: string, text: string): readonly Word[] => {
    const given = [...new Set(text.split(',').map((word) => word.trim()))]
    const found = given.flatMap((word) => words.find((each) => each === word) ?? [])
    if (found.length === given.length) return found
    throw invalidValue(flag, `one or more of ${words.join(', ')}, separated by commas`, text, example)
  }
}

export function dryRunOption(description: string) {
  return { flags: '--dry-run', description } as const satisfies OptionDefinition
}

export const retryOption = {
  flags: '--retry <duration>',
  description: 'how long to try to reach a service or a database: 0 to 1h; by default 2s',
  parse: parseRetry,
} as const satisfies OptionDefinition

function parseSearch(flag: string, text: string): string {
  const { length } = Array.from(text)
  if (length <= maxSearch) return text
  throw malformed(`${flag} must have at most ${maxSearch} characters, but has ${length}`, 'Search for a part of it')
}

export function parseId(name: string, text: string): bigint {
  const id = idFromText(text)
  if (id !== undefined) return id
  throw invalidValue(name, idRuleFor(text), text, '1')
}

export const idsArgument = {
  name: '<id...>',
  description: 'ids of the plants; "-" for ids or plants on stdin, one on each line',
  values: 'id',
} as const satisfies ArgumentDefinition

/** undefined for several ids, and for `-` */
export function singleId([text = '-', ...others]: readonly string[]): bigint | undefined {
  return text === '-' || others.length > 0 ? undefined : parseId('id', text)
}

type ArgumentValues<Arguments extends readonly ArgumentDefinition[]> = Arguments extends readonly [
  { name: `${string}...${string}` },
]
  ? string[]
  : { -readonly [Index in keyof Arguments]: ParsedOf<Arguments[Index], string> }

type ParsedOf<One, Otherwise> = One extends { parse(name: string, text: string): infer Value } ? Value : Otherwise

/**
 * As commander gives them: `--id-from <int64>` gives `{ idFrom?: string }`, or the type of `parse` or `choices`;
 * `--yes` gives `{ yes?: boolean }`; `--tag <text>` with `--no-tag` gives `{ tag?: string | false }`. An option with a
 * default is required.
 */
export type OptionValues<Options extends readonly OptionDefinition[]> = {
  [One in Exclude<Options[number], { default: string }> as NameOf<One['flags']>]?: ValueOf<One, Options[number]>
} & {
  [One in Extract<Options[number], { default: string }> as NameOf<One['flags']>]: ValueOf<One, Options[number]>
}

type ValueOf<One extends OptionDefinition, All extends OptionDefinition> = One extends { flags: `--no-${string}` }
  ? NameOf<One['flags']> extends NameOf<Exclude<All, One>['flags']>
    ? false
    : boolean
  : One extends { choices: readonly (infer Choice)[] }
    ? Choice
    : ParsedOf<One, One['flags'] extends `${string} <${string}>` ? string : boolean>

type NameOf<Flags extends string> = Flags extends `${string}, ${infer Last}`
  ? NameOf<Last>
  : Flags extends `${infer Flag} <${string}`
    ? NameOf<Flag>
    : Flags extends `--${infer Name}`
      ? CamelCase<Name extends `no-${infer Positive}` ? Positive : Name>
      : never
type CamelCase<Text extends string> = Text extends `${infer Word}-${infer Rest}`
  ? `${Word}${Capitalize<CamelCase<Rest>>}`
  : Text
