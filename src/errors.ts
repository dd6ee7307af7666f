import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { getSystemErrorMap } from 'node:util'

export const isWindows = process.platform === 'win32'

interface KindOfError {
  /** The specification's */
  error: number
  exitCode: number
  isRetryable?: true
  isOutcomeUnknown?: true
}

export const errorKinds = {
  usage: { error: 400, exitCode: 2 }, // the command line, a variable or a setting is wrong
  input: { error: 400, exitCode: 2 }, // a file, stdin or the body of a request is wrong
  tooLarge: { error: 413, exitCode: 2 },
  invalid: { error: 422, exitCode: 2 }, // JSON or options, but not a NewPlant
  unauthorized: { error: 401, exitCode: 3 },
  forbidden: { error: 403, exitCode: 3 }, // the token is accepted, but has no right to this
  rejected: { error: 400, exitCode: 1 }, // by a service
  notFound: { error: 404, exitCode: 1 },
  conflict: { error: 409, exitCode: 1 }, // the id exists
  constraint: { error: 422, exitCode: 1 }, // that somebody added to the store
  unwell: { error: 500, exitCode: 1 }, // a check found a problem
  unavailable: { error: 503, exitCode: 4, isRetryable: true }, // nothing was stored
  // Nothing was stored, and somebody must change something first.
  accessDenied: { error: 503, exitCode: 4 },
  unknownOutcome: { error: 500, exitCode: 5, isOutcomeUnknown: true }, // of a commit
  // The response violates the specification.
  badResponse: { error: 502, exitCode: 5, isOutcomeUnknown: true },
  // A service received the plant and did not respond.
  noResponse: { error: 504, exitCode: 5, isOutcomeUnknown: true },
  incomplete: { error: 422, exitCode: 6 }, // an import rejected some plants
  internalError: { error: 500, exitCode: 70 },
  unwritable: { error: 500, exitCode: 74 },
  interrupted: { error: 500, exitCode: 130 }, // SIGINT, Ctrl-C, or "no" at a prompt
  terminated: { error: 500, exitCode: 143 },
} as const satisfies Record<string, KindOfError>

export type ErrorKind = keyof typeof errorKinds

export function errorValue(kind: ErrorKind): number {
  return errorKinds[kind].error
}

type Details = Partial<
  Pick<
    PlantsError,
    'hint' | 'error' | 'status' | 'requestId' | 'retryAfterMs' | 'isReported' | 'mayBeOwnPlant'
  >
>

/**
 * A failure that a person can fix or a script can act on. The message says what failed, and on
 * what, in the words of the domain, because a service may send it. The hint, one fixed sentence,
 * says what to do next. Neither ends with a full stop, or contains a token.
 */
export class PlantsError extends Error {
  readonly kind: ErrorKind
  /** That of a service where it gave one, otherwise that of the kind. */
  readonly error: number
  /** It may name commands and options: no service sends it. */
  declare readonly hint?: string | undefined
  declare readonly status?: number | undefined
  declare readonly requestId?: string | undefined
  declare readonly retryAfterMs?: number | undefined
  /**
   * Of a conflict: an earlier try of the create had no answer, so the plant that has the id may be
   * the one that it stored, changed since.
   */
  declare readonly mayBeOwnPlant?: boolean
  /** The person knows of it already, as of Ctrl-C. */
  declare readonly isReported?: boolean

  constructor(
    kind: ErrorKind,
    message: string,
    { cause, ...details }: Details & { cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.error = errorKinds[kind].error
    Object.assign(this, details)
    // After the details, which may be those of another error.
    this.name = 'PlantsError'
    this.kind = kind
  }

  get exitCode(): number {
    return errorKinds[this.kind].exitCode
  }

  /** The same call can succeed later, unchanged. */
  get isRetryable(): boolean {
    return 'isRetryable' in errorKinds[this.kind]
  }

  /** The change may have been made, so that a repetition may make it twice. */
  get isOutcomeUnknown(): boolean {
    return 'isOutcomeUnknown' in errorKinds[this.kind]
  }

  get isInterruption(): boolean {
    return this.kind === 'interrupted' || this.kind === 'terminated'
  }
}

export function usageError(message: string, hint?: string, cause?: unknown): PlantsError {
  return new PlantsError('usage', message, { hint, cause })
}

export function inputError(message: string, hint?: string, cause?: unknown): PlantsError {
  return new PlantsError('input', message, { hint, cause })
}

/** Such as `ENOENT`, or `ERR_DLOPEN_FAILED` of Node. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

/**
 * The first line of the message. V8's sentence about JSON that does not parse quotes the UTF-16
 * unit where it stopped, which may be half of a surrogate pair.
 */
export function describeReason(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1)
  return line.toWellFormed()
}

export function unlessSystemError<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** Such as `permission denied`. Undefined for an error without a code. */
export function systemReason(error: unknown): string | undefined {
  const code = systemCode(error)
  return code === undefined ? undefined : (reasonOfCode(code) ?? `system error ${code}`)
}

export function reasonOfCode(code: string): string | undefined {
  for (const [name, reason] of getSystemErrorMap().values()) if (name === code) return reason
  return undefined
}

/** Undefined for a call that did not fail for want of file descriptors. */
export function toDescriptorsHint(code: string | undefined): string | undefined {
  if (code === 'EMFILE')
    return 'Raise the limit of open files: as root, ulimit -Hn 4096; in systemd, LimitNOFILE=4096'
  if (code === 'ENFILE') return 'Close other programs: the whole system has too many open files'
  return undefined
}

/**
 * SQLite may have several files open when it fails, and has closed them by the time it reports
 * that.
 */
const descriptorsOfSqlite = 8

/** Whether this process cannot open as many more files as a call of SQLite may need. */
export function isOutOfDescriptors(): boolean {
  const opened: number[] = []
  try {
    while (opened.length < descriptorsOfSqlite) opened.push(openSync(devNull, 'r'))
    return false
  } catch (error) {
    return toDescriptorsHint(systemCode(error)) !== undefined
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}

export function assertDefined<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('An index is out of range')
  return value
}
