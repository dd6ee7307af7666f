import { existsSync } from 'node:fs'
import { join } from 'node:path'

const systems = { win32: 'windows' }

/** The path of the program as a single file: what PLANTS_BIN names, else what was built; undefined when nothing was. */
export function singleFile() {
  const { platform, arch, env } = process
  if (env.PLANTS_BIN) return env.PLANTS_BIN
  const path = join(
    import.meta.dirname,
    '../release',
    `plants-${systems[platform] ?? platform}-${arch}${platform === 'win32' ? '.exe' : ''}`,
  )
  return existsSync(path) ? path : undefined
}
