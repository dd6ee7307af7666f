import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { Options } from 'execa'
import { onTestFinished } from 'vitest'
import { start } from './process.js'

/**
 * Starts the program's service as a process of its own, and kills it when the test is over. Its log is for warnings
 * alone.
 */
export function startService(args: string[], folder: string, options: Options = {}) {
  const service = start(['serve', '--log-level', 'warn', ...args], folder, options)
  onTestFinished(async () => {
    service.kill('SIGKILL')
    await service
  })
  return service
}

/** Resolves when a service listens, with its address, which is its first line on stdout. */
export async function addressOf(service: ReturnType<typeof startService>): Promise<string> {
  const first = await Promise.race([once(service.stdout ?? new PassThrough(), 'data'), service])
  if (!Array.isArray(first)) throw new Error(`The service ended before it listened: ${first.stderr}`)
  return String(first[0]).trim()
}
