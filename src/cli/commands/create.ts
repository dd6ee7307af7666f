import { Option } from 'commander'
import { invalidValue, outputFormats } from '../../config/option-values.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import {
  equalFields,
  isIdempotencyKey,
  type NewPlant,
  type Plant,
  plantFrom,
  plantOf,
  type StoredPlant,
} from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { idExists, writeOne } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { createNext, greatestId, idAfter } from '../next-id.js'
import { addRetry, warnOfEmptyTexts, warnOfUselessRetry } from '../options.js'
import { type PlantOptions, readPlant } from '../plant-input.js'

export interface CreateOptions extends PlantOptions {
  /** In milliseconds. */
  retry?: number
}

export function defineCreate(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Create a plant from options, from JSON in a file or on stdin, or from prompts. With --id, --name or --tag, stdin is left untouched, so that a loop can read it.',
    )
    .option('-i, --id <int64>', 'identification number, or next: the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .addOption(
      new Option(
        '-f, --file <path>',
        'read the plant as JSON from a file, or from stdin with "-"',
      ).conflicts(['id', 'name', 'tag']),
    )
    .value(
      '--idempotency-key <key>',
      'make the command safe to repeat: the same key and plant return the same result',
      parseIdempotencyKey,
    )
    .option('--dry-run', 'show what would be created and where, but create nothing')
  addRetry(command)
    .addExamples(
      'plants create --id 1 --name Fern --tag shade',
      'plants create --id next --name Moss',
      `echo '{"id":2,"name":"Moss"}' | plants create`,
    )
    .handler((options: CreateOptions) => create(options, io))
}

export async function create(options: CreateOptions, io: Io): Promise<void> {
  const { idempotencyKey: key } = options
  const context = await CommandContext.from(options, io, outputFormats)
  const { address, reporter, storeFlag } = context
  if (options.id === 'next' && key !== undefined)
    throw usageError(
      '--id next cannot be used with --idempotency-key: a repeat would create another plant',
      'Use a specific id',
    )
  await warnOfUselessRetry(options.retry, address, reporter)
  const { plant, isNext } = await readPlant(options, context)
  await warnOfEmptyTexts(options, reporter)
  if (options.dryRun) return preview(plant, isNext, key, context)

  const store = await context.openOrCreateStore()
  try {
    const creating = isNext ? createNext(store, plant) : createOne(store, plant, key)
    const created = await creating.catch(explainConflict(plant.id, storeFlag))
    if (!equalFields(created, plant)) await reporter.warn(differenceBetween(created, plant))
    const sentence = `Planted ${describePlant(created, await context.style())}`
    const see =
      address.scheme !== 'http' ? `. Show it with: plants get ${created.id}${storeFlag}` : ''
    await context.print(resultOf(created, isNext), sentence, `The plant is stored${see}`)
  } finally {
    await store.close()
  }
}

/** Prints what would be created, and where. A service is sent and asked nothing. */
async function preview(
  given: NewPlant,
  isNext: boolean,
  key: string | undefined,
  context: CommandContext,
) {
  const { address, storeFlag } = context
  if (address.scheme === 'http') {
    if (isNext) throw usageError('The service chooses the id of --id next', 'Use a specific id')
    await (await import('../store-access.js')).assertAccess(address, context)
  }
  const store =
    address.scheme !== 'http' ? await (await context.ownOpener()).openExisting() : undefined
  try {
    const plant = isNext
      ? plantFrom(idAfter(store && (await greatestId(store))), given.name, given.tag)
      : given
    await store
      ?.transaction((transaction) => createOne(transaction, plant, key), { commits: () => false })
      .catch(explainConflict(plant.id, storeFlag))
    const place = `${quoteIfNeeded(address.name)}${address.scheme !== 'http' && !store ? ', which would be created' : ''}`
    const sentence = `Would plant ${describePlant(plant, await context.style())} in ${place}`
    await context.printResult(
      { dryRun: true, ...resultOf(plant, isNext) },
      sentence,
      'Nothing was created',
    )
  } finally {
    await store?.close()
  }
}

async function createOne(
  store: Pick<Store, 'write'>,
  plant: NewPlant,
  key: string | undefined,
): Promise<StoredPlant> {
  return (await writeOne(store, { type: 'create', plant, key })).plant
}

/** The specification's Plant has no id, but one that the store chose is the result. */
function resultOf(plant: StoredPlant, isNext: boolean): StoredPlant | Plant {
  return isNext ? plant : plantOf(plant)
}

function differenceBetween(created: StoredPlant, sent: NewPlant): string {
  const [returned, given] = [created, sent].map((plant) => toJson({ ...plantOf(plant) }))
  return `The store returned a plant that differs from the one that was sent: ${returned} instead of ${given}`
}

/** Only for an id that exists: the conflict of an idempotency key has a hint of its own. */
function explainConflict(id: bigint, storeFlag: string) {
  return (error: unknown): never => {
    if (!(error instanceof PlantsError && error.kind === 'conflict' && error.hint === undefined))
      throw error
    const hint = `Look at it with: plants get ${id}${storeFlag}`
    throw new PlantsError('conflict', idExists(id).message, { ...error, hint })
  }
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw invalidValue(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}
