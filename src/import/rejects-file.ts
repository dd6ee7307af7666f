/*
 * Writes the file of `--rejects`, which gets the rejected records with the reasons.
 *
 * The records are written under a temporary name next to the file, which gets its name when it is
 * complete. So a file with this name never lacks a record, and an import that was killed leaves
 * none: the same command runs again, and writes all of them.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import {
  createUsageError,
  describeReason,
  fileInFolderHint,
  getSystemCode,
  PlantsError,
} from '../errors.js'
import { AtomicFile, toWriteError } from '../platform/atomic-file.js'

const otherFileHint = 'Choose another file with --rejects'

export class RejectsFile {
  readonly path: string
  #file: AtomicFile | undefined
  /** Whether the file has its name. */
  isComplete = false

  /**
   * Creates no file yet.
   *
   * @throws {PlantsError} `usage` if the file exists, or `unwritable` if its directory cannot have
   *   it
   */
  constructor(path: string) {
    this.path = path
    const stats = this.#explainErrors(() => {
      fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
      return fs.lstatSync(path, { throwIfNoEntry: false })
    })
    if (stats?.isDirectory()) throw createUsageError(`${path} is a directory`, fileInFolderHint)
    if (stats)
      throw createUsageError(
        `${path} already exists, and would be overwritten`,
        `${otherFileHint}, or rename this one`,
      )
  }

  /**
   * @param header precedes the first rows
   * @param rows the rejected records of a chunk
   */
  append(header: string, rows: string): void {
    const isFirst = this.#file === undefined
    const file = this.#file ?? this.#explainErrors(() => new AtomicFile(this.path))
    this.#file = file
    try {
      fs.writeFileSync(file.fd, isFirst ? header + rows : rows)
    } catch (error) {
      this.#file = undefined
      throw createUnfinishedError(this.path, file.path, error)
    }
  }

  /**
   * Gives the file its name, if it has a record.
   *
   * @throws {PlantsError} `unwritable`, for example if the name is taken. Then the records stay in
   *   the file with the temporary name, as after an error of `append`.
   */
  finish(): void {
    const file = this.#file
    if (file === undefined) return
    this.#file = undefined
    try {
      file.commitNew()
    } catch (error) {
      throw createUnfinishedError(this.path, file.path, error)
    }
    file.discard()
    this.isComplete = true
  }

  /** Deletes the temporary file. */
  discard(): void {
    this.#file?.discard()
  }

  #explainErrors<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw toWriteError(`The rejects file ${this.path}`, this.path, error, otherFileHint)
    }
  }
}

function createUnfinishedError(path: string, temporaryPath: string, cause: unknown): PlantsError {
  const message =
    getSystemCode(cause) === 'EEXIST'
      ? `Another program has written ${path} during the import`
      : `The rejects file ${path} could not be written: ${describeReason(cause)}`
  return new PlantsError('unwritable', message, {
    hint: `The rejected records are in ${temporaryPath}: rename it`,
    cause,
  })
}
