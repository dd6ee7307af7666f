import { parseDuration, parseOutput, parseSwitch, parseText } from '../flags.js'

/** What a run goes by. Adding a setting is one line here, a property of `GlobalFlags` and, where it is a flag, an option in `run.ts`. */
export const settingsTable = {
  store: row('--store', 'PLANTS_STORE', ['user'], parseText, 'local', 'which store: a saved name or an address'),
  output: row(
    '--output',
    'PLANTS_OUTPUT',
    ['user'],
    parseOutput,
    noValue('text on a terminal, else json'),
    'how answers look: text or json',
  ),
  timeout: row('--timeout', 'PLANTS_TIMEOUT', ['user', 'store'], parseDuration, '30s', 'how long to wait for a store'),
  'ca-cert': row(
    '--ca-cert',
    'PLANTS_CA_CERT',
    ['user', 'store'],
    parseText,
    noValue('those of the system'),
    'a file of PEM certificates to trust',
  ),
  'allow-http': row(
    '--allow-http',
    'PLANTS_ALLOW_HTTP',
    ['store'],
    parseSwitch,
    'false',
    'send the token without TLS, also to other machines',
  ),
  'token-command': row(undefined, undefined, ['store'], parseCommand, noValue('none'), 'a command that prints the token'),
}

export type SettingName = keyof typeof settingsTable
export const settingNames = Object.keys(settingsTable) as SettingName[] // as its type says

/** Where a value is kept: for all that a user does, or together with one store. */
export type Scope = 'user' | 'store'

/** One setting: how it is given, what it may be, and what it means. */
export interface Setting<Value> {
  flag: string | undefined
  variable: string | undefined
  /** where it can be saved */
  scopes: Scope[]
  /**
   * Reads a value.
   *
   * @param source where it was given, for the message of the error
   * @throws {PlantsError} `malformed`
   */
  parse(source: string, text: string): Value
  /** the value by default, or in words what holds without one */
  preset: string | { words: string }
  meaning: string
}

/** Reads a command: at least one word. */
function parseCommand(source: string, text: string): string {
  return parseText(source, text.trim())
}

/** What holds for a setting that has no value by default. */
function noValue(words: string): { words: string } {
  return { words }
}

function row<Value>(
  flag: string | undefined,
  variable: string | undefined,
  scopes: Scope[],
  parse: (source: string, text: string) => Value,
  preset: string | { words: string },
  meaning: string,
): Setting<Value> {
  return { flag, variable, scopes, parse, preset, meaning }
}

/** What holds by default, in words. */
export function presetOf(name: SettingName): string {
  const { preset } = settingsTable[name]
  return typeof preset === 'string' ? preset : preset.words
}
