import { isAbsolute } from 'node:path'
import envPaths from 'env-paths'
import { PlantsError } from './errors.js'
import { type GlobalFlags, parseDuration, parseOutput } from './flags.js'
import type { Io, Output } from './io.js'
import { parseAddress } from './stores/open.js'
import type { Address } from './stores/store.js'

/** What a run goes by: flag > environment > default. */
export interface Settings {
  store: Address
  /** how answers look: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** how errors and warnings look; JSON only when it was asked for */
  errors: 'text' | 'json'
  /** whether somebody is there to answer questions */
  mayAsk(): boolean
  /** milliseconds to wait for a store */
  timeout: number
  /** whether to colour what goes to this stream */
  colors(stream: Output): boolean
}

/** @throws {PlantsError} `malformed` for a value that a setting cannot have */
export function resolveSettings(flags: GlobalFlags, io: Io): Settings {
  const output = flags.output === undefined ? undefined : parseOutput('--output', flags.output)
  const address = flags.store ?? (io.env['PLANTS_STORE'] || 'local')
  return {
    store: parseAddress(address, { resolvePath: io.resolvePath, dataDirectory: () => dataDirectory(io) }),
    output: output ?? (io.stdout.isTerminal ? 'text' : 'json'),
    errors: output ?? 'text',
    mayAsk: () => flags.input !== false && io.stdin.isTerminal && io.stderr.isTerminal,
    timeout: parseDuration('--timeout', flags.timeout ?? '30s'),
    colors: (stream) => mayColor(stream, flags, io),
  }
}

/** Where the embedded store lives: PLANTS_DATA_DIR, else the system's place for a user's data. */
function dataDirectory({ env, resolvePath }: Io): string {
  if (env['PLANTS_DATA_DIR']) return resolvePath(env['PLANTS_DATA_DIR'])
  const { data } = envPaths('plants', { suffix: '' })
  if (isAbsolute(data)) return data
  throw new PlantsError('malformed', 'There is no home directory to keep the store in', {
    hint: 'Set HOME or PLANTS_DATA_DIR, or choose a file with --store PATH',
  })
}

/** See https://no-color.org and https://force-color.org: the flag wins, then FORCE_COLOR, then NO_COLOR, then the terminal. */
export function mayColor(stream: Output, flags: GlobalFlags, { env }: Io): boolean {
  if (flags.color === false) return false
  if (env['FORCE_COLOR'] !== undefined) return !['0', 'false'].includes(env['FORCE_COLOR'])
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb' && stream.isTerminal
}
