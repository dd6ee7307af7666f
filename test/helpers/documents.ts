import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { bin } from './process.js'
import { checkSecrets } from './secrets.js'

const root = join(import.meta.dirname, '../..')

/** The pages of the documentation, by their paths from the root. */
export const pages: ReadonlyMap<string, string> = new Map(
  [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...readdirSync(join(root, 'docs'))
      .toSorted()
      .map((name) => `docs/${name}`),
  ].map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

/** All of them, one after the other. */
export const documentation = [...pages.values()].join('\n')

/** A block between two fences. */
export interface Block {
  /** `sh` is run; `console` is run, and shows what its commands print; anything else is text */
  language: string
  text: string
}

/** The blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** Whether a block belongs to the development of the program: it uses npm, and is not run by a test. */
export function usesNpm({ text }: Block): boolean {
  return /^npm /m.test(text)
}

/** The rows of the first table with these titles, without its marks. */
export function tableAt(titles: string): string[][] {
  const start = documentation.indexOf(`\n${titles}`)
  if (start === -1) throw new Error(`No page has the table ${titles}`)
  const [rows = ''] = documentation.slice(start + 1).split('\n\n')
  return rows
    .replaceAll('`', '')
    .split('\n')
    .slice(2)
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()))
}

/** What a block differs in from what the page promises: nothing on stderr and exit code 0, or for `console` the text that it shows. */
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
    return exitCode === 0 && stderr === '' ? undefined : { block: text, exitCode, printed: stderr }
  }
  if (language !== 'console') return undefined
  const { exitCode, stdout } = await shell(`export PLANTS_OUTPUT=text\nexec 2>&1\n${scriptOf(text)}`, folder)
  const printed = stdout.replaceAll(`${folder}/`, '')
  return exitCode === 0 && timeless(printed) === timeless(text.trimEnd()) ? undefined : { block: text, exitCode, printed }
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
