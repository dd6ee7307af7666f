/*
 * The dialogue of an import. On a terminal, it asks for what the files do not say, such as which
 * column is the name, and returns the plan with the options that would have said it. After the
 * dialogue, the import runs as any other.
 *
 * The dialogue begins only when the import has failed to open the files without it. So it asks for
 * nothing that an import finds by itself, and if no answer helps, it ends with that failure.
 *
 * At its end, it shows the command that needs no questions, which records will be rejected, and
 * asks whether to import. Nothing is stored before that.
 */
import { assertDefined, type PlantsError } from '../../errors.js'
import { NoListError } from '../../formats/assert-keys.js'
import { EncodingError } from '../../formats/encoding-error.js'
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
  /** The error with which the import would end without the dialogue. */
  failure: PlantsError
  context: CommandContext
  /** The arguments after the name of the program. */
  argv: readonly string[]
  /** Runs the plan as a dry run, and prints what would be done. */
  showDryRun: (plan: ImportPlan) => Promise<void>
}

/**
 * Asks for what the plan lacks. If an interrupted import of the same files has answers, they are
 * taken without asking.
 *
 * @throws {PlantsError} `interrupted` if a person does not answer, and the failure if no answer
 * would prevent it
 */
export async function completePlan(options: DialogueOptions): Promise<ImportPlan> {
  const { plan, failure, context, argv } = options
  const { io } = context
  const saved = await findSavedAnswers(plan, context)
  if (saved) {
    await context.warn('The interrupted import continues with the answers that you gave before')
    return { ...applyAnswers(plan, saved), answers: saved }
  }
  const answers = await askForAnswers(plan, failure, io)
  const answered = { ...applyAnswers(plan, answers), answers }
  const preview = await previewImport(answered, io)
  const complete = { ...answered, shownRejections: new Set(preview.reasons) }
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
  const { answers: columnAnswers, headerLine } = await askForColumns(sample, decoded, remaining, io)
  const complete = { ...answers, ...columnAnswers }
  const reader = await openFirst(applyAnswers(plan, complete), io)
  // If all columns are answered by their numbers, the import guesses which row is the header. It
  // must be the row that the person has seen.
  const { guessedLine = headerLine } = reader.header ?? {}
  if (guessedLine !== headerLine) throw remaining
  // The import may choose another delimiter than the one by which the table was shown.
  const shownDelimiter = sample.heads[0]?.delimiter
  const isSameDelimiter = reader.delimiter === shownDelimiter
  return isSameDelimiter ? complete : { ...complete, delimiter: shownDelimiter }
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

/** Opens the first file, and closes it again: only its header is needed. */
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

/** Returns the arguments with an address of the store that has no password. */
function nameStore(argv: readonly string[], { options, address }: CommandContext): string[] {
  const { store } = options
  const isAddress = store?.includes('://') === true
  return isAddress ? replaceStore(argv, store, findKind(address).format(address)) : [...argv]
}
