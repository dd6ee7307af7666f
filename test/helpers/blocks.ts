import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import type { Block } from './documents.js'
import { bin } from './process.js'
import { checkSecrets } from './secrets.js'

/** What a block differs in from what the page promises: no error or warning on stderr and exit code 0, or for `console` the text that it shows. */
export interface Difference {
  block: string
  exitCode: number | undefined
  /** what was printed, if it is not what the page shows */
  printed: string
}

/** Runs a block; undefined when it did what the page promises. */
export async function runBlock({ language, text }: Block, folder: string): Promise<Difference | undefined> {
  if (language === 'sh') {
    const { exitCode, stderr } = await shell(text, folder)
    const printed = withoutNotes(stderr)
    return exitCode === 0 && printed === '' ? undefined : { block: text, exitCode, printed }
  }
  if (language !== 'console') return undefined
  const { exitCode, stdout } = await shell(`export PLANTS_OUTPUT=text\nexec 2>&1\n${scriptOf(text)}`, folder)
  return exitCode === 0 && timeless(stdout) === timeless(text.trimEnd()) ? undefined : { block: text, exitCode, printed: stdout }
}

/** What is on stderr besides notes about what was done. */
export function withoutNotes(stderr: string): string {
  return stderr.replaceAll(/^plants: (?:Created store .*|Its id is -?\d+|(?:Deleted|Would delete) [\d,]+ plants?)(?:\n|$)/gm, '')
}

/** Prints each command of a console block before it runs it, as a terminal shows it. */
function scriptOf(text: string): string {
  const commands = [...text.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command)
  return commands.map((command) => `printf '%s\\n' '$ ${command.replaceAll("'", "'\\''")}'\n${command} || true`).join('\n')
}

function timeless(text: string): string {
  return text.replaceAll(/\d+\.\d s\b/g, '0.1 s')
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
