import { getSystemErrorMap } from 'node:util'

export const isWindows = process.platform === 'win32'

/** What all errors of a kind have in common. */
interface KindProperties {
  /** The value of `error` in the specification's Error. */
  error: number
  exitCode: number
  isRetryable?: true
  isOutcomeUnknown?: true
}

/** Each kind of failure, with the `error` value of its Error and the exit code of a command. */
export const errorKinds = {
  usage: { error: 400, exitCode: 2 }, // the command line, a variable or a setting is wrong
  input: { error: 400, exitCode: 2 }, // a file, stdin or the body of a request is wrong
  tooLarge: { error: 413, exitCode: 2 },
  invalid: { error: 422, exitCode: 2 }, // JSON or options, but not a NewPlant
  unauthorized: { error: 401, exitCode: 3 },
  forbidden: { error: 403, exitCode: 3 }, // the token is accepted, but lacks the right
  rejected: { error: 400, exitCode: 1 }, // a service answered with a 4xx status
  notFound: { error: 404, exitCode: 1 },
  conflict: { error: 409, exitCode: 1 }, // the plant is another one, or its id exists
  constraint: { error: 422, exitCode: 1 }, // a constraint that somebody added to the store
  checkFailed: { error: 500, exitCode: 1 }, // a check found a problem
  unavailable: { error: 503, exitCode: 4, isRetryable: true }, // not stored
  // Not stored either, and somebody must change something first.
  accessDenied: { error: 503, exitCode: 4 },
  unknownOutcome: { error: 500, exitCode: 5, isOutcomeUnknown: true }, // a commit got no answer
  // The response violates the specification.
  badResponse: { error: 502, exitCode: 5, isOutcomeUnknown: true },
  // A service received the plant and did not respond.
  noResponse: { error: 504, exitCode: 5, isOutcomeUnknown: true },
  incomplete: { error: 422, exitCode: 6 }, // an import rejected some plants, or kept some that --sync deletes
  internalError: { error: 500, exitCode: 70 },
  unwritable: { error: 500, exitCode: 74 }, // a file or stdout
  interrupted: { error: 500, exitCode: 130 }, // SIGINT, Ctrl-C, or "no" at a prompt
  terminated: { error: 500, exitCode: 143 }, // SIGTERM
} as const satisfies Record<string, KindProperties>

export type ErrorKind = keyof typeof errorKinds

type Details = Partial<
  Pick<
    PlantsError,
    | 'hint'
    | 'details'
    | 'error'
    | 'status'
    | 'requestId'
    | 'retryAfterMs'
    | 'isReported'
    | 'mayBeOwnPlant'
    | 'isKeyIgnored'
  >
>

/**
 * A failure that a person can fix or a script can act on. The message says what failed, and on
 * what, in the words of the domain, because a service may send it. The hint, one sentence, says
 * what to do next. Neither ends with a full stop, or contains a token.
 */
export class PlantsError extends Error {
  readonly kind: ErrorKind
  /** The value that a service sent, or else the value of the kind. */
  readonly error: number
  /** Commands and options may be named here, because no service sends a hint. */
  declare readonly hint?: string | undefined
  /** What a file says, such as the names of its columns. Each text is a line below the message. */
  declare readonly details?: readonly string[] | undefined
  declare readonly status?: number | undefined
  declare readonly requestId?: string | undefined
  declare readonly retryAfterMs?: number | undefined
  /**
   * Set for a conflict after an earlier try of the same create had no response. The plant that has
   * the id may be the one that this try stored, and that somebody has changed since.
   */
  declare readonly mayBeOwnPlant?: boolean
  /** Set for a create without a usable response at a service that lists no idempotency keys. */
  declare readonly isKeyIgnored?: boolean
  /** The person knows of the failure already, for example because they pressed Ctrl-C. */
  declare readonly isReported?: boolean

