import { parentPort, workerData } from 'node:worker_threads'
import { PlantsError } from '../../errors.js'
import { SqliteStore } from '../sqlite.js'
import type { FileAddress, OpenOptions } from '../store.js'

/** What a thread is told at its start. */
export interface Task {
  address: FileAddress
  options: Pick<OpenOptions, 'timeout' | 'batchLimit'>
}

/** Work that came together, or none, for the end. Plants are tuples, because each thread has to read what the other has written. */
export interface Order {
  number: number
  works: (PlantTuple | undefined)[]
}

/** A plant to create; where one is undefined, a look whether that could be done now. */
type PlantTuple = [id: bigint, name: string, tag: string | undefined, key: string | undefined]

/** What became of an order: the works that failed, by their place in it, and the sizes of the commits meanwhile. */
export interface Report {
  number: number
  failures: [index: number, failure: Failure][]
  commits: number[]
}

/** An error on its way to another thread. */
export type Failure = Pick<PlantsError, 'kind' | 'message' | 'hint' | 'retryable'> | Error

if (parentPort) work(workerData as Task)

/** Does what it is sent, until it is sent an order without work. */
function work({ address, options }: Task): void {
  const clock = { signal: new AbortController().signal, now: () => performance.now(), random: Math.random }
  const access = () => Promise.reject(new Error('A file needs no access'))
  const commits: number[] = []
  const opening = SqliteStore.open(address, { ...options, clock, access, onCommit: (count) => commits.push(count) })
  parentPort?.on('message', async ({ number, works }: Order) => {
    if (works.length === 0) {
      await opening.then((store) => store.close()).catch(() => undefined) // a file that was not opened has been told of
      parentPort?.close()
      return
    }
    const results = await opening
      .then((store) => Promise.allSettled(works.map((plant) => (plant ? create(store, plant) : store.check()))))
      .catch(failed(works))
    const failures = results.flatMap((result, index): Report['failures'] =>
      result.status === 'rejected' ? [[index, toFailure(result.reason)]] : [],
    )
    parentPort?.postMessage({ number, failures, commits: commits.splice(0) } satisfies Report)
  })
}

function failed(works: Order['works']): (reason: unknown) => PromiseSettledResult<unknown>[] {
  return (reason) => works.map(() => ({ status: 'rejected', reason }))
}

function create(store: SqliteStore, [id, name, tag, idempotencyKey]: PlantTuple) {
  return store.create(tag === undefined ? { id, name } : { id, name, tag }, { idempotencyKey })
}

function toFailure(error: unknown): Failure {
  if (!(error instanceof PlantsError)) return error instanceof Error ? error : new Error(String(error))
  const { kind, message, hint, retryable } = error
  return { kind, message, hint, retryable }
}
