import { warn } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseChoice, parseCount, parseText } from '../../platform/values.js'
import { existsPolicies } from '../../stores/conflict.js'
import { kindNames } from '../../stores/store.js'
import { formatNames } from '../../transfer/formats/format.js'
import type { ImportOptions as ImportOrder } from '../../transfer/import/import.js'
import { resolveSettings } from '../context.js'
import { parseId } from '../flags.js'
import type { Settings } from '../settings.js'
import type { ImportFlags } from './copies-spec.js'

export async function importPlants(files: string[], flags: ImportFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const order = readOrder(files, flags, settings, io)
  const idle = order.concurrency === undefined ? order.rate && '--rate' : '--concurrency'
  const { kind } = settings.store
  if (idle && kind !== 'remote') await warn(io, `${idle} is about services, and changes nothing for ${kindNames[kind]}`, settings)
  const { runImport } = await import('../import-run.js')
  await runImport(order, settings, io)
}

function readOrder(files: string[], flags: ImportFlags, settings: Settings, io: Io): ImportOrder {
  const path = (flag: string, text: string | undefined) => (text === undefined ? undefined : io.resolvePath(parseText(flag, text)))
  const count = (flag: string, text: string | undefined) => (text === undefined ? undefined : parseCount(flag, text))
  refuseTogether(flags)
  refuseForService(flags, settings)
  return {
    plan: {
      inputs: inputsOf(files, io),
      format: flags.format === undefined ? undefined : parseChoice('--format', flags.format, formatNames),
      rules: { map: parseMap(flags.map), idFrom: flags.idFrom === undefined ? undefined : parseId('--id-from', flags.idFrom) },
      ifExists: parseChoice('--if-exists', flags.ifExists, existsPolicies),
      stopsAtRefusal: parseChoice('--on-error', flags.onError, ['continue', 'stop']) === 'stop',
      maxErrors: count('--max-errors', flags.maxErrors) ?? Infinity,
    },
    rejects: path('--rejects', flags.rejects),
    journal: flags.journal === false ? false : path('--journal', flags.journal),
    isRestart: flags.restart === true,
    staging: flags.check ? 'check' : flags.atomic ? 'atomic' : undefined,
    concurrency: count('--concurrency', flags.concurrency),
    rate: count('--rate', flags.rate?.replace(/\/s$/, '')),
  }
}

function inputsOf(files: string[], io: Io): ImportOrder['plan']['inputs'] {
  if (files.length === 0 && !io.stdin.isPiped)
    throw new PlantsError('malformed', 'import needs a file, or plants on stdin', { hint: 'For example: plants import plants.ndjson' })
  const names = files.length === 0 ? ['-'] : files
  if (names.filter((name) => name === '-').length > 1)
    throw new PlantsError('malformed', 'Stdin can be read only once', { hint: 'Give "-" once' })
  return names.map((name) => (name === '-' ? { path: '-', name: 'stdin' } : { path: io.resolvePath(parseText('file', name)), name }))
}

/** `name=CommonName,tag=Family` */
function parseMap(text: string | undefined): ImportOrder['plan']['rules']['map'] {
  if (text === undefined) return {}
  const entries = text.split(',').map((part) => /^\s*(id|name|tag)\s*=\s*(.*\S)\s*$/s.exec(part) ?? [])
  const fields = entries.map(([, field]) => field)
  if (fields.includes(undefined) || new Set(fields).size < fields.length)
    throw new PlantsError(
      'malformed',
      `--map must name a field of the input for id, name or tag, but was ${JSON.stringify(shorten(text))}`,
      {
        hint: 'For example: --map name=CommonName,tag=Family',
      },
    )
  return Object.fromEntries(entries.map(([, field = '', source = '']) => [field, source]))
}

function refuseTogether(flags: ImportFlags): void {
  const given: [string, boolean][] = [
    ['--check', flags.check === true],
    ['--atomic', flags.atomic === true],
    ['--restart', flags.restart === true],
  ]
  const names = given.flatMap(([name, isGiven]) => (isGiven ? name : []))
  if (names.length > 1 && names[0] !== undefined)
    throw new PlantsError('malformed', `${names[0]} and ${names[1]} do not go together`, { hint: `Leave out one of them` })
}

/** What takes a look at what a store holds, which a service does not let one have. */
function refuseForService({ ifExists, atomic }: ImportFlags, { store }: Settings): void {
  if (store.kind !== 'remote') return
  const flag = ifExists === 'same' ? '--if-exists same' : atomic ? '--atomic' : undefined
  if (flag === undefined) return
  const hint =
    flag === '--atomic' ? 'Leave it out: an import goes on where it stopped' : 'Use --if-exists skip, or do this where its file is'
  throw new PlantsError('malformed', `${flag} is not for ${store.name}: its service can create plants, but not show or undo them`, { hint })
}
