/*
 * Decides how an import starts: it begins, it resumes an interrupted import, or it is rejected.
 *
 * - An interrupted import is found by the paths of its files. If their contents and the options are
 *   the same, the import resumes. If not, a position in the old files says nothing about the new
 *   ones, so the command is rejected, unless nothing of the interrupted import is stored.
 * - A file whose records got generated ids is remembered by its contents, also after its import is
 *   finished. A second import of the file would store all plants again under other ids, so the
 *   command is rejected, unless `--match name` finds the plants by their names.
 * - If the checkpoint is damaged, the position is lost. So the command is rejected, unless
 *   `--match name` finds the stored plants by their names.
 * - `--restart` begins again, whatever is saved. If an import that was begun with `--restart` is
 *   interrupted, the same command resumes it.
 *
 * Two kinds of entries in a store, or in the journal of a service, are about an import: its
 * checkpoint, which lives until the import is complete, and one for each remembered file.
 * docs/design/import-and-resume.md says why it is built like this.
 */
import { hostname } from 'node:os'
import { createUsageError, type PlantsError } from '../errors.js'
import { resolveRealPath } from '../platform/files.js'
import type { DirectStore } from '../stores/store.js'
import { buildEntryId, findsStoredByName, InvalidCheckpointError } from './checkpoint.js'
import { countStoredRecords } from './counts.js'
import type { ImportPlan } from './inputs.js'
import type { Checkpoint, ImportAnswers } from './parse-checkpoint.js'
import { describeDifference } from './source.js'

type StartDecision =
  | { type: 'begin' }
  | { type: 'resume'; checkpoint: Checkpoint }
  | { type: 'reject'; error: PlantsError }

type ParsedCheckpoint = Checkpoint | 'otherVersion' | 'invalid'

/** What a store, or the journal of a service, has saved about an import. */
export interface SavedImport {
  /** The id of the checkpoint; undefined for an import that cannot be resumed, such as of stdin. */
  id: string | undefined
  /** The checkpoint as it is stored. It is replaced only if nobody else has replaced it before. */
  state: string | undefined
  /** The parsed `state`; undefined if there is no checkpoint. */
  checkpoint: ParsedCheckpoint | undefined
  /** The entry of each input, in their order. It is empty for an import that generates no ids. */
  rememberedFiles: readonly RememberedFile[]
}

/** The entry about the contents of a file. It has an id even if the file is not remembered yet. */
interface RememberedFile {
  id: string
  /** The checkpoint of the import that generated ids for the file; undefined if none has. */
  checkpointId: string | undefined
}

/** The part of a search that does not depend on how the files are read. */
interface FileSearch {
  /** The store or the journal; without `findImportEntry`, nothing is saved anywhere. */
  checkpointStore: Partial<Pick<DirectStore, 'findImportEntry'>>
  plan: ImportPlan
  /** The SHA-256 of each input; undefined for an import that cannot be resumed. */
  hashes: readonly string[] | undefined
  /**
   * The complete address of the service, because a journal has entries about many of them. It is
   * empty for a direct store, which has only entries about itself, and may be renamed or moved.
   */
  service: string
}

interface SearchOptions extends FileSearch {
  /** What the import reads, and how: see `describeSource`. */
  source: string
}

/**
 * Finds the saved import by the paths of its files. If there is none, it finds an import of the
 * same contents by the remembered files: they may have been renamed since.
 */
export async function findSavedImport(options: SearchOptions): Promise<SavedImport> {
  const { plan, source } = options
  const pathsId = buildPathsId(options)
  const rememberedFiles = plan.idFrom === undefined ? [] : await findRememberedFiles(options)
  for await (const candidate of listCandidates(options, rememberedFiles)) {
    const { id, state } = candidate
    const checkpoint = invalidateBeyondInputs(candidate.checkpoint, source, plan)
    // With the same paths, it is this import, even if the contents or the options have changed.
    // With other paths, the source decides. That of an invalid checkpoint is not known, and it may
    // be the same.
    const mayHaveSource = checkpoint === 'invalid' || hasSource(checkpoint, source)
    if (id === pathsId || mayHaveSource) return { id, state, checkpoint, rememberedFiles }
  }
  return { id: pathsId, state: undefined, checkpoint: undefined, rememberedFiles }
}

