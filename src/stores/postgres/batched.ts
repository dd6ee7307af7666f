import { defaultConcurrency } from '../common/store.js'

interface Call<Job, Result> {
  job: Job
  resolve(result: Result | undefined): void
  reject(error: unknown): void
}

/**
 * Calls of one turn of the event loop share a call of `perform`, with up to 64 jobs in ascending order of id, and no id
 * twice. It returns results by id.
 */
export function batched<Job extends { id: bigint }, Result>(
  perform: (jobs: Job[]) => Promise<ReadonlyMap<bigint, Result>>,
): (job: Job) => Promise<Result | undefined> {
  let waiting: Map<bigint, Call<Job, Result>>[] = []
  const send = async (calls: Call<Job, Result>[]) => {
    try {
      const results = await perform(calls.map(({ job }) => job).toSorted((one, other) => (one.id < other.id ? -1 : 1)))
      for (const { job, resolve } of calls) resolve(results.get(job.id))
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
  const start = () => {
    const batches = waiting
    waiting = []
    for (const calls of batches) void send([...calls.values()])
  }
  return (job) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(start)
      const call = { job, resolve, reject }
      const batch = waiting.find((calls) => calls.size < defaultConcurrency && !calls.has(job.id))
      if (batch) batch.set(job.id, call)
      else waiting.push(new Map([[job.id, call]]))
    })
}