  constructor(
    kind: ErrorKind,
    message: string,
    { cause, ...details }: Details & { cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.error = errorKinds[kind].error
    Object.assign(this, details)
    // These come last, because the details may be another error with its own name and kind.
    this.name = 'PlantsError'
    this.kind = kind
  }

  get exitCode(): number {
    return errorKinds[this.kind].exitCode
  }

  /** Whether the same call, unchanged, can succeed later. */
  get isRetryable(): boolean {
    return 'isRetryable' in errorKinds[this.kind]
  }

  /** Whether the change may have been made, so that a repetition could make it twice. */
  get isOutcomeUnknown(): boolean {
    return 'isOutcomeUnknown' in errorKinds[this.kind]
  }

  get isInterruption(): boolean {
    return this.kind === 'interrupted' || this.kind === 'terminated'
  }
}

export function createUsageError(message: string, hint?: string, cause?: unknown): PlantsError {
  return new PlantsError('usage', message, { hint, cause })
}

export function createInputError(
  message: string,
  hint?: string,
  cause?: unknown,
  details?: readonly string[],
): PlantsError {
  return new PlantsError('input', message, { hint, cause, details })
}

/** What an error with a code means, in the tables of stores and of the server. */
export interface Explanation {
  kind: ErrorKind
  /** The name of a value stands in braces, as in `{subject} is locked: {reason}`. */
  message?: string
  /** By default, the reason is what the system or the library says. */
  reason?: string
  hint?: string
}

/**
 * Creates the error that an explanation describes.
 *
 * @param defaults the values of the message, with the `reason` if the explanation has none
 */
export function createExplainedError(
  explanation: Explanation & { message: string },
  defaults: Readonly<Record<string, string>>,
  cause: unknown,
): PlantsError {
  const { kind, message, hint } = explanation
  const values: Record<string, string> = { ...defaults, ...explanation }
  const text = message.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
  return new PlantsError(kind, text, { hint, cause })
}

/** Returns the code of a system error or of Node.js, such as `ENOENT` or `ERR_DLOPEN_FAILED`. */
export function getSystemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

/**
 * Returns the first line of an error's message. It is made well-formed, because V8's message about
 * invalid JSON quotes the UTF-16 unit where it stopped, which may be half of a surrogate pair.
 */
export function describeReason(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1)
  return line.toWellFormed()
}

/** Returns undefined if the call fails with a system error. Other errors are thrown. */
export function ignoreSystemError<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (getSystemCode(error) === undefined) throw error
    return undefined
  }
}

/** Returns a reason such as `permission denied`, or undefined for an error without a code. */
export function describeSystemError(error: unknown): string | undefined {
  const code = getSystemCode(error)
  return code === undefined ? undefined : (describeCode(code) ?? `system error ${code}`)
}

export function describeCode(code: string): string | undefined {
  // The system says "illegal operation on a directory" and "inappropriate file type or format".
  if (code === 'EISDIR') return 'it is a directory'
  if (code === 'EFTYPE') return 'it is not a file'
  // Windows uses one code for a file that is open, and for one that is read-only.
  if (code === 'EBUSY' && isWindows) return 'another program has it open, or it is read-only'
  for (const [name, reason] of getSystemErrorMap().values()) if (name === code) return reason
  return undefined
}

/** The problem of a path of a file that ends in a slash. The directory may or may not exist. */
export const finalSlashProblem = 'ends in a slash, like a directory'

export const fileHint = 'Give the path of a file'

/** The hint for a directory where a file is expected. */
export const fileInFolderHint = `${fileHint} in it`

/** What to do about a lack of file descriptors. */
export const descriptorExplanations: Readonly<Record<string, Explanation>> = {
  EMFILE: {
    kind: 'unavailable',
    hint: 'Raise the limit of open files: as root, ulimit -Hn 4096; in systemd, LimitNOFILE=4096',
  },
  ENFILE: {
    kind: 'unavailable',
    hint: 'Close other programs, because the whole system has too many open files',
  },
}

export const fullDisk: Explanation = { kind: 'unavailable', hint: 'Free some space on its disk' }

/** What to do about a file that cannot grow. */
export const spaceExplanations: Readonly<Record<string, Explanation>> = {
  ENOSPC: fullDisk,
  EFBIG: { kind: 'unavailable', hint: 'Raise the limit of file sizes, which ulimit -f shows' },
}

/** Returns a value that is known to exist, such as an item at an index that was checked. */
export function assertDefined<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('A value that must exist is missing')
  return value
}
