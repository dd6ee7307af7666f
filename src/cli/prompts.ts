/*
 * Asks questions on stderr with @inquirer/prompts. Every question is asked through `prompt`, which
 * adds what the package lacks: Ctrl-D and Escape end a question, a signal ends a question with the
 * error of the signal, and bytes that are typed after an answer are kept for the next question.
 */
import type { WriteStream } from 'node:tty'
import { input, password, select } from '@inquirer/prompts'
import { PlantsError } from '../errors.js'
import { parseDecimalId } from '../plant/plant.js'
import { findFieldProblem } from '../plant/schema.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { InputPlant } from '../stores/next-id.js'

/**
 * Asks on stderr for the fields that are not known.
 *
 * @param mayBeNext whether the store may choose the id
 * @throws {PlantsError} `interrupted` on Ctrl-C, Ctrl-D and Escape, and `terminated` on SIGTERM and
 *   if the terminal closes
 */
export async function askForPlant(
  knownFields: { [field in keyof InputPlant]: InputPlant[field] | undefined },
  mayBeNext: boolean,
  io: Io,
): Promise<InputPlant> {
  const parseId = (text: string) => (mayBeNext && text === 'next' ? 'next' : parseDecimalId(text))
  const checkIdText = (text: string) =>
    parseId(text) === undefined ? findFieldProblem('id', text) : undefined
  // An empty name is valid, but often a mistake.
  const checkName = (text: string) =>
    text === '' ? 'Enter a name. For an empty name, use --name=' : findFieldProblem('name', text)
  const checkTag = (text: string) => findFieldProblem('tag', text)

  const idQuestion = mayBeNext
    ? { message: 'id, or next for the greatest id plus 1', default: 'next' }
    : { message: 'id' }
  const id = knownFields.id ?? parseId(await ask(idQuestion, checkIdText, io)) ?? 'next'
  const name = knownFields.name ?? (await ask({ message: 'name' }, checkName, io))
  const tag =
    knownFields.tag ?? ((await ask({ message: 'tag (Enter for none)' }, checkTag, io)) || undefined)
  return { id, name, tag }
}

/**
 * Asks on stderr for a secret, which is not shown.
 *
 * @throws {PlantsError} what `askForPlant` throws
 */
export function askForSecret(message: string, check: Check, io: Io): Promise<string> {
  const question = { message, mask: false, validate: createValidator(check) }
  return prompt(io, (context) => password(question, context))
}

/**
 * Asks a question to which Enter answers no. The prompt `confirm` of the package would take every
 * text that begins with y for a yes.
 *
 * @param declinedMessage the message of the error if the answer is no
 * @throws {PlantsError} `interrupted` without a confirmation, or what `askForPlant` throws
 */
export async function askToConfirm(
  message: string,
  declinedMessage: string,
  io: Io,
): Promise<void> {
  const check = (text: string) => (/^(?:y|yes|n|no)?$/i.test(text) ? undefined : 'Answer y or n')
  const question = {
    message: `${message} (y/N)`,
    theme: { validationFailureMode: 'clear' },
  } as const
  const answer = await ask(question, check, io)
  if (!/^y/i.test(answer)) throw new PlantsError('interrupted', declinedMessage)
}

export interface Choice<T> {
  value: T
  /** The text of the choice in the list, on one line. */
  name: string
  /** The text that stays next to the question after the choice; by default the name. */
  short?: string
}

interface ChoiceQuestion<T> {
  message: string
  choices: readonly Choice<T>[]
  /** The choice that Enter takes; by default the first. */
  initial?: T | undefined
}

/**
 * Asks for one of the choices. A long list scrolls, and the letters that begin a choice select it.
 *
 * @throws {PlantsError} what `askForPlant` throws
 */
export function askToChoose<T>(question: ChoiceQuestion<T>, io: Io): Promise<T> {
  const { message, initial } = question
  const choices = question.choices.map(escapeChoice)
  const config = { message: escapeControlChars(message), choices, default: initial, loop: false }
  return prompt(io, (context) => select({ ...config, pageSize: countListLines(io) }, context))
}

