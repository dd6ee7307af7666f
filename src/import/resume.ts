/*
 * How an import starts: it begins, resumes an interrupted one, or is rejected.
 *
 * - An import is found by the paths of its files. With the same contents and options, the same
 *   command resumes it; with others, it is rejected, unless nothing of it is stored.
 * - A file whose records got generated ids is remembered by its contents. Its records would get
 *   other ids the next time, so it is not imported again with generated ids, unless by name.
 * - `--restart` resumes what was begun with it. Otherwise it begins, whatever is saved.
 *
 * docs/design/import-and-resume.md says why.
 */
import { hostname } from 'node:os'
import { PlantsError, usageError } from '../errors.js'
import type { DirectStore } from '../stores/store.js'
import { buildCheckpointId, countDone } from './checkpoint.js'
import type { ImportPlan, OpenInput } from './inputs.js'
import type { Checkpoint, ImportAnswers } from './parse-checkpoint.js'
import { formatRejectsHeader } from './rejects-file.js'

type StartDecision =
  | { type: 'begin' }
  | { type: 'resume'; checkpoint: Checkpoint }
  | { type: 'reject'; error: PlantsError }

/** What a store, or the journal of a service, has of an import. */
export interface SavedImport {
  /** The id of its checkpoint. Undefined for an import that cannot be resumed, such as of stdin. */
  id: string | undefined
  /** The text of its checkpoint, which must be unchanged when it is replaced. */
  state: string | undefined
  /** The parsed text. */
  checkpoint: Checkpoint | 'otherVersion' | 'invalid' | undefined
  /** For each input of an import that generates ids, in their order. */
  rememberedFiles: readonly RememberedFile[]
}

/** The row about the contents of a file. */
interface RememberedFile {
  id: string
  /** The id of the checkpoint of the import that generated ids for its records, if there is one. */
  checkpointId: string | undefined
}

interface SearchOptions {
  checkpoints: Partial<Pick<DirectStore, 'findCheckpoint'>>
  plan: ImportPlan
  /** Of each input; undefined for an import that cannot be resumed. */
  hashes: readonly string[] | undefined
  source: string
  /** The complete address of the store. */
  store: string
  isService: boolean
}

/** Finds an import by the paths of its files, or the same one by contents that are remembered. */
export async function findSavedImport(options: SearchOptions): Promise<SavedImport> {
  const { checkpoints, plan, hashes, source, store } = options
  const paths = plan.inputs.map(({ path }) => path)
  const idOfPaths = hashes && buildCheckpointId(hostname(), store, ...paths)
  const rememberedFiles = await findRememberedFiles(options)
  for (const id of [idOfPaths, ...rememberedFiles.map(({ checkpointId }) => checkpointId)]) {
    const state = id && (await checkpoints.findCheckpoint?.(id))
    if (!state) continue
    const checkpoint = await parseState(state)
    const isSame = checkpoint === 'invalid' || hasSource(checkpoint, source)
    if (id === idOfPaths || isSame) return { id, state, checkpoint, rememberedFiles }
  }
  return { id: idOfPaths, state: undefined, checkpoint: undefined, rememberedFiles }
}

/**
 * Finds the answers with which an interrupted import of the files was begun. No option says yet how
 * they are read, so only their paths and contents count.
 *
 * @throws {PlantsError} `usage` if an import that is finished has generated ids for them
 */
export async function findEarlierAnswers(
  options: Omit<SearchOptions, 'source'> & { hashes: readonly string[] },
): Promise<ImportAnswers | undefined> {
  const { checkpoints, plan, store } = options
  const paths = plan.inputs.map(({ path }) => path)
  const files = await findRememberedFiles({ ...options, plan: { ...plan, idFrom: 'next' } })
  const rememberedIds = files.map(({ checkpointId }) => checkpointId)
  for (const id of [buildCheckpointId(hostname(), store, ...paths), ...rememberedIds]) {
    const state = id && (await checkpoints.findCheckpoint?.(id))
    const checkpoint = state ? await parseState(state) : undefined
    if (typeof checkpoint !== 'object') continue
    if (plan.restart && !checkpoint.restart) continue
    return checkpoint.answers
  }
  const isRemembered = rememberedIds.some((id) => id !== undefined)
  const hasIds = Boolean(plan.map.id) // it is typed where they are
  if (isRemembered && !plan.restart && !plan.match && !hasIds) throw createRepetitionError('add')
  return undefined
}

