import { hashInputs, type ImportPlan } from '../../import/inputs.js'
import { openJournal } from '../../import/journal.js'
import type { ImportAnswers } from '../../import/parse-checkpoint.js'
import { findEarlierAnswers } from '../../import/resume.js'
import { findKind, hasCapability } from '../../stores/kinds.js'
import type { DirectStore } from '../../stores/store.js'
import type { CommandContext } from '../command-context.js'

/**
 * Finds the answers that a person gave when an interrupted import of the same files began. It opens
 * and closes the store for that, because a store must not be open while a person thinks.
 *
 * @throws {PlantsError} `usage` if a finished import has generated ids for the same files
 */
export async function findSavedAnswers(
  plan: ImportPlan,
  context: CommandContext,
): Promise<ImportAnswers | undefined> {
  if (plan.dryRun || plan.atomic) return undefined
  const { address, io } = context
  const isService = !hasCapability(address, 'direct')
  const checkpointStore = await openCheckpointStore(isService, context)
  if (!checkpointStore) return undefined
  try {
    const hashes = await hashInputs(plan, io)
    const service = isService ? findKind(address).format(address) : ''
    return await findEarlierAnswers({ checkpointStore, plan, hashes, service })
  } finally {
    await checkpointStore.close()
  }
}

/** @returns undefined if there is no store yet. It is created only after the last question. */
async function openCheckpointStore(
  isService: boolean,
  context: CommandContext,
): Promise<DirectStore | undefined> {
  if (isService) return openJournal(context.openContext, context.io)
  return (await context.createDirectOpener()).openExisting()
}