/**
 * Finds the answers that a person gave when an interrupted import of the same files began. The
 * dialogue asks for this before it knows how the files are read, so only their paths and contents
 * count, and not the options. Whether the import generates ids is not known either: an answer may
 * have said so. So the remembered files are looked up in any case.
 *
 * @throws {PlantsError} `usage` if a finished import has generated ids for the files
 */
export async function findEarlierAnswers(options: FileSearch): Promise<ImportAnswers | undefined> {
  const { plan } = options
  const rememberedFiles = await findRememberedFiles(options)
  for await (const { checkpoint } of listCandidates(options, rememberedFiles)) {
    const isReadable = typeof checkpoint === 'object'
    if (isReadable && mayContinue(checkpoint, plan)) return checkpoint.answers
  }
  const wasImported = rememberedFiles.some(({ checkpointId }) => checkpointId !== undefined)
  // With `--map id=…`, a column has the ids, so none would be generated.
  const mayRepeat = plan.restart || plan.match || plan.map.id
  if (wasImported && !mayRepeat) throw createRepetitionError('add')
  return undefined
}

interface Candidate {
  id: string
  /** The state of the entry, which is the checkpoint as JSON. */
  state: string
  checkpoint: ParsedCheckpoint
}

/**
 * Finds the checkpoints that may belong to the same import. The first one is the checkpoint of an
 * import of the same paths. The others belong to imports that have generated ids for the same
 * contents.
 */
async function* listCandidates(
  options: FileSearch,
  rememberedFiles: readonly RememberedFile[],
): AsyncGenerator<Candidate> {
  const rememberedIds = rememberedFiles.map(({ checkpointId }) => checkpointId)
  for (const id of [buildPathsId(options), ...rememberedIds]) {
    const state = id === undefined ? undefined : await options.checkpointStore.findImportEntry?.(id)
    // The text may be empty if another program has written it.
    if (id !== undefined && state !== undefined)
      yield { id, state, checkpoint: await parseState(state) }
  }
}

/** Builds the id of the checkpoint from the paths; undefined if the import cannot be resumed. */
function buildPathsId({ plan, hashes, service }: FileSearch): string | undefined {
  // The directory of the command may have been entered by a link, or on Windows in another case.
  const paths = plan.inputs.map(({ path }) => resolveRealPath(path))
  return hashes && buildEntryId(hostname(), service, ...paths)
}

/** The schema of a checkpoint is loaded here: most imports find none, and need not load zod. */
async function parseState(state: string): Promise<ParsedCheckpoint> {
  const { parseCheckpoint } = await import('./parse-checkpoint.js')
  return parseCheckpoint(state)
}

async function findRememberedFiles({
  checkpointStore,
  hashes = [],
  service,
}: FileSearch): Promise<RememberedFile[]> {
  const files: RememberedFile[] = []
  for (const hash of hashes) {
    // The word tells the entry from a checkpoint, whose id is made of other strings. It is a part
    // of stored ids, so it must stay.
    const id = buildEntryId('generated ids', service, hash)
    files.push({ id, checkpointId: await checkpointStore.findImportEntry?.(id) })
  }
  return files
}

function hasSource(checkpoint: ParsedCheckpoint, source: string): checkpoint is Checkpoint {
  return typeof checkpoint === 'object' && checkpoint.source === source
}

/**
 * Makes a checkpoint invalid that has this source, but a position behind the last of its files. No
 * import saves that, but any program may write to the table.
 */
function invalidateBeyondInputs(
  checkpoint: ParsedCheckpoint,
  source: string,
  { inputs }: ImportPlan,
): ParsedCheckpoint {
  const isBeyond = hasSource(checkpoint, source) && checkpoint.position.input >= inputs.length
  return isBeyond ? 'invalid' : checkpoint
}

