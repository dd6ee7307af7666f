import { getSystemErrorMap } from 'node:util'

export const isWindows = process.platform === 'win32'

interface KindOfError {
  /** The specification's `error`. */
  error: number
  exitCode: number
  /** Whether the same call can succeed later, unchanged. */
  isRetryable?: true
  /** Whether the change may have been made, so that a repetition may make it twice. */
  isOutcomeUnknown?: true
}

/** What follows from the kind of an error, as the contract has it. */
export const errorKinds = {
  usage: { error: 400, exitCode: 2 }, // the command line, a variable or a setting is wrong
  input: { error: 400, exitCode: 2 }, // a file, stdin or a body is wrong
  tooLarge: { error: 413, exitCode: 2 },
  invalid: { error: 422, exitCode: 2 }, // JSON or options, but not a NewPlant
  unauthorized: { error: 401, exitCode: 3 },
  forbidden: { error: 403, exitCode: 3 }, // the token is accepted, but has no right to this
  rejected: { error: 400, exitCode: 1 }, // a service rejected the request
  notFound: { error: 404, exitCode: 1 },
  conflict: { error: 409, exitCode: 1 }, // the id or the idempotency key exists
  constraint: { error: 422, exitCode: 1 }, // that somebody added to the store
  unwell: { error: 500, exitCode: 1 }, // a check found a problem
  unavailable: { error: 503, exitCode: 4, isRetryable: true }, // nothing was stored
  inaccessible: { error: 503, exitCode: 4 }, // nothing was stored, and somebody must change something first
  unknownOutcome: { error: 500, exitCode: 5, isOutcomeUnknown: true }, // of a commit
  unusable: { error: 502, exitCode: 5, isOutcomeUnknown: true }, // a response that does not match the specification
  unanswered: { error: 504, exitCode: 5, isOutcomeUnknown: true }, // a service received the plant and did not respond
  incomplete: { error: 422, exitCode: 6 }, // an import rejected some plants
  defect: { error: 500, exitCode: 70 },
  unwritable: { error: 500, exitCode: 74 },
  interrupted: { error: 500, exitCode: 130 }, // SIGINT, Ctrl-C, or "no" at a prompt
  terminated: { error: 500, exitCode: 143 },
} as const satisfies Record<string, KindOfError>

export type ErrorKind = keyof typeof errorKinds

export function errorValue(kind: ErrorKind): number {
  return errorKinds[kind].error
}

export type ExitCode = 0 | (typeof errorKinds)[ErrorKind]['exitCode']

type Details = Partial<
  Pick<PlantsError, 'hint' | 'error' | 'status' | 'requestId' | 'retryAfterMs' | 'isReported'>
>

/**
 * A failure that a person can fix or a script can act on. The message says what failed, and on what, in the words of the
 * domain, because a service may send it. The hint, one fixed sentence, says what to do next. Neither ends with a full
 * stop, or contains a token.
 */
export class PlantsError extends Error {
  readonly kind: ErrorKind
  /** The specification's `error`: that of a service where it gave one, otherwise that of the kind. */
  readonly error: number
  /** For the person at the command line: it may name commands and options, and no service sends it. */
  declare readonly hint?: string | undefined
  /** Of a response. */
  declare readonly status?: number | undefined
  /** The id of the request in the log of a service. */
  declare readonly requestId?: string | undefined
  /** A service wants to be asked again after so long. */
  declare readonly retryAfterMs?: number | undefined
  /** Whether the person knows of it, such as of Ctrl-C in a pager. */
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

  get isRetryable(): boolean {
    return 'isRetryable' in errorKinds[this.kind]
  }

  get isOutcomeUnknown(): boolean {
    return 'isOutcomeUnknown' in errorKinds[this.kind]
  }

  get isInterruption(): boolean {
    return this.kind === 'interrupted' || this.kind === 'terminated'
  }
}

/** A command line, a variable or a setting is wrong. */
export function usageError(message: string, hint?: string, cause?: unknown): PlantsError {
  return new PlantsError('usage', message, { hint, cause })
}

/** A file, stdin or the body of a request is wrong. */
export function inputError(message: string, hint?: string, cause?: unknown): PlantsError {
  return new PlantsError('input', message, { hint, cause })
}

/** Such as `ENOENT`; undefined for what is not a failed system call. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

/** The first line of the message. */
export function reasonOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1)
  return line
}

export function unlessSystemError<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** In the words of the system, such as `permission denied`. Undefined for what is not a failed system call. */
export function systemReason(error: unknown): string | undefined {
  const code = systemCode(error)
  return code === undefined ? undefined : (reasonOfCode(code) ?? `system error ${code}`)
}

/** Undefined for a code that is not the system's. */
export function reasonOfCode(code: string): string | undefined {
  for (const [name, reason] of getSystemErrorMap().values()) if (name === code) return reason
  return undefined
}

/** What an index finds that is in range. Anything else is a defect. */
export function must<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('An index is out of range')
  return value
}
