import { Worker } from 'node:worker_threads'
import type { CellValue } from 'hucre/xlsx'
import { systemCode } from '../../platform/errors.js'

/** What a thread answers about a workbook. */
export interface WorkerRequests {
  sheets: { request: undefined; reply: { names: string[]; isFrom1904: boolean } }
  rows: { request: RowsRequest; reply: { rows: PostedRow[]; isLast: boolean } }
  /** Reads the formats of the columns that have values of a type, for the next rows. */
  readFormats: { request: { index: number; wanted: WantedFormats[] }; reply: undefined }
}

export interface RowsRequest {
  /** The name of the sheet. */
  index: number
  /** Rows, from 0; fewer are given where they are large. */
  from: number
  to: number
  /** Columns. */
  width: number
  /** Columns that are read at all. */
  maxRows: number | undefined
}

export interface WantedFormats {
  column: number
  types: ('number' | 'date' | 'time')[]
}

/** Without empty cells at its end. Undefined if it is too large. */
export type PostedRow = PostedCell[] | undefined

/** A date is counted from 1904. */
export type PostedCell =
  | CellValue
  | { value: CellValue; type?: 'error' | 'formula'; format?: string }

/** The workbook is not as hucre expects it. */
export class DamageError extends Error {}

/** The workbook needs more memory than it may. */
export class LimitError extends Error {}

/** Reads a workbook in a thread, which the signal ends. */
export class WorkbookThread {
  readonly #worker: Worker
  readonly #signal: AbortSignal
  readonly #stop: () => void
  #pending: { resolve(reply: unknown): void; reject(reason: unknown): void } | undefined
  #failure: unknown

  constructor(
    bytes: Uint8Array,
    limits: { maxRecordLength: number; maxLength: number },
    signal: AbortSignal,
  ) {
    signal.throwIfAborted()
    this.#signal = signal
    this.#worker = new Worker(new URL('./workbook-worker.js', import.meta.url), {
      workerData: { bytes, ...limits },
      resourceLimits: { maxOldGenerationSizeMb },
    })
    this.#worker.on('message', ({ reply, error }) => {
      if (error)
        this.#pending?.reject(
          error.isLimit ? new LimitError(error.message) : new DamageError(error.message),
        )
      else this.#pending?.resolve(reply)
    })
    const isMemory = (error: unknown) => systemCode(error) === 'ERR_WORKER_OUT_OF_MEMORY'
    this.#worker.on('error', (error) =>
      this.#fail(isMemory(error) ? new LimitError(error.message) : error),
    )
    this.#worker.on('exit', () =>
      this.#fail(new Error('The thread that reads the workbook has ended')),
    )
    this.#stop = () => {
      this.#fail(signal.reason)
      this.close()
    }
    signal.addEventListener('abort', this.#stop, { once: true })
  }

  #fail(reason: unknown): void {
    this.#failure ??= reason
    this.#pending?.reject(this.#failure)
  }

  /** Throws the reason of the signal as soon as it aborts, a `LimitError`, and a `DamageError`. */
  async ask<T extends keyof WorkerRequests>(
    type: T,
    request: WorkerRequests[T]['request'],
  ): Promise<WorkerRequests[T]['reply']> {
    if (this.#failure !== undefined) throw this.#failure
    const reply = await new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
      this.#worker.postMessage({ type, request })
    })
    return reply as WorkerRequests[T]['reply'] // the worker answers each type with its own
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#stop)
    void this.#worker.terminate()
  }
}

/** Bun has no limit but that of what is unpacked. */
const maxOldGenerationSizeMb = 1024
