import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { bin } from './process.js'
import { checkSecrets } from './secrets.js'

export const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

/** What stands in the README between two fences. */
export interface Block {
  language: string
  text: string
}

/** The blocks of a part of the README, in their order. */
export function blocksOf(part: string): Block[] {
  return [...part.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language = '', text = '']) => ({ language, text }))
}

/** What stands below a title of the second level, and what stands above and below that. */
export function sectionOf(title: string): { inside: string; outside: string } {
  const start = readme.indexOf(`\n## ${title}\n`)
  const end = readme.indexOf('\n## ', start + 1)
  return { inside: readme.slice(start, end), outside: readme.slice(0, start) + readme.slice(end) }
}

/** Runs lines in a shell that knows `plants`, each of which must work. */
export async function shell(lines: string, folder: string) {
  const path = join(folder, 'bin')
  if (!existsSync(path)) {
    mkdirSync(path)
    symlinkSync(bin, join(path, 'plants'))
  }
  const env = { PATH: `${path}:${process.env['PATH']}:/usr/sbin`, HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  const result = await execa('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd: folder,
    env,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  checkSecrets({ argv: [lines], err: result.stderr })
  return result
}