/** Its schema loads zod, which an import that has no checkpoint does not need. */
async function parseState(state: string): Promise<Checkpoint | 'otherVersion' | 'invalid'> {
  const { parseCheckpoint } = await import('./parse-checkpoint.js')
  return parseCheckpoint(state)
}

async function findRememberedFiles({
  checkpoints,
  plan,
  hashes,
  store,
  isService,
}: Omit<SearchOptions, 'source'>): Promise<RememberedFile[]> {
  if (plan.idFrom === undefined || hashes === undefined) return []
  // A journal is about many services. A direct store has the row itself, whatever its address is.
  const place = isService ? store : ''
  const files: RememberedFile[] = []
  for (const hash of hashes) {
    const id = buildCheckpointId('numbered', place, hash)
    files.push({ id, checkpointId: await checkpoints.findCheckpoint?.(id) })
  }
  return files
}

function hasSource(checkpoint: SavedImport['checkpoint'], source: string): boolean {
  return typeof checkpoint === 'object' && checkpoint.source === source
}

interface StartOptions {
  plan: ImportPlan
  source: string
  /** For messages. */
  storeName: string
  isService: boolean
}

export function decideStart(saved: SavedImport, options: StartOptions): StartDecision {
  const checkpoint = selectResumable(saved, options)
  const error = options.plan.restart
    ? undefined
    : (findMismatch(saved, checkpoint, options) ?? findRepetition(saved, checkpoint, options))
  if (error) return { type: 'reject', error }
  return checkpoint ? { type: 'resume', checkpoint } : { type: 'begin' }
}

function selectResumable(
  { checkpoint }: SavedImport,
  { plan, source }: StartOptions,
): Checkpoint | undefined {
  if (typeof checkpoint !== 'object' || checkpoint.source !== source || plan.atomic)
    return undefined
  return plan.restart && !checkpoint.restart ? undefined : checkpoint
}

/** Why an interrupted import is neither resumed nor begun again. */
function findMismatch(
  { checkpoint }: SavedImport,
  resumable: Checkpoint | undefined,
  { plan, storeName, isService }: StartOptions,
): PlantsError | undefined {
  if (checkpoint === 'invalid') {
    const message = `${storeName} has a checkpoint of this import that plants did not write`
    return new PlantsError('accessDenied', message, { hint: 'Begin again with --restart' })
  }
  if (checkpoint === 'otherVersion')
    return usageError('Another version of plants began this import', 'Finish it with that version')
  if (!checkpoint || resumable) return undefined
  // A service may have stored what is not in the checkpoint.
  const mayHaveStored = countDone(checkpoint.position.counts) > 0 || isService
  if (!mayHaveStored) return undefined
  // Records without ids would get other ones, and be stored twice.
  const generatesIds = (checkpoint.firstId ?? plan.idFrom) !== undefined
  const restartHint = ', or begin anew with --restart: what is stored and equal is skipped'
  return usageError(
    'An interrupted import was begun with other options, or a file has changed since',
    `Use the same options and files${generatesIds ? '' : restartHint}`,
  )
}

/** Why records that got generated ids would get other ones. */
function findRepetition(
  { id, rememberedFiles }: SavedImport,
  resumable: Checkpoint | undefined,
  { plan }: StartOptions,
): PlantsError | undefined {
  const wasImported = rememberedFiles.some(({ checkpointId }) => {
    const isOfThisImport = resumable !== undefined && checkpointId === id
    return checkpointId !== undefined && !isOfThisImport
  })
  if (plan.match || !wasImported) return undefined
  return createRepetitionError(resumable ? 'import each other file with' : 'add')
}

/** @param advice what to do with the option */
function createRepetitionError(advice: string): PlantsError {
  return usageError(
    'The same input was imported before, and its plants were numbered',
    `For plants with new names alone, ${advice} --match name`,
  )
}

/**
 * Describes what an import reads: the contents of its files, the options that say what a record is,
 * and what the others have detected. If it is the same, the same records have the same positions.
 */
export function describeSource(
  plan: ImportPlan,
  hashes: readonly string[] | undefined,
  first: OpenInput,
): string {
  const { format, sheet, encoding, delimiter, map, columns, match } = plan
  const quotes = plan.quotes === false ? false : undefined
  const idFrom = plan.idFrom?.toString()
  const options = { format, sheet, encoding, delimiter, quotes, map, columns, idFrom, match }
  const found = [first.format, formatRejectsHeader(first)]
  return JSON.stringify({ hashes, ...options, found })
}
