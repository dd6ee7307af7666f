/** The types of errors, each with the `error` value and the exit code of the contract. */
const errorTypes = {
  malformed: { error: 400, exitCode: 2 }, // wrong flags, an unreadable file, a text that is not JSON
  tooLarge: { error: 413, exitCode: 2 }, // more bytes than the limit
  invalid: { error: 422, exitCode: 2 }, // JSON or flags, but not a NewPlant
  unauthorized: { error: 401, exitCode: 3 }, // no token, or one that is not accepted
  rejected: { error: 400, exitCode: 1 }, // a remote store rejected the request
  notFound: { error: 404, exitCode: 1 }, // no plant has this id
  conflict: { error: 409, exitCode: 1 }, // the id or the idempotency key exists
  unwell: { error: 500, exitCode: 1 }, // `doctor` found a problem
  unavailable: { error: 503, exitCode: 4 }, // nothing was stored: the store could not be opened, reached, read or written
  unknownOutcome: { error: 500, exitCode: 5 }, // the outcome of a commit could not be determined
  unusable: { error: 502, exitCode: 5 }, // the response of a remote store does not match the specification
  unanswered: { error: 504, exitCode: 5 }, // a remote store received the plant and did not respond
  incomplete: { error: 422, exitCode: 6 }, // an import rejected some plants
  defect: { error: 500, exitCode: 70 }, // a bug in this program
  unwritable: { error: 500, exitCode: 74 }, // the output could not be written
  interrupted: { error: 500, exitCode: 130 }, // SIGINT, Ctrl-C, or "no" at a prompt
  terminated: { error: 500, exitCode: 143 }, // SIGTERM
} as const

export type ErrorType = keyof typeof errorTypes

export function errorValue(type: ErrorType): number {
  return errorTypes[type].error
}

export type ExitCode = 0 | (typeof errorTypes)[ErrorType]['exitCode']

/** The exit codes in ascending order, each with the `error` values that cause it. */
export function exitCodes(): [code: ExitCode, errors: number[]][] {
  const all = Object.values(errorTypes)
  const codes = [0 as const, ...new Set(all.map(({ exitCode }) => exitCode))].toSorted((a, b) => a - b)
  return codes.map((code) => {
    const errors = new Set(all.filter(({ exitCode }) => exitCode === code).map(({ error }) => error))
    return [code, [...errors].toSorted((a, b) => a - b)]
  })
}

interface Details {
  hint?: string | undefined
  /** whether the same call can succeed later, unchanged */
  retryable?: boolean
  cause?: unknown
  /** the `error` of a remote store, where it differs from that of the type */
  error?: number
  status?: number | undefined
  /** the id of the request in the log of a remote store */
  requestId?: string | undefined
}

/**
 * A failure that a person can fix or a script can act on. The message says what failed, and on what;
 * the hint says what to do next. Neither ends with a full stop, and neither contains a token.
 */
export class PlantsError extends Error {
  readonly type: ErrorType
  readonly hint: string | undefined
  readonly retryable: boolean
  /** the specification's `error`, an int32; the contract says what each value means */
  readonly error: number
  readonly status: number | undefined
  readonly requestId: string | undefined

  constructor(type: ErrorType, message: string, { hint, retryable = false, cause, error, status, requestId }: Details = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'PlantsError'
    this.type = type
    this.hint = hint
    this.retryable = retryable
    this.error = error ?? errorTypes[type].error
    this.status = status
    this.requestId = requestId
  }

  get exitCode(): number {
    return errorTypes[this.type].exitCode
  }

  /** whether it is unknown if anything was stored */
  get isOutcomeUnknown(): boolean {
    return this.exitCode === 5
  }
}

/** Wrong usage, or input that cannot be read. */
export function malformed(message: string, hint: string | undefined, cause?: unknown): PlantsError {
  return new PlantsError('malformed', message, { hint, cause })
}

/** The code of a failed system call, such as `ENOENT`, or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Calls a function; undefined if that fails with a code, like a failed system call. */
export function unlessSystemError<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

export const systemReasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a directory',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'its name is too long',
  ENXIO: 'no such device or address',
  EROFS: 'the disk is read-only',
  ENOSPC: 'no space left on the disk',
  EDQUOT: "this user's disk quota is exceeded",
  EIO: 'the disk or the terminal failed',
  EINVAL: 'it cannot be read',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EBUSY: 'it is a mount point',
}

export function shellOption(name: string, value: string | undefined): string {
  return value === undefined ? '' : ` --${name}${value.startsWith('-') ? '=' : ' '}${shellWord(value)}`
}

/** Quotes a word for a shell, unless none would expand anything in it: for PowerShell and cmd on Windows, else for sh, bash and zsh. */
export function shellWord(text: string): string {
  return process.platform === 'win32' ? windowsWord(text) : posixWord(text)
}

export function posixWord(text: string): string {
  return /^(?!=)[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** Quotes a word for PowerShell and cmd. One with `"`, `$` or a backtick is quoted for PowerShell: cmd cannot quote them. */
export function windowsWord(text: string): string {
  if (/^[\w./:\\+=-]+$/.test(text)) return text
  return /["$`]/.test(text) ? `'${text.replaceAll("'", "''")}'` : `"${text.replace(/\\+$/, '$&$&')}"` // a backslash would quote the quote
}
