import { PlantsError } from '../../src/platform/errors.js'

/** What became of each call: its value, or the kind and the message of its error. */
export async function settled(calls: Promise<unknown>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(calls)
  return results.map((result) => (result.status === 'fulfilled' ? result.value : told(result.reason)))
}

function told(error: unknown): unknown {
  return error instanceof PlantsError ? `${error.type}: ${error.message}` : error
}
