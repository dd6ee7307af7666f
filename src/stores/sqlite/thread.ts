import { parentPort, workerData } from 'node:worker_threads'
import { PlantsError } from '../../errors.js'
import { SqliteStore } from '../sqlite.js'
import type { FileAddress, OpenOptions } from '../store.js'

/** What a thread is told at its start. */
export interface Task {
  address: FileAddress
  options: Pick<OpenOptions, 'timeout' | 'batchLimit'>
}

/** Creates that came together, or the end. Tuples, because each thread has to read what the other has written. */
export type Order = { number: number; creates: [id: bigint, name: string, tag: string | undefined, key: string | undefined][] } | 'close'

/** What became of an order: those of its creates that failed, by their place in it, and the sizes of the commits meanwhile. */
export interface Report {
  number: number
  failures: [index: number, failure: Failure][]
  commits: number[]
}

/** An error on its way to another thread. */
export type Failure = Pick<PlantsError, 'kind' | 'message' | 'hint' | 'retryable'> | Error

if (parentPort) void work(workerData as Task)

/** Creates what it is sent, until it is told to close. */
async function work({ address, options }: Task): Promise<void> {
  const clock = { signal: new AbortController().signal, now: () => performance.now(), random: Math.random }
  const access = () => Promise.reject(new Error('A file needs no access'))
  const commits: number[] = []
  const store = await SqliteStore.open(address, { ...options, clock, access, onCommit: (count) => commits.push(count) })
  parentPort?.on('message', async (order: Order) => {
    if (order === 'close') {
      await store.close()
      return parentPort?.close()
    }
    const results = await Promise.allSettled(
      order.creates.map(([id, name, tag, idempotencyKey]) =>
        store.create(tag === undefined ? { id, name } : { id, name, tag }, { idempotencyKey }),
      ),
    )
    const failures = results.flatMap((result, index): Report['failures'] =>
      result.status === 'rejected' ? [[index, toFailure(result.reason)]] : [],
    )
    parentPort?.postMessage({ number: order.number, failures, commits: commits.splice(0) } satisfies Report)
  })
}

function toFailure(error: unknown): Failure {
  if (!(error instanceof PlantsError)) return error instanceof Error ? error : new Error(String(error))
  const { kind, message, hint, retryable } = error
  return { kind, message, hint, retryable }
}
