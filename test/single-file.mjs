import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { executableName, hostTarget } from '../bin/build/targets.mjs'

/** The path of the program as a single file: what PLANTS_BIN names, else what was built; undefined when nothing was. */
export function singleFile() {
  if (process.env.PLANTS_BIN) return process.env.PLANTS_BIN
  const target = hostTarget()
  const path = join(import.meta.dirname, '../release', executableName(`plants-${target}`, target))
  return existsSync(path) ? path : undefined
}
