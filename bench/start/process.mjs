import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../figures.mjs'

/** Milliseconds from the start of a process to its end. Throws when it does not end with its status. */
export function measure({ title, argv, status = 0, env }) {
  const [command, ...args] = argv()
  const start = performance.now()
  const result = spawnSync(command, args, { env })
  const time = performance.now() - start
  if (result.status !== status)
    throw new Error(`${title} ended with ${result.status ?? result.error}: ${result.stderr}`)
  return time
}

/**
 * The most resident memory of a process in MB, a median as well; not a number where there is no GNU time, which asks
 * wait4(2).
 */
export function peakOf({ argv, env }, { folder, runs }) {
  if (spawnSync('time', ['--version']).status !== 0) return Number.NaN
  const file = join(folder, 'peak')
  const peaks = Array.from({ length: runs }, () => {
    spawnSync('time', ['--quiet', '--format', '%M', '--output', file, ...argv()], { env })
    return (Number(readFileSync(file, 'utf8')) * 1024) / 1e6
  })
  return median(peaks)
}