/**
 * Counts the lines of a list so that the question above it and the keys below it stay in view, and
 * a terminal of 24 lines also shows the rows above the question.
 */
function countListLines(io: Io): number {
  const { rows } = io.stderr.openStream() as Partial<WriteStream>
  return Math.max(2, Math.min(12, (rows || 24) - 4))
}

function escapeChoice<T>({ value, name, short = name }: Choice<T>): Required<Choice<T>> {
  return { value, name: escapeControlChars(name), short: escapeControlChars(short) }
}

/** Returns the reason why an answer is not accepted, or undefined if it is accepted. */
type Check = (text: string) => string | undefined

async function ask(
  question: Pick<Parameters<typeof input>[0], 'message' | 'default' | 'theme'>,
  check: Check,
  io: Io,
): Promise<string> {
  const validate = createValidator((text) => check(text.trim()))
  const text = await prompt(io, (context) => input({ ...question, validate }, context))
  return text.trim()
}

function createValidator(check: Check): (text: string) => string | true {
  return (text) => {
    // Node.js has replaced bytes that are not UTF-8 by U+FFFD.
    const isUtf8 = !text.includes('\uFFFD')
    const problem = isUtf8 ? check(text) : 'The input is not UTF-8. Use a UTF-8 terminal'
    return problem === undefined ? true : escapeControlChars(problem)
  }
}

type PromptContext = NonNullable<Parameters<typeof input>[1]>

async function prompt<T>(io: Io, showPrompt: (context: PromptContext) => Promise<T>): Promise<T> {
  const stdin = io.stdin.openStream()
  const questionEnd = new AbortController()
  // Ctrl-D closes readline, which pauses its input. The promise of the prompt would never settle.
  const endQuestion = () => questionEnd.abort()
  stdin.once('pause', endQuestion)
  // The bytes of an arrow key begin with the byte of Escape. Readline tells the two keys apart.
  const closeOnEscape = (_: unknown, key?: { name?: string }) => {
    if (key?.name === 'escape') endQuestion()
  }
  stdin.on('keypress', closeOnEscape)
  // Readline drops the bytes that are typed or pasted after an answer. So the bytes after the first
  // line break of the last block are put back for the next prompt. They are decoded as Latin-1,
  // which keeps every byte, even if a block ends within a character.
  let typeAhead = ''
  const keepTypeAhead = (bytes: Buffer) => {
    const match = /(?:\r\n?|\n)(?<typeAhead>.*)/s.exec(bytes.toString('latin1'))
    typeAhead = match?.groups?.['typeAhead'] ?? ''
  }
  stdin.on('data', keepTypeAhead)
  try {
    const signal = AbortSignal.any([io.getStopSignal(), questionEnd.signal])
    const answer = showPrompt({ input: stdin, output: io.stderr.openStream(), signal })
    // At the end of its input, readline restores the mode of the terminal. If the terminal has
    // closed, that fails (EIO), and the listener of readline would throw where nobody can catch it.
    stdin.removeAllListeners('error').on('error', endQuestion)
    return await answer
  } catch (error) {
    io.getStopSignal().throwIfAborted()
    // The system does not send SIGHUP to every process of a terminal that closes.
    if (!io.stdin.isTerminal)
      throw new PlantsError('terminated', 'The terminal was closed', { cause: error })
    const promptErrors = ['ExitPromptError', 'AbortPromptError']
    if (!(error instanceof Error) || !promptErrors.includes(error.name)) throw error
    throw new PlantsError('interrupted', 'Interrupted, nothing was changed', { cause: error })
  } finally {
    stdin.off('pause', endQuestion)
    stdin.off('error', endQuestion)
    stdin.off('keypress', closeOnEscape)
    stdin.off('data', keepTypeAhead)
    if (typeAhead !== '' && stdin.readable) stdin.unshift(Buffer.from(typeAhead, 'latin1'))
  }
}
