/*
 * The dialogue of an import: it asks for what the files do not say, and returns the plan with the
 * options that the command line would have had. Everything after it is an import as any other.
 *
 * It begins where an import without a terminal ends, with the failure of that. So it asks for
 * nothing that the import finds by itself, and it ends with the same failure if no answer helps.
 */
import { assertDefined, type PlantsError } from '../../errors.js'
import { NoListError } from '../../formats/assert-keys.js'
import { EncodingError } from '../../formats/decode-text.js'
import { applyAnswers } from '../../import/answers.js'
import { type ImportPlan, isInputError, type OpenInput, openInput } from '../../import/inputs.js'
import type { ImportAnswers } from '../../import/parse-checkpoint.js'
import { sampleInput } from '../../import/sample-input.js'
import { formatPlantCount } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { findKind } from '../../stores/kinds.js'
import type { CommandContext } from '../command-context.js'
import { askForColumns } from './ask-columns.js'
import { askForFileEncoding } from './ask-encoding.js'
import { buildCommandLine, replaceStore } from './command-line.js'
import { previewImport } from './preview-import.js'
import { askToImport, tell } from './questions.js'
import { findSavedAnswers } from './saved-answers.js'

interface DialogueOptions {
  plan: ImportPlan
  /** Why the import would end without a dialogue. */
  failure: PlantsError
  context: CommandContext
  /** The words of the command line behind the name of the program. */
  argv: readonly string[]
  showDryRun: (plan: ImportPlan) => Promise<void>
}

/**
 * @throws {PlantsError} `interrupted` without an answer, and the failure if no answer prevents it
 */
export async function completePlan(options: DialogueOptions): Promise<ImportPlan> {
  const { plan, failure, context, argv } = options
  const { io } = context
  const saved = await findSavedAnswers(plan, context)
  if (saved) {
    await context.warn('The interrupted import goes on with the answers that were given to it')
    return { ...applyAnswers(plan, saved), answers: saved }
  }
  const answers = await askForAnswers(plan, failure, io)
  const complete = { ...applyAnswers(plan, answers), answers }
  const preview = await previewImport(complete, io)
  await tell(
    [
      'The same without questions:',
      `  ${buildCommandLine(nameStore(argv, context), answers)}`,
      ...describeRejections(preview),
    ],
    io,
  )
  if (!plan.dryRun) await confirmImport(complete, preview.accepted, options)
  return complete
}

async function askForAnswers(
  plan: ImportPlan,
  failure: PlantsError,
  io: Io,
): Promise<ImportAnswers> {
  const answers: ImportAnswers = {}
  const encoding = await askForFileEncoding(plan, io)
  if (encoding !== undefined) answers.encoding = encoding
  const decoded = applyAnswers(plan, answers)
  const remaining = encoding === undefined ? failure : await findFailure(decoded, io)
  if (!remaining) return answers
  if (remaining instanceof NoListError || remaining instanceof EncodingError) throw remaining
  const sample = await sampleInput(assertDefined(plan.inputs[0]), decoded, io)
  const { answers: ofColumns, headerLine } = await askForColumns(sample, decoded, remaining, io)
  const complete = { ...answers, ...ofColumns }
  const reader = await openFirst(applyAnswers(plan, complete), io)
  // With numbers alone, an import takes the row that looks most like a header.
  const { guessedLine = headerLine } = reader.header ?? {}
  if (guessedLine !== headerLine) throw remaining
  // The import may divide a table by another delimiter than that with which it was shown.
  const shown = sample.heads[0]?.delimiter
  return reader.delimiter === shown ? complete : { ...complete, delimiter: shown }
}

async function findFailure(plan: ImportPlan, io: Io): Promise<PlantsError | undefined> {
  try {
    await openFirst(plan, io)
    return undefined
  } catch (error) {
    if (isInputError(error)) return error
    throw error
  }
}

/** Opens the first file to look at its header. */
async function openFirst(plan: ImportPlan, io: Io): Promise<OpenInput> {
  const reader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  reader.close()
  return reader
}

function describeRejections({
  rejected,
  reasons,
}: Awaited<ReturnType<typeof previewImport>>): string[] {
  if (rejected === 0) return []
  const first = rejected > reasons.length ? `, the first ${reasons.length} of them` : ''
  return [
    `${formatPlantCount(rejected)} will be rejected${first}:`,
    ...reasons.map((text) => `  ${text}`),
  ]
}

async function confirmImport(
  plan: ImportPlan,
  count: number,
  { context, showDryRun }: DialogueOptions,
): Promise<void> {
  const store = context.describeStore()
  const message = `Import ${formatPlantCount(count)}${store === undefined ? '' : ` into ${store}`}?`
  if (await askToImport(message, true, context.io)) return
  await showDryRun({ ...plan, dryRun: true })
  await askToImport(message, false, context.io)
}

/** The words with the address of the store in place of one that may have a password. */
function nameStore(argv: readonly string[], { options, address }: CommandContext): string[] {
  const { store } = options
  const isAddress = store?.includes('://') === true
  return isAddress ? replaceStore(argv, store, findKind(address).format(address)) : [...argv]
}
