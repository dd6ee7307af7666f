import { confirm, input, password } from '@inquirer/prompts'
import { idFromText } from '../plant/plant.js'
import { problemOf } from '../plant/plant-schema.js'
import { PlantsError } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { idExists } from '../stores/common/change.js'

export interface GivenFields {
  id: bigint | undefined
  name: string | undefined
  tag?: string
}

interface Asking {
  /** Enter at once accepts it as the id. */
  proposal: bigint | undefined
  /** Whether another plant has the id. */
  isTaken(id: bigint): Promise<boolean>
  isColored: boolean
}

/**
 * Prompts on stderr for the missing fields. Throws `interrupted`
 * on Ctrl-C and Ctrl-D, `terminated` on SIGTERM.
 */
export async function askForPlant(
  given: GivenFields,
  { proposal, isTaken, isColored }: Asking,
  io: Io,
): Promise<GivenFields> {
  const ask = (message: string, check: Check, preset?: bigint) => {
    const options = { message, theme: themeFor(isColored), validate: validator(check) }
    return prompt(io, (context) =>
      input(preset === undefined ? options : { ...options, default: String(preset) }, context),
    )
  }
  const checkId = async (text: string) => {
    const id = idFromText(text)
    if (id === undefined) return problemOf('id', text)
    return (await isTaken(id)) ? idExists(id).message : undefined
  }
  // An empty name is valid, but Enter at once is probably a mistake.
  const checkName = (text: string) =>
    text === '' ? 'Enter a name. For an empty one, use --name=' : problemOf('name', text)
  const id = given.id ?? idFromText(await ask('id', checkId, proposal))
  const name = given.name ?? (await ask('name', checkName))
  const tag = given.tag ?? (await ask('tag (Enter for none)', (text) => problemOf('tag', text)))
  return tag === '' && given.tag === undefined ? { id, name } : { id, name, tag }
}

/** Asks on stderr, without echo. Throws as `askForPlant` does. */
export function askForSecret(
  message: string,
  check: Check,
  isColored: boolean,
  io: Io,
): Promise<string> {
  return prompt(io, (context) =>
    password(
      { message, mask: false, theme: themeFor(isColored), validate: validator(check) },
      context,
    ),
  )
}

/** The default is no. Throws `interrupted` without a confirmation, and as `askForPlant` does. */
export async function askToConfirm(
  message: string,
  refusal: string,
  isColored: boolean,
  io: Io,
): Promise<void> {
  if (
    await prompt(io, (context) =>
      confirm({ message, default: false, theme: themeFor(isColored) }, context),
    )
  )
    return
  throw new PlantsError('interrupted', refusal)
}

type Check = (text: string) => string | undefined | Promise<string | undefined>

function validator(check: Check): (text: string) => Promise<string | true> {
  return async (text) => {
    const failure = text.includes('\uFFFD')
      ? 'This is not UTF-8. Use a UTF-8 terminal'
      : await check(text)
    return failure === undefined ? true : escapeControlChars(failure)
  }
}

type Ask<T> = (context: NonNullable<Parameters<typeof input>[1]>) => Promise<T>

async function prompt<T>(io: Io, ask: Ask<T>): Promise<T> {
  const stdin = io.stdin.stream()
  const ended = new AbortController()
  // Ctrl-D closes readline, which pauses its input, and the prompt would never settle.
  const close = () => ended.abort()
  stdin.once('pause', close)
  try {
    const signal = AbortSignal.any([io.handleSignals(), ended.signal])
    return await ask({ input: stdin, output: io.stderr.stream(), signal })
  } catch (error) {
    io.handleSignals().throwIfAborted()
    if (!(error instanceof Error) || !['ExitPromptError', 'AbortPromptError'].includes(error.name))
      throw error
    throw new PlantsError('interrupted', 'Interrupted, nothing was changed', { cause: error })
  } finally {
    stdin.off('pause', close)
  }
}

function themeFor(isColored: boolean) {
  if (isColored) return {}
  const style = {
    answer: String,
    message: String,
    error: (text: string) => `> ${text}`,
    defaultAnswer: (text: string) => `(${text})`,
  }
  return { prefix: '?', style }
}
