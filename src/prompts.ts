import { isUtf8 } from 'node:buffer'
import { PassThrough } from 'node:stream'
import { confirm, input } from '@inquirer/prompts'
import { PlantsError } from './errors.js'
import type { Io } from './io.js'
import { parseInt64 } from './json.js'
import { checkField } from './plant.js'

type Verdict = string | undefined

interface Asking {
  io: Io
  isColored: boolean
  /** says why an id cannot be had, though it is one */
  refuseId(id: bigint): Promise<Verdict>
}

/**
 * Asks on stderr for what a NewPlant still lacks: the id, the name, and then the tag, which Enter skips.
 *
 * @param given the fields that are known, and right
 * @returns all fields, each answer checked as a flag would be
 * @throws {PlantsError} `interrupted` on Ctrl-C and Ctrl-D, `terminated` on SIGTERM
 */
export async function askForPlant(given: Record<string, unknown>, { io, isColored, refuseId }: Asking): Promise<Record<string, unknown>> {
  const keyboard = new Keyboard(io.stdin.stream())
  const ask = (message: string, check: (text: string) => Verdict | Promise<Verdict>) =>
    askOnce(keyboard, io, (context) => input({ message, theme: themeFor(isColored), validate: keyboard.nextAfter(check) }, context))
  const checkId = (text: string) => {
    const id = parseInt64(text)
    return id === undefined ? checkField('id', text) : refuseId(id)
  }
  try {
    const id = given['id'] ?? parseInt64(await ask('id', checkId))
    const name = given['name'] ?? (await ask('name', (text) => checkField('name', text)))
    const tag = given['tag'] ?? ((await ask('tag (Enter for none)', (text) => checkField('tag', text))) || undefined)
    return tag === undefined ? { id, name } : { id, name, tag }
  } finally {
    keyboard.close()
  }
}

/** Asks a question on stderr that only `y` answers with yes. Throws as `askForPlant` does. */
export async function askToConfirm(question: string, isColored: boolean, io: Io): Promise<boolean> {
  const keyboard = new Keyboard(io.stdin.stream())
  try {
    return await askOnce(keyboard, io, (context) => confirm({ message: question, default: false, theme: themeFor(isColored) }, context))
  } finally {
    keyboard.close()
  }
}

type Context = NonNullable<Parameters<typeof input>[1]>

async function askOnce<T>(keyboard: Keyboard, io: Io, prompt: (context: Context) => Promise<T> & { cancel(): void }): Promise<T> {
  const lines = keyboard.open()
  try {
    const answer = prompt({ input: lines, output: io.stderr.stream(), signal: io.signal })
    lines.once('pause', () => answer.cancel()) // Ctrl-D closes the line, and the prompt would wait for ever
    keyboard.next()
    return await answer
  } catch (error) {
    io.signal.throwIfAborted()
    if (!(error instanceof Error) || !['ExitPromptError', 'CancelPromptError'].includes(error.name)) throw error
    throw new PlantsError('interrupted', 'Interrupted, nothing was changed', { cause: error })
  }
}

/**
 * What is typed, handed out a line at a time: a prompt throws away what comes behind its Enter, and with it
 * the rest of what was pasted or typed ahead.
 */
class Keyboard {
  readonly #terminal: NodeJS.ReadableStream & { setRawMode?(mode: boolean): unknown }
  #typed: Buffer = Buffer.alloc(0)
  /** whether all that this answer was typed with is UTF-8; the prompt itself has put U+FFFD for the rest */
  #isExact = true
  #lines: PassThrough | undefined
  #isWanted = false

  constructor(terminal: NodeJS.ReadableStream) {
    this.#terminal = terminal
    terminal.on('data', this.#take)
    terminal.on('end', this.#end)
  }

  /** The input of one prompt. */
  open(): PassThrough {
    const setRawMode = (mode: boolean) => this.#terminal.setRawMode?.(mode)
    this.#lines = Object.assign(new PassThrough(), { isTTY: true, setRawMode })
    return this.#lines
  }

  /** Lets one more line through to the prompt. */
  readonly next = (): void => {
    this.#isWanted = true
    this.#isExact = true
    this.#feed()
  }

  /** Lets the next line through when an answer was refused. */
  nextAfter(check: (text: string) => Verdict | Promise<Verdict>): (text: string) => Promise<string | true> {
    return async (text) => {
      const verdict = this.#isExact ? await check(text) : 'This is not UTF-8. Use a UTF-8 terminal'
      if (verdict !== undefined) setImmediate(this.next)
      return verdict ?? true
    }
  }

  close(): void {
    this.#terminal.off('data', this.#take)
    this.#terminal.off('end', this.#end)
    this.#terminal.pause()
  }

  readonly #take = (chunk: Buffer | string): void => {
    // Ctrl-Z is left out: readline stops at it for good.
    const bytes = Buffer.from(chunk).filter((byte) => byte !== ctrlZ)
    this.#typed = Buffer.concat([this.#typed, bytes])
    if (this.#isWanted) this.#feed()
  }

  readonly #end = (): void => {
    this.#lines?.end()
  }

  #feed(): void {
    const enter = this.#typed.findIndex((byte) => byte === 0x0d || byte === 0x0a)
    const end = enter < 0 ? this.#typed.length : enter + 1
    const line = this.#typed.subarray(0, end)
    const isPair = this.#typed[enter] === 0x0d && this.#typed[enter + 1] === 0x0a
    this.#typed = this.#typed.subarray(isPair ? end + 1 : end)
    if (enter >= 0) this.#isWanted = false
    if (!isUtf8(line)) this.#isExact = false
    if (line.length > 0) this.#lines?.write(line)
  }
}

const ctrlZ = 0x1a

function themeFor(isColored: boolean) {
  if (isColored) return {}
  const plain = String
  return {
    prefix: '?',
    style: { answer: plain, message: plain, error: (text: string) => `> ${text}`, defaultAnswer: (text: string) => `(${text})` },
  }
}
