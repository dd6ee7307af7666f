import { shellWord } from './errors.js'
import { type GlobalFlags, parseDuration, parseOutput } from './flags.js'
import type { Io, Output } from './io.js'
import { parseAddress } from './stores/open.js'
import type { Address, OpenOptions } from './stores/store.js'

/** What a run goes by: flag > environment > default. */
export interface Settings {
  store: Address
  /** what a command in a hint needs to mean this store, such as " --store ./garden.db"; empty when it does without */
  storeFlag: string
  /** how answers look: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** how errors and warnings look; JSON only when it was asked for */
  errors: 'text' | 'json'
  /** whether somebody is there to answer questions */
  mayAsk(): boolean
  /** what it takes to open the store */
  opening: OpenOptions
  /** whether to colour what goes to this stream */
  colors(stream: Output): boolean
}

/** @throws {PlantsError} `malformed` for a value that a setting cannot have */
export async function resolveSettings(flags: GlobalFlags, io: Io): Promise<Settings> {
  const output = flags.output === undefined ? undefined : parseOutput('--output', flags.output)
  const settings: Settings = {
    store: await resolveStore(flags, io),
    storeFlag: flags.store === undefined ? '' : ` --store${flags.store.startsWith('-') ? '=' : ' '}${shellWord(flags.store)}`,
    output: output ?? (io.stdout.isTerminal ? 'text' : 'json'),
    errors: output ?? 'text',
    mayAsk: () => flags.input !== false && io.stdin.isTerminal && io.stderr.isTerminal,
    opening: {
      timeout: parseDuration('--timeout', flags.timeout ?? '30s'),
      clock: io,
      access: async (address) => (await import('./access.js')).accessTo(address, flags, settings, io),
    },
    colors: (stream) => mayColor(stream, flags, io),
  }
  return settings
}

function resolveStore({ store }: GlobalFlags, { env, resolvePath, dataFolder }: Io): Promise<Address> {
  const place = { resolvePath, dataFolder: async () => (env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : dataFolder()) }
  if (store !== undefined) return parseAddress(store, '--store', place)
  return parseAddress(env['PLANTS_STORE'] || 'local', 'PLANTS_STORE', place)
}

/** See https://no-color.org and https://force-color.org: the flag wins, then FORCE_COLOR, then NO_COLOR, then the terminal. */
export function mayColor(stream: Output, flags: GlobalFlags, { env }: Io): boolean {
  if (flags.color === false) return false
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb' && stream.isTerminal
}
