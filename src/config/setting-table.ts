import { parseNonEmptyString, parseOutput, parseSwitch, parseTimeout } from './option-values.js'

/*
 * The only list of the settings. An option of the command line, an environment variable, help, the
 * schema of the settings file and the commands `config` and `stores add` all follow from an entry.
 */
const settingsTable = {
  store: {
    flags: '-s, --store <address>',
    variable: 'PLANTS_STORE',
    scopes: ['user'],
    parse: parseNonEmptyString,
    default: 'local',
    description: 'store to use: a saved name, a path or an address',
  },
  output: {
    flags: '-o, --output <format>',
    variable: 'PLANTS_OUTPUT',
    scopes: ['user'],
    parse: parseOutput,
    default: { label: 'text on a terminal, otherwise NDJSON' },
    description: 'output format',
  },
  timeout: {
    flags: '--timeout <duration>',
    variable: 'PLANTS_TIMEOUT',
    scopes: ['user', 'store'],
    parse: parseTimeout,
    default: '30s',
    description: 'time to wait for the store, such as 500ms, 30s or 2m',
  },
  'ca-cert': {
    flags: '--ca-cert <path>',
    variable: 'PLANTS_CA_CERT',
    scopes: ['user', 'store'],
    parse: parseNonEmptyString,
    default: { label: 'those of Node.js and the system' },
    description: 'file with the PEM certificates to trust',
  },
  'allow-http': {
    flags: '--allow-http',
    variable: 'PLANTS_ALLOW_HTTP',
    scopes: ['store'],
    parse: parseSwitch,
    isForServices: true,
    isSwitch: true,
    default: 'false',
    description: 'send the token to other machines without TLS',
  },
  'token-command': {
    scopes: ['store'],
    parse: (source, rawValue) => parseNonEmptyString(source, rawValue.trim()),
    isForServices: true,
    default: { label: 'none' },
    description: 'shell command that prints the token',
  },
} satisfies Record<string, Setting>

interface Setting {
  /** Every command has the option with these flags. A setting without flags can only be saved. */
  flags?: string
  /** The environment variable that has the value, such as `PLANTS_STORE`. */
  variable?: string
  /** The parts of the settings file in which the setting can be saved. */
  scopes: Scope[]
  /**
   * @param source the error of a wrong value names it by this, such as `--timeout`
   * @throws {PlantsError} `usage`
   */
  parse(source: string, rawValue: string): unknown
  /** The default value, or a label for people that says what happens without a value. */
  default: string | { label: string }
  description: string
  /** The setting is saved as true or false, not as a string. */
  isSwitch?: boolean
  /** The setting has an effect only on stores that ask for a token. */
  isForServices?: boolean
}

/** A setting of the user is saved for all stores, and a setting of a store with one of them. */
export type Scope = 'user' | 'store'

export type SettingName = keyof typeof settingsTable
export type SettingValue<Name extends SettingName> = ReturnType<
  (typeof settingsTable)[Name]['parse']
>
// TypeScript takes the keys of any object for strings, because the object might have more of them.
export const settingNames = Object.keys(settingsTable) as SettingName[]

export function getSetting(name: SettingName): Setting {
  return settingsTable[name]
}

export function listSettings(scope: Scope): SettingName[] {
  return settingNames.filter((name) => getSetting(name).scopes.includes(scope))
}

/** Returns the default for people: `30s`, or a description such as `none`. */
export function getDefault(name: SettingName): string {
  const { default: defaultValue } = getSetting(name)
  return typeof defaultValue === 'string' ? defaultValue : defaultValue.label
}

/** Returns the key under which commander keeps an option, such as `caCert` for `ca-cert`. */
export function toOptionKey(name: SettingName): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Converts a value of commander to a string. commander keeps the value of a switch as true or
 * false.
 */
export function toSettingText(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}
