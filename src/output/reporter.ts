import { getSystemCode, type PlantsError } from '../errors.js'
import { toJson } from '../plant/json.js'
import { redactJson, toPrintable } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { createStyle, type Style } from './output.js'

interface ReportOptions {
  verbose?: boolean
  quiet?: boolean
  color?: boolean
}

interface Rejection {
  error: number
  message: string
  file: string
  line: number
}

/**
 * Writes errors, warnings and the log of `--verbose` to stderr: as text, or as a line of JSON each
 * where the caller has asked for JSON. Secrets are redacted.
 */
export class Reporter {
  readonly isQuiet: boolean
  readonly isVerbose: boolean

  constructor(
    private readonly io: Io,
    readonly isJson: boolean,
    private readonly options: ReportOptions,
  ) {
    this.isQuiet = options.quiet === true
    this.isVerbose = options.verbose === true
  }

  get showsProgress(): boolean {
    return this.io.stderr.isTerminal && !this.isJson && !this.isVerbose && !this.isQuiet
  }

  /** @param label marks a warning about what the user may have to correct */
  async warn(text: string, label?: 'warning'): Promise<void> {
    if (!this.isQuiet) await this.#write(await this.#formatWarning(text, label))
  }

  /** Warns without waiting for the write. */
  async warnMeanwhile(text: string): Promise<void> {
    if (!this.isQuiet) void this.io.stderr.log(await this.#formatWarning(text))
  }

  /** Writes with `--verbose` only. A slow reader of stderr delays nothing. */
  log(...lines: string[]): void {
    if (!this.isVerbose) return
    const texts = lines.map((line) =>
      this.isJson ? this.#formatJsonLine({ verbose: line }) : `${toPrintable(line, this.io)}\n`,
    )
    void this.io.stderr.log(texts.join(''))
  }

  async reportRejected(records: readonly Rejection[]): Promise<void> {
    const { bad } = await this.#createStyle()
    const lines = records.map((record) => {
      if (this.isJson) return this.#formatJsonLine(record)
      const { file, line, message } = record
      return `${bad('plants:')} ${toPrintable(`${file}:${line}: ${message}`, this.io)}\n`
    })
    await this.#write(lines.join(''))
  }

  async reportError(failure: PlantsError): Promise<void> {
    const { error, kind, cause, message, hint, isRetryable, status, requestId } = failure
    const { details = [] } = failure
    if (this.isJson) {
      const retryable = isRetryable || undefined
      const lines = details.length > 0 ? details : undefined
      const fields = { error, message, details: lines, hint, kind, retryable, status, requestId }
      return this.#write(this.#formatJsonLine(fields))
    }
    const { bad, faint } = await this.#createStyle()
    // The status 400 says nothing, because the specification has it for every error.
    const isShown = status !== undefined && status !== 400 && !message.includes(`${status}`)
    const text = toPrintable(message, this.io) + (isShown ? ` (status ${status})` : '')
    const stack =
      kind === 'internalError' && cause instanceof Error ? (cause.stack ?? '').split('\n') : []
    const advice = hint === undefined ? [] : [hint]
    const lines = [...stack, ...details, ...advice].map(
      (line) => `  ${faint(toPrintable(line, this.io))}\n`,
    )
    await this.#write(`${bad('plants:')} ${text}\n${lines.join('')}`)
  }

  async #formatWarning(text: string, label?: 'warning'): Promise<string> {
    if (this.isJson) return this.#formatJsonLine({ warning: text })
    const { strong } = await this.#createStyle()
    return `plants:${strong(label ? ` ${label}:` : '')} ${toPrintable(text, this.io)}\n`
  }

  #createStyle(): Promise<Style> {
    return createStyle({ io: this.io, options: this.options }, this.io.stderr)
  }

  #formatJsonLine(fields: object): string {
    return `${redactJson(toJson(fields), this.io)}\n`
  }

  /** Ignores a failed write: the exit code still shows how the command ended. */
  async #write(text: string): Promise<void> {
    try {
      await this.io.stderr.write(text)
    } catch (error) {
      if (getSystemCode(error) === undefined) throw error
    }
  }
}
