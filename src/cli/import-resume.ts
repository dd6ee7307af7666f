import { grouped } from '../plant/plant.js'
import { usageError } from '../platform/errors.js'
import type { ExistsPolicy } from '../stores/common/change.js'
import {
  type Position,
  parseCheckpoint,
  type SavedImport,
  settledIn,
} from '../transfer/import/checkpoint.js'

/** What an import that may begin again is called with. */
export interface ImportCommand {
  /** Those that determine how records are read and rejected. */
  flags: SavedImport['flags']
  ifExists: ExistsPolicy
}

/**
 * How to begin an import again that has stored plants, without creating one of them twice.
 *
 * @param hasOtherFile whether an input has changed since
 */
export function restartHint(
  { flags: before, position: { counts, numbered } }: SavedImport,
  { flags, ifExists }: ImportCommand,
  { isService, hasOtherFile = false }: { isService: boolean; hasOtherFile?: boolean },
): string {
  // What a service was sent may be stored without a checkpoint.
  const isStored = isService || counts.created + counts.updated + counts.unknown > 0
  const isNumbered = numbered !== undefined || (isService && before['--id-from'] !== undefined)
  const changed = changedFlags(before, flags)
  const isMatched = flags['--match'] !== undefined
  const isOther = (flag: string) =>
    determinesPlants(flag) && !(isMatched && /^--(?:match|id-from)$/.test(flag))
  // A record that is read in another way may be rejected, and take no number, or may have another name.
  const isRenumbered = isNumbered && ((hasOtherFile && !isMatched) || changed.some(isOther))
  const isRemapped =
    changed.includes('--map') && /(?:^|,)id=/.test(`${before['--map']},${flags['--map']}`)
  if (isStored && (isRenumbered || isRemapped || changed.includes('--columns')))
    return `delete what it created, ${isService ? 'and add --restart' : deletion(numbered)}`
  return `add --restart${isStored ? skipping(ifExists, isService) : ''}`
}

/** What makes a repeated import skip what is stored. A service may not be readable. */
export function skipping(ifExists: ExistsPolicy, isService: boolean): string {
  return ifExists === 'error' ? ` --if-exists ${isService ? 'skip' : 'same'}` : ''
}

function deletion(numbered: Position['numbered']): string {
  if (!numbered) return 'and add --restart'
  const { first, last, count } = numbered
  const isWhole = BigInt(last) - BigInt(first) + 1n === BigInt(count)
  return `${isWhole ? '' : 'some of '}the ids ${first} to ${last}, and add --restart`
}

function changedFlags(before: SavedImport['flags'], flags: SavedImport['flags']): string[] {
  const names = new Set([...Object.keys(flags), ...Object.keys(before)])
  return [...names].filter((name) => before[name] !== flags[name])
}

/** @throws {PlantsError} `usage`, unless `isRestart`, for a state that is damaged or of an older version */
export function savedImport(
  state: string | undefined,
  { flags, ifExists }: ImportCommand,
  {
    isService,
    isRestart,
    isOld,
    inputs,
  }: { isService: boolean; isRestart: boolean; isOld: boolean; inputs: number },
): SavedImport | undefined {
  if (state === undefined) return undefined
  const { saved, stored: counts } = parseCheckpoint(state, inputs)
  if (isRestart || (saved && !isOld)) return saved
  // Which numbers it has given is unknown.
  const isNumbered = flags['--id-from'] !== undefined && flags['--match'] === undefined
  const toSkip = `To begin again, add --restart${skipping(ifExists, isService)}`
  const hint = isNumbered ? 'To begin again, delete what it created, and add --restart' : toSkip
  if (!counts) throw usageError('The checkpoint of this import is damaged', hint)
  const stored = `${grouped(counts.created)} created, ${grouped(counts.updated)} updated`
  throw usageError(`An older version of plants began this import: ${stored}`, hint)
}

/** Whether an import must resume an earlier one. Otherwise it may begin anew: nothing is stored. */
export function isResumed(
  saved: SavedImport,
  { flags }: ImportCommand,
  isService: boolean,
): boolean {
  return (
    isService ||
    settledIn(saved.position.counts) > 0 ||
    changedFlags(saved.flags, flags).length === 0
  )
}

/** Throws `usage` for a flag that differs. */
export function assertSameFlags(
  saved: SavedImport,
  command: ImportCommand,
  isService: boolean,
): void {
  const before = saved.flags
  const [changed] = changedFlags(before, command.flags)
  if (changed === undefined) return
  const was =
    before[changed] === undefined
      ? `without ${changed}`
      : `with ${changed} ${before[changed]}`.trimEnd()
  const hint = `Use the same options, or ${restartHint(saved, command, { isService })}`
  throw usageError(`This import was started ${was}`, hint)
}

/** Whether a flag differs that determines which plants are made. */
export function isReadDifferently(
  { flags: before }: SavedImport,
  { flags }: ImportCommand,
): boolean {
  return changedFlags(before, flags).some(determinesPlants)
}

function determinesPlants(flag: string): boolean {
  return flag !== '--rejects' && flag !== '--atomic'
}
