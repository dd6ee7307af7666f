import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { isWindows, PlantsError, unlessSystemError } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
import type { GlobalOptions } from './command.js'
import { mayWaitForPerson } from './command-context.js'

/**
 * Shows what the action prints in the pager, if stdout is a terminal. What it writes to a terminal on stderr meanwhile
 * comes after the pager has ended. If a person quits the pager, the action ends with EPIPE; after Ctrl-C, with the
 * interruption, which is not reported.
 */
export async function paged(
  options: GlobalOptions,
  io: Io,
  action: (io: Io) => Promise<void>,
): Promise<void> {
  const command = commandIn(options, io)
  if (command === undefined) return action(io)
  const pager = new Pager(command, io)
  const stderr = io.stderr.isTerminal ? pager.stderr : io.stderr
  try {
    await action({ ...io, stdout: pager, stderr, handleSignals: () => pager.signal })
  } finally {
    await pager.end()
  }
}

/** Undefined if there is no terminal, nobody at it, or no pager is wanted. */
function commandIn(options: GlobalOptions, io: Io): string | undefined {
  const { PAGER, TERM } = io.env
  if (!io.stdout.isTerminal || !mayWaitForPerson(options, io)) return undefined
  const command = PAGER?.trim()
  if (command !== undefined) return command === '' || command === 'cat' ? undefined : command
  return TERM === 'dumb' || (isWindows && !isOnPath('less.exe', io)) ? undefined : 'less'
}

/** Windows would start a shell for a missing program, which prints an error of its own. */
function isOnPath(program: string, { env }: Io): boolean {
  const [, path = ''] = Object.entries(env).find(([name]) => name.toUpperCase() === 'PATH') ?? []
  return path.split(delimiter).some((folder) => existsSync(join(folder, program)))
}

/** What is written to it starts the pager; without such a program, it is the terminal. */
class Pager implements Output {
  readonly isTerminal = true
  readonly stderr: HeldOutput
  /** Aborts with that of `io`, and when the pager ends. */
  readonly signal: AbortSignal
  readonly #command: string
  readonly #io: Io
  readonly #ended = new AbortController()
  /** Aborts when the shell has not found the pager, or may not run it. */
  readonly #missing = new AbortController()
  /** What was written, while a shell without a pager may not have read it. */
  #kept: string[] | undefined = []
  #keptLength = 0
  /** Of what was kept, to the terminal. */
  #printing: Promise<void> | undefined
  #starting: Promise<void> | undefined
  /** Undefined if there is no such program. */
  #child: ReturnType<typeof start> | undefined

  constructor(command: string, io: Io) {
    this.#command = command
    this.#io = io
    this.stderr = new HeldOutput(io.stderr)
    this.signal = AbortSignal.any([io.handleSignals(), this.#ended.signal])
  }

  get columns(): number {
    return this.#io.stdout.columns
  }

  async write(text: string): Promise<void> {
    this.signal.throwIfAborted()
    this.#starting ??= this.#start()
    await this.#starting
    const child = this.#child
    if (!child) {
      await this.#printing
      return this.#io.stdout.write(text)
    }
    this.#keep(text)
    if (child.stdin.write(text)) return
    try {
      await once(child.stdin, 'drain', {
        signal: AbortSignal.any([this.signal, this.#missing.signal]),
      })
    } catch (error) {
      this.signal.throwIfAborted()
      if (isMissing((await child).exitCode)) return this.#printing
      throw error
    }
  }

  log(line: string): Promise<void> {
    return this.write(line)
  }

  stream(): NodeJS.WritableStream {
    return this.#io.stdout.stream()
  }

  /** Waits until the person quits the pager. Throws the reason of a signal that came meanwhile, which is not reported. */
  async end(): Promise<void> {
    await this.#starting
    const child = this.#child
    if (!child) return this.#printing
    const signal = this.#io.handleSignals()
    if (signal.aborted) child.stdin.destroy()
    else child.stdin.end()
    await child
    await this.#printing
    await this.stderr.release()
    const { reason } = signal
    if (reason instanceof PlantsError)
      throw new PlantsError(reason.kind, reason.message, { isReported: true })
  }

  /** A shell that ends at once has read nothing, and its pipe holds 64 KiB. */
  #keep(text: string): void {
    this.#keptLength += text.length
    this.#kept?.push(text)
    if (this.#keptLength > maxKept) this.#kept = undefined
  }

  async #print(text: string): Promise<void> {
    await this.#io.stdout.write(text)
    await this.stderr.release()
  }

  async #start(): Promise<void> {
    const signal = this.#io.handleSignals()
    const { execa } = await import('execa')
    const child = unlessSystemError(() => start(execa, this.#command, this.#io)) // the current directory may be gone
    if (child?.pid === undefined) return
    this.#child = child
    this.stderr.hold()
    // Ctrl-C is for the pager, which shows what it has until the person quits it.
    const stop = () => {
      if (signal.reason instanceof PlantsError && signal.reason.kind === 'terminated') child.kill()
    }
    signal.addEventListener('abort', stop)
    child.once('exit', (code) => {
      signal.removeEventListener('abort', stop)
      if (isMissing(code) && this.#kept) {
        this.#child = undefined
        this.#printing = this.#print(this.#kept.join(''))
        this.#missing.abort()
        return
      }
      this.#ended.abort(Object.assign(new Error('The pager has ended'), { code: 'EPIPE' }))
    })
  }
}

/** In UTF-16 code units: more than a page of the widest list and the pipe. */
const maxKept = 4_194_304

/** https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02 */
function isMissing(code: number | null | undefined): boolean {
  return code === 126 || code === 127
}

function start(execa: typeof import('execa').execa, command: string, { env }: Io) {
  const options = {
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'inherit',
    reject: false,
    buffer: false,
    // Texts are UTF-8, whatever the locale is, which a container often lacks: less would show their bytes.
    env: { LESS: 'FRX', LESSCHARSET: 'utf-8', ...env },
    extendEnv: false,
  } as const
  // PAGER is a command of the shell, as for git. Without a shell, a missing program is found before it is written to.
  const [program = '', ...args] = command.split(/\s+/)
  return /^[\w\s./:@,+-]*$/.test(command)
    ? execa(program, args, options)
    : execa(command, [], { ...options, shell: true })
}

/** Keeps what is written while the terminal shows something else. */
class HeldOutput implements Output {
  readonly isTerminal: boolean
  readonly #output: Output
  #texts: string[] | undefined

  constructor(output: Output) {
    this.#output = output
    this.isTerminal = output.isTerminal
  }

  get columns(): number {
    return this.#output.columns
  }

  async write(text: string): Promise<void> {
    if (this.#texts) this.#texts.push(text)
    else await this.#output.write(text)
  }

  async log(line: string): Promise<void> {
    if (!this.#texts) await this.#output.log(line)
    else if (this.#texts.length < maxHeld) this.#texts.push(line)
  }

  stream(): NodeJS.WritableStream {
    return this.#output.stream()
  }

  hold(): void {
    this.#texts ??= []
  }

  async release(): Promise<void> {
    const text = (this.#texts ?? []).join('')
    this.#texts = undefined
    if (text !== '') await this.#output.write(text)
  }
}

/** So many lines of a log are held, and the others dropped. */
const maxHeld = 1000
