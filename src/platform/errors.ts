import type { Hint } from './advice.js'

export const isWindows = process.platform === 'win32'

/** As hints name it: libpq reads passwords from it (https://www.postgresql.org/docs/current/libpq-pgpass.html). */
export const passwordFile = isWindows ? '%APPDATA%\\postgresql\\pgpass.conf' : '~/.pgpass'

/** Each type has the `error` value and the exit code of the contract. */
const errorTypes = {
  malformed: { error: 400, exitCode: 2 }, // wrong options, an unreadable file, a text that is not JSON
  tooLarge: { error: 413, exitCode: 2 },
  invalid: { error: 422, exitCode: 2 }, // JSON or options, but not a NewPlant
  unauthorized: { error: 401, exitCode: 3 },
  forbidden: { error: 403, exitCode: 3 }, // the token is accepted, but has no right to this
  rejected: { error: 400, exitCode: 1 }, // a service rejected the request
  notFound: { error: 404, exitCode: 1 },
  conflict: { error: 409, exitCode: 1 }, // the id or the idempotency key exists
  unwell: { error: 500, exitCode: 1 }, // a check found a problem
  unavailable: { error: 503, exitCode: 4 }, // nothing was stored
  unknownOutcome: { error: 500, exitCode: 5 }, // of a commit
  unusable: { error: 502, exitCode: 5 }, // a response that does not match the specification
  unanswered: { error: 504, exitCode: 5 }, // a service received the plant and did not respond
  incomplete: { error: 422, exitCode: 6 }, // an import rejected some plants
  defect: { error: 500, exitCode: 70 },
  unwritable: { error: 500, exitCode: 74 },
  interrupted: { error: 500, exitCode: 130 }, // SIGINT, Ctrl-C, or "no" at a prompt
  terminated: { error: 500, exitCode: 143 },
} as const

export type ErrorType = keyof typeof errorTypes

export function errorValue(type: ErrorType): number {
  return errorTypes[type].error
}

export type ExitCode = 0 | (typeof errorTypes)[ErrorType]['exitCode']

/** In ascending order, each with the `error` values that cause it. */
export function exitCodes(): [code: ExitCode, errors: number[]][] {
  const all = Object.values(errorTypes)
  const codes = [0 as const, ...new Set(all.map(({ exitCode }) => exitCode))].toSorted((a, b) => a - b)
  return codes.map((code) => {
    const errors = new Set(all.filter(({ exitCode }) => exitCode === code).map(({ error }) => error))
    return [code, [...errors].toSorted((a, b) => a - b)]
  })
}

interface Details {
  hint?: Hint | undefined
  /** Whether the same call can succeed later, unchanged. */
  retryable?: boolean
  cause?: unknown
  /** The `error` of a service, where it differs from that of the type. */
  error?: number
  status?: number | undefined
  /** The id of the request in the log of a service. */
  requestId?: string | undefined
  /** A service wants to be asked again after so many milliseconds. */
  retryAfter?: number | undefined
  /** Whether the person knows of it, such as of Ctrl-C in a pager. */
  isReported?: boolean
}

/**
 * A failure that a person can fix or a script can act on. The message says what failed, and on what; the hint, what to
 * do next. Neither ends with a full stop, or contains a token.
 */
export class PlantsError extends Error {
  readonly type: ErrorType
  readonly hint: Hint | undefined
  readonly retryable: boolean
  /** The specification's `error`. */
  readonly error: number
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined
  readonly isReported: boolean

  constructor(type: ErrorType, message: string, details: Details = {}) {
    const { hint, retryable = false, cause, error = errorTypes[type].error, status, requestId, retryAfter } = details
    const { isReported = false } = details
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'PlantsError'
    this.type = type
    this.hint = hint
    this.retryable = retryable
    this.error = error
    this.status = status
    this.requestId = requestId
    this.retryAfter = retryAfter
    this.isReported = isReported
  }

  get exitCode(): number {
    return errorTypes[this.type].exitCode
  }

  get isOutcomeUnknown(): boolean {
    return this.exitCode === 5
  }

  get isInterruption(): boolean {
    return this.type === 'interrupted' || this.type === 'terminated'
  }
}

export function malformed(message: string, hint: Hint | undefined, cause?: unknown): PlantsError {
  return new PlantsError('malformed', message, { hint, cause })
}

/** Such as `ENOENT`; undefined for what is not a failed system call. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The first line of the message, without the advice of Node 24 about certificates, which names an option of Node. */
export function reasonOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1)
  return line.replace(/; if the root CA is installed locally, .*/, '')
}

export function unlessSystemError<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** Undefined for what is not a failed system call. `special` has the codes that mean something else here. */
export function systemReason(error: unknown, special: Readonly<Record<string, string>> = {}): string | undefined {
  const code = systemCode(error)
  return code === undefined ? undefined : (special[code] ?? systemReasons[code] ?? `system error ${code}`)
}

export const systemReasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EEXIST: 'it exists already',
  ENOTDIR: 'a part of its path is not a directory',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'its name is too long',
  ENXIO: 'no such device or address',
  EROFS: 'the disk is read-only',
  ENOSPC: 'no space left on the disk',
  EFBIG: 'the limit of the size of a file is reached',
  EDQUOT: "this user's disk quota is exceeded",
  EIO: 'the disk or the terminal failed',
  EINVAL: 'it cannot be read',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EBUSY: isWindows ? 'another program has it open' : 'it is a mount point',
}

/** Such as `(mode 644)`. */
export function octal(mode: number): string {
  return `(mode ${(mode & 0o1777).toString(8)})`
}

export function shellOption(name: string, value: string | undefined): string {
  return value === undefined ? '' : ` --${name}${value.startsWith('-') ? '=' : ' '}${shellWord(value)}`
}

/** Quotes a word for PowerShell and cmd on Windows, otherwise for sh, bash and zsh. */
export function shellWord(text: string): string {
  return isWindows ? windowsWord(text) : posixWord(text)
}

export function posixWord(text: string): string {
  return /^(?!=)[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** A word with `"`, `$` or a backtick is quoted for PowerShell alone: cmd cannot quote them. */
export function windowsWord(text: string): string {
  if (/^[\w./:\\+=-]+$/.test(text)) return text
  // A backslash would quote the quote.
  return /["$`]/.test(text) ? `'${text.replaceAll("'", "''")}'` : `"${text.replace(/\\+$/, '$&$&')}"`
}

/** What an index finds that is in range. Anything else is a defect. */
export function must<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('An index is out of range')
  return value
}
