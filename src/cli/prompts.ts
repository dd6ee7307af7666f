import { isUtf8 } from 'node:buffer'
import { PassThrough } from 'node:stream'
import { confirm, input, password } from '@inquirer/prompts'
import { parseInt64 } from '../plant/json.js'
import { checkField } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import { visible } from '../platform/escape.js'
import type { Io } from '../platform/io.js'

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
    const name = given['name'] ?? (await ask('name', checkName))
    const tag = given['tag'] ?? ((await ask('tag (Enter for none)', (text) => checkField('tag', text))) || undefined)
    return tag === undefined ? { id, name } : { id, name, tag }
  } finally {
    keyboard.close()
  }
}

/** An empty name is a name, but at a question it is a slip of the Enter key. */
function checkName(text: string): Verdict {
  return text === '' ? 'Give a name. One that is empty can be given with --name=' : checkField('name', text)
}

interface AskingForSecret {
  /** "token" or "password" */
  noun: string
  message: string
  check(text: string): Verdict
  isColored: boolean
}

/** Asks on stderr for a token or a password, and shows nothing of it. Throws as `askForPlant` does. */
export async function askForSecret({ noun, message, check, isColored }: AskingForSecret, io: Io): Promise<string> {
  const keyboard = new Keyboard(io.stdin.stream(), 5000)
  const validate = keyboard.nextAfter(check)
  try {
    const answer = await askOnce(keyboard, io, (context) =>
      password({ message, mask: false, theme: themeFor(isColored), validate }, context),
    )
    if (keyboard.hasMore)
      throw new PlantsError('malformed', `More than one line was pasted, and a ${noun} is one`, {
        hint: `Copy the ${noun} again, and nothing else with it`,
      })
    return answer
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
  readonly #longestLine: number
  readonly #terminal: NodeJS.ReadableStream & { setRawMode?(mode: boolean): unknown }
  #typed: Buffer = Buffer.alloc(0)
  /** what the prompt was given for this answer */
  #line: Buffer = Buffer.alloc(0)
  /** an answer that is still to be mended holds what the prompt has put for bytes that are not UTF-8 */
  #isSpoilt = false
  #lines: PassThrough | undefined
  /** the last byte that was typed */
  #last: number | undefined
  #isWanted = false

  /** @param longestLine bytes of an answer */
  constructor(terminal: NodeJS.ReadableStream, longestLine = 1000) {
    this.#terminal = terminal
    this.#longestLine = longestLine
    terminal.on('data', this.#take)
    terminal.on('end', this.#end)
  }

  /** The input of one prompt. */
  open(): PassThrough {
    const setRawMode = (mode: boolean) => this.#terminal.setRawMode?.(mode)
    this.#lines = Object.assign(new PassThrough(), { isTTY: true, setRawMode })
    return this.#lines
  }

  /** Whether something was typed that nothing has asked for. */
  get hasMore(): boolean {
    return this.#typed.toString().trim() !== ''
  }

  /** Lets one more line through to the prompt. */
  readonly next = (): void => {
    this.#isWanted = true
    this.#line = Buffer.alloc(0)
    this.#feed()
  }

  /** Lets the next line through when an answer was refused. */
  nextAfter(check: (text: string) => Verdict | Promise<Verdict>): (text: string) => Promise<string | boolean> {
    return async (text) => {
      const verdict = this.#refuseBytes(text) ?? (await check(text))
      if (verdict === undefined) return true
      this.#typed = Buffer.alloc(0) // the lines of a paste that was meant for other questions
      setImmediate(this.next)
      return visible(verdict)
    }
  }

  close(): void {
    this.#terminal.off('data', this.#take)
    this.#terminal.off('end', this.#end)
    this.#terminal.pause()
  }

  readonly #take = (chunk: Buffer | string): void => {
    // Ctrl-Z is left out, at which readline stops for good; and the second half of a CR LF, in whichever chunk it comes.
    const bytes = [...Buffer.from(chunk)].filter((byte, at, all) => {
      const before = at === 0 ? this.#last : all[at - 1]
      return byte !== ctrlZ && !(byte === lineFeed && before === carriageReturn)
    })
    this.#last = Buffer.from(chunk).at(-1)
    this.#typed = Buffer.concat([this.#typed, Buffer.from(bytes)])
    if (this.#isWanted) this.#feed()
  }

  readonly #end = (): void => {
    this.#lines?.end()
  }

  #refuseBytes(text: string): Verdict {
    if (Math.max(this.#line.length, Buffer.byteLength(text)) > this.#longestLine) {
      return `This is longer than ${this.#longestLine} bytes. Give it as a flag or in a file`
    }
    this.#isSpoilt = !isUtf8(this.#line) || (this.#isSpoilt && text.includes('\uFFFD'))
    return this.#isSpoilt ? 'This is not UTF-8. Use a UTF-8 terminal' : undefined
  }

  #feed(): void {
    const enter = this.#typed.findIndex((byte) => byte === carriageReturn || byte === lineFeed)
    const end = enter < 0 ? this.#typed.length : enter
    const text = this.#typed.subarray(0, end)
    const room = Math.max(this.#longestLine + 1 - this.#line.length, 0)
    this.#line = Buffer.concat([this.#line, text])
    if (enter >= 0) this.#isWanted = false
    // The prompt draws the whole line again for each character: of a text that is too long it gets the keys alone.
    const keys = text.subarray(room).filter((byte) => byte < 0x20 || byte === 0x7f)
    const enterKey = this.#typed.subarray(end, end + 1)
    this.#typed = this.#typed.subarray(end + 1)
    this.#lines?.write(Buffer.concat([text.subarray(0, room), keys, enterKey]))
  }
}

const carriageReturn = 0x0d
const lineFeed = 0x0a
const ctrlZ = 0x1a

function themeFor(isColored: boolean) {
  if (isColored) return {}
  const plain = String
  return {
    prefix: '?',
    style: { answer: plain, message: plain, error: (text: string) => `> ${text}`, defaultAnswer: (text: string) => `(${text})` },
  }
}
