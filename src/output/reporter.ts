import { toJson } from '../plant/exact-json.js'
import { type PlantsError, systemCode } from '../platform/errors.js'
import { printable, redactJson } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { type ColorChoice, mayColor, type Style, styleFor } from './output.js'

interface ReportOptions {
  verbose?: boolean
  quiet?: boolean
  color?: ColorChoice | false
}

/** The `element` is the index in a JSON array. */
type Rejection = {
  error: number
  message: string
  file: string
  line: number
  element: number | undefined
}

/** Writes to stderr: warnings, errors and, with --verbose, a log. */
export class Reporter {
  readonly isQuiet: boolean
  readonly isVerbose: boolean
  /** Whether JSON was requested. */
  readonly isJson: boolean
  readonly #io: Io
  readonly #options: ReportOptions

  constructor(io: Io, isJson: boolean, options: ReportOptions) {
    this.#io = io
    this.#options = options
    this.isJson = isJson
    this.isQuiet = options.quiet === true
    this.isVerbose = options.verbose === true
  }

  get showsProgress(): boolean {
    return this.#io.stderr.isTerminal && !this.isJson && !this.isVerbose && !this.isQuiet
  }

  /** The label marks something that the user may have to correct. */
  async warn(text: string, label?: 'warning'): Promise<void> {
    if (!this.isQuiet) await this.#write(await this.#warning(text, label))
  }

  /** Does not wait for the write, so that an action in progress continues and can be interrupted. */
  async warnMeanwhile(text: string): Promise<void> {
    if (!this.isQuiet) void this.#io.stderr.log(await this.#warning(text))
  }

  /** Does not wait for the write, so that a slow reader of stderr delays nothing and signals still work. */
  log(...lines: string[]): void {
    if (!this.isVerbose) return
    const texts = lines.map((line) =>
      this.isJson ? this.#jsonLine({ verbose: line }) : `${this.#printable(line)}\n`,
    )
    void this.#io.stderr.log(texts.join(''))
  }

  async reportRejected(records: readonly Rejection[]): Promise<void> {
    const { bad } = await this.#style()
    const lines = records.map((record) => {
      if (this.isJson) return this.#jsonLine(record)
      const { file, line, element, message } = record
      // In an array of several lines, the line is enough.
      const position = line === 1 && element !== undefined ? `[${element}]` : `:${line}`
      return `${bad('plants:')} ${this.#printable(`${file}${position}: ${message}`)}\n`
    })
    await this.#write(lines.join(''))
  }

  /** Throws the reason of a signal that arrives meanwhile. */
  async reportError(failure: PlantsError): Promise<void> {
    const { error, kind, cause, message, hint, isRetryable, status, requestId } = failure
    if (this.isJson) {
      const retryable = isRetryable || undefined
      const fields = { error, message, hint, retryable, status, requestId }
      return this.#write(this.#jsonLine(fields))
    }
    const { bad, faint } = await this.#style()
    // 400 is the specification's status for every error.
    const isShown = status !== undefined && status !== 400 && !message.includes(`${status}`)
    const text = this.#printable(message) + (isShown ? ` (status ${status})` : '')
    const stack = kind === 'defect' && cause instanceof Error ? (cause.stack ?? '').split('\n') : []
    const below = hint === undefined ? stack : [...stack, hint]
    const lines = below.map((line) => `  ${faint(this.#printable(line))}\n`)
    await this.#write(`${bad('plants:')} ${text}\n${lines.join('')}`)
  }

  async #warning(text: string, label?: 'warning'): Promise<string> {
    if (this.isJson) return this.#jsonLine({ warning: text })
    const { strong } = await this.#style()
    const name = label === undefined ? '' : ` ${label}:`
    return `plants:${strong(name)} ${this.#printable(text)}\n`
  }

  #style(): Promise<Style> {
    return styleFor(mayColor(this.#io.stderr, this.#options, this.#io))
  }

  #printable(text: string): string {
    return printable(text, this.#io)
  }

  #jsonLine(fields: object): string {
    return `${redactJson(toJson(fields), this.#io)}\n`
  }

  /** Ignores a failed write: it cannot be reported, and the exit code still shows how the command ended. */
  async #write(text: string): Promise<void> {
    try {
      await this.#io.stderr.write(text)
    } catch (error) {
      if (systemCode(error) === undefined) throw error
    }
  }
}
