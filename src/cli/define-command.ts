import { defaultOf, type SettingName, settingNames, settingOf } from '../config/table.js'
import { type PlantField, textsInWords } from '../plant/fields.js'
import { parseInt64 } from '../plant/json.js'
import { idRuleFor } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { invalidValue, type OutputFormat, parseCount, parseRetry, parseText, type Values } from '../platform/values.js'
import { type Right, rights } from '../stores/common/store.js'

/** The definition of a command, from which commander's is made. `run` imports what is slow to load. */
export interface CommandDefinition {
  name: string
  description: string
  arguments?: readonly ArgumentDefinition[]
  options?: readonly OptionDefinition[]
  /** the settings whose global options mean more here, so that help lists them with its own */
  settings?: readonly SettingName[]
  /** what it prints; by default everything but csv and tsv */
  formats?: readonly OutputFormat[]
  /** subcommands, of a command without `run` */
  commands?: readonly CommandDefinition[]
  /** The lines are not wrapped, because some are shell commands. */
  notes?: readonly { title: string; lines: readonly string[] }[]
  /** three at most */
  examples?: readonly string[]
  run?(given: Given, io: Io): Promise<void>
}

export interface ArgumentDefinition {
  /** `<id>`, `[shell]` or `[files...]` */
  name: string
  description: string
  values?: Values
  /** Parses a value. Throws `malformed`. */
  parse?(name: string, text: string): unknown
}

export interface OptionDefinition {
  /** `--limit <count>`, `-y, --yes`, `-n, --name <text>` or `--no-color` */
  flags: string
  description: string
  /** the title in the help above this option and those after it */
  group?: string
  /** the valid values */
  choices?: readonly string[]
  /** the values for shell completion, if there are no choices */
  values?: Values
  /** as it would be typed */
  default?: string
  /** Parses a value. Throws `malformed`. */
  parse?(flag: string, text: string): unknown
  /** the options that it cannot be used with, in camel case */
  conflicts?: string[]
}

interface Given<Args = string[], Flags = object> {
  args: Args
  /** its options and the global ones, in camel case */
  flags: GlobalFlags & Flags
  formats: readonly OutputFormat[]
}

/** Other names of commands: those of other programs, and synonyms, so that nobody has to remember which noun has which verb. */
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

/** Defines a command. The types of its arguments and options determine the types that `run` receives. */
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

/** The options of every command: those of the settings, and a few others. */
export const globalOptions: readonly OptionDefinition[] = [
  ...settingNames.flatMap((name) => {
    const { flag, short, meaning, isSwitch, values } = settingOf(name)
    if (flag === undefined) return []
    const flags = short === undefined ? flag : `${short}, ${flag}`
    return { flags, description: isSwitch ? meaning : `${meaning}; by default ${defaultOf(name)}`, ...(values && { values }) }
  }),
  ...ownOptions,
]

export type GlobalFlags = OptionValues<typeof ownOptions> & { store?: string | undefined; output?: string | undefined }

type FieldFlags<Field> = Field extends { name: `${infer Letter}${infer Rest}`; type: infer Type extends string }
  ? `-${Letter}, --${Letter}${Rest} <${Type}>`
  : never

/** The flags of the option for a field of a NewPlant, which its first letter is short for. */
export function fieldFlags<Field extends PlantField>({ name, type }: Field): FieldFlags<Field> {
  return `-${name[0]}, --${name} <${type}>` as FieldFlags<Field> // which TypeScript cannot compute
}

/** The options that select plants by their texts. */
export const filterOptions = [
  { flags: '-t, --tag <text>', description: 'only plants with this tag' },
  { flags: '--search <text>', description: `only plants whose ${textsInWords} contains this text, ignoring the case of A to Z` },
] as const satisfies readonly OptionDefinition[]

/** The options that select some of the plants. */
export const queryOptions = [
  { flags: '--limit <count>', description: 'at most this many plants', parse: parseCount },
  { flags: '--after <int64>', description: 'only ids greater than this one', parse: parseId },
  ...filterOptions,
] as const satisfies readonly OptionDefinition[]

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

/** Parses some of the rights, separated by commas. */
export function parseRights(flag: string, text: string): readonly Right[] {
  const given = parseWords(rights, 'create,read')(flag, text)
  return rights.filter((right) => given.includes(right))
}

/** Returns a parser for some of these words, separated by commas, without duplicates. */
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

/** The option of commands that create plants at a service. */
export const retryOption = {
  flags: '--retry <duration>',
  description: 'how long to retry while a service refuses connections: 0 to 1h; by default 2s',
  parse: parseRetry,
} as const satisfies OptionDefinition

/** Parses an id in JSON's number grammar, for the option or argument with this name. */
export function parseId(name: string, text: string): bigint {
  const id = parseInt64(text)
  if (id !== undefined) return id
  throw invalidValue(name, idRuleFor(text), text, '1')
}

type ArgumentValues<Arguments extends readonly ArgumentDefinition[]> = Arguments extends readonly [{ name: `[${string}...]` }]
  ? string[]
  : { -readonly [Index in keyof Arguments]: ArgumentValue<Arguments[Index]> }
type ArgumentValue<One> = One extends { parse(name: string, text: string): infer Value } ? Value : string | OptionalOf<One>
type OptionalOf<One> = One extends { name: `[${string}` } ? undefined : never

/**
 * The values of options as commander gives them: `--id-from <int64>` gives `{ idFrom?: string }`, or the type of `parse` or `choices`,
 * `--yes` gives `{ yes?: boolean }`, and `--journal <path>` with `--no-journal` gives `{ journal?: string | false }`. An option with a default is required.
 */
export type OptionValues<Options extends readonly OptionDefinition[]> = {
  [One in Options[number] as One extends { default: string } ? never : NameOf<One['flags']>]?: ValueOf<One, Options[number]>
} & {
  [One in Options[number] as One extends { default: string } ? NameOf<One['flags']> : never]: ValueOf<One, Options[number]>
}

type ValueOf<One extends OptionDefinition, All extends OptionDefinition> = One extends { flags: `--no-${string}` }
  ? NameOf<One['flags']> extends NameOf<Exclude<All, One>['flags']>
    ? false
    : boolean
  : One extends { parse(flag: string, text: string): infer Value }
    ? Value
    : One extends { choices: readonly (infer Choice)[] }
      ? Choice
      : One['flags'] extends `${string} <${string}>`
        ? string
        : boolean

type NameOf<Flags extends string> = Flags extends `${string}, ${infer Last}` ? NameOf<Last> : NameOfOne<Flags>
type NameOfOne<Flags extends string> = Flags extends `--no-${infer Name}` | `${string}--${infer Name} <${string}>`
  ? CamelCase<Name>
  : Flags extends `${string}--${infer Name}`
    ? CamelCase<Name>
    : never
type CamelCase<Text extends string> = Text extends `${infer Word}-${infer Rest}` ? `${Word}${Capitalize<CamelCase<Rest>>}` : Text
