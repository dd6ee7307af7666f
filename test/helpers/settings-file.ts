import { statSync } from 'node:fs'
import type { World } from './world.js'

/** The mode of a file or folder, in octal digits. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8)
}

/** What stderr says when the settings of a user could not be written. */
export function unwritable(user: World, why: string): string {
  const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
  return `plants: The settings in ${user.file} could not be written: ${why}\n  ${hint}\n`
}