interface StartOptions {
  plan: ImportPlan
  source: string
  /** The name of the store, for messages. */
  storeName: string
  isService: boolean
}

/** Decides how an import starts, from what is saved about it. It changes nothing. */
export function decideStart(savedImport: SavedImport, options: StartOptions): StartDecision {
  const checkpoint = selectResumable(savedImport, options)
  const error = options.plan.restart
    ? undefined
    : (findMismatchError(savedImport, checkpoint, options) ??
      findRepetitionError(savedImport, checkpoint, options))
  if (error) return { type: 'reject', error }
  return checkpoint ? { type: 'resume', checkpoint } : { type: 'begin' }
}

/** Returns the checkpoint if the import can continue from its position. */
function selectResumable(
  { checkpoint }: SavedImport,
  { plan, source }: StartOptions,
): Checkpoint | undefined {
  if (checkpoint === undefined || !hasSource(checkpoint, source) || plan.atomic) return undefined
  return mayContinue(checkpoint, plan) ? checkpoint : undefined
}

/**
 * Whether `--restart` lets an interrupted import continue. It begins again, unless the interrupted
 * import was itself begun with `--restart`: then the same command resumes it.
 */
function mayContinue(checkpoint: Checkpoint, plan: ImportPlan): boolean {
  return plan.restart === undefined || checkpoint.restart === true
}

/** Creates the error for an interrupted import that can neither resume nor begin again. */
function findMismatchError(
  { checkpoint }: SavedImport,
  resumableCheckpoint: Checkpoint | undefined,
  { plan, source, storeName, isService }: StartOptions,
): PlantsError | undefined {
  if (checkpoint === 'invalid') {
    // The import begins again, and finds what it has stored before.
    if (findsStoredByName(plan)) return undefined
    const message = `The checkpoint of this import in ${storeName} is not valid`
    return new InvalidCheckpointError(message, plan)
  }
  if (checkpoint === 'otherVersion')
    return createUsageError(
      'This import was started by another version of plants',
      'Finish it with that version',
    )
  if (!checkpoint || resumableCheckpoint) return undefined
  const { counts, isNothingStored } = checkpoint.position
  // A service may have stored plants of a chunk that is not in the checkpoint yet.
  const mayHaveStored = isService ? !isNothingStored : countStoredRecords(counts) > 0
  if (!mayHaveStored) return undefined
  // Records without ids would get other ids, and be stored twice, so `--restart` is not proposed.
  // A file with another name is another import, which finds the stored plants by their names.
  const generatesIds = (checkpoint.firstId ?? plan.idFrom) !== undefined
  const nextHint = generatesIds
    ? '. To import changed files, copy them to other names, and add --match name --id-from next'
    : ', or start over with --restart'
  return createUsageError(
    `This import was interrupted, and ${describeDifference(checkpoint.source, source, plan)}`,
    `Use the same options and files${nextHint}. Plants that are stored unchanged are skipped`,
  )
}

/**
 * Creates the error for a file whose records got generated ids in another import. This import would
 * store the same plants again under other ids.
 */
function findRepetitionError(
  { id, rememberedFiles }: SavedImport,
  resumableCheckpoint: Checkpoint | undefined,
  { plan }: StartOptions,
): PlantsError | undefined {
  const isResumed = resumableCheckpoint !== undefined
  const wasImported = rememberedFiles.some(({ checkpointId }) => {
    const isOfThisImport = isResumed && checkpointId === id
    return checkpointId !== undefined && !isOfThisImport
  })
  if (plan.match || !wasImported) return undefined
  return createRepetitionError(isResumed ? 'import each other file with' : 'add')
}

/** @param advice the words of the hint before `--match name` */
function createRepetitionError(advice: string): PlantsError {
  return createUsageError(
    'The same input was imported before, with generated ids',
    `To import only plants with new names, ${advice} --match name`,
  )
}
